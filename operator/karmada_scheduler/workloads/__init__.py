"""The metadata of workloads, for plugins that declare that they need it: docs/decisions/0024-workloads.md.

``kind_cache`` keeps what bindings name of one kind, ``kind_watch`` keeps that true to the API server, ``informer`` knows which
bindings there are, answers what is known of their workloads, and wakes them.
"""

from karmada_scheduler.workloads.informer import Later, WorkloadInformer

__all__ = ["Later", "WorkloadInformer"]
