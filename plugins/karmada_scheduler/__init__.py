"""The decisions of karmada-scheduler as a library without input or output, and the contract for plugins.

- ``api``: Karmada's objects as frozen values.
- ``core``: the decision, a pure function of a binding and a snapshot.
- ``framework``: the contract for plugins; ``karmada_scheduler_plugins`` has the in-tree ones.
- ``plugin_loader``, ``config``: plugins of one's own, profiles, flags.
- ``dryrun``: decisions without a control plane, in the order of the queue; ``testing``: the kit for tests of plugins.
- ``estimator``: available replicas by resource summaries and models.
- ``command``: the command line; the commands and the scheduler are distributions of their own.
"""

__version__ = "0.1.0"
