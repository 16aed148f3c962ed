"""A scheduler for Karmada control planes; its decisions are karmada-scheduler's.

Reading order, which is also the order in which data flows:

- ``api``: Karmada's objects as frozen values; no input or output.
- ``watch``: kopf's events in, typed objects out.
- ``cache``: what was last seen; ``cache.clusters`` hands out the immutable snapshot.
- ``triggers``: which change wakes which binding.
- ``scheduling_queue``: keys of bindings, each at most once and never twice in progress.
- ``core``: the decision, a pure function of a binding and a snapshot.
- ``framework``: what plugins see; ``karmada_scheduler_plugins`` are the in-tree ones.
- ``binding_cycle``: the decision becomes two patches and two Events.
- ``scheduler``: the loop around all of that, and what is retried when.
- ``client``: the API server: patches, Events, the Lease.
- ``app``: builds everything; the only module that knows all others.
"""

__version__ = "0.1.0"
