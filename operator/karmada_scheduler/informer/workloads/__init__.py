"""The metadata of workloads, for plugins that declare that they need it: docs/decisions/0024-workloads.md.

``metadata_store`` keeps what bindings name of one kind, ``reflector`` keeps that true to the API server, ``informer`` knows which
bindings there are, answers what is known of their workloads, and wakes them.
"""

from karmada_scheduler.informer.workloads.informer import NotSynced, WorkloadInformer

__all__ = ["NotSynced", "WorkloadInformer"]
