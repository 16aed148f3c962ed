"""The metadata of workloads, for plugins that declare that they need it: docs/decisions/0024-workloads.md.

``metadata_store`` stores the objects of one kind that bindings name. ``metadata_reflector`` lists, watches and reads them.
``informer`` has the references of bindings to workloads, looks metadata up, and enqueues bindings whose workload has
changed.
"""

from karmada_pyscheduler.informer.workloads.informer import NotSynced, WorkloadInformer

__all__ = ["NotSynced", "WorkloadInformer"]
