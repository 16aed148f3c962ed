"""A scheduler for Karmada control planes, with the decisions of karmada-scheduler.

The packages in the order in which data flows:

- ``api``: Karmada's objects as frozen values; no input or output.
- ``informer``: lists and watches; their objects enter the caches, and keys enter the queue.
- ``cache``: the newest known version of every object; ``cache.clusters`` makes the immutable snapshot.
- ``scheduling_queue``: keys of bindings, each at most once and never twice in progress.
- ``scheduler``: the loop over the queue, and the retries.
- ``core``: the decision, a pure function of a binding and a snapshot.
- ``framework``: the contract for plugins; ``karmada_scheduler_plugins`` has the in-tree ones.
- ``binding_cycle``: writes a decision as two patches and two Events.
- ``client``: requests to the API server: lists, watches, patches, Events, the Lease.
- ``app``: builds all parts and starts them.
"""

__version__ = "0.1.0"
