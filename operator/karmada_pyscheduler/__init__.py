"""The process that schedules bindings: it watches a Karmada control plane, decides, and writes.

The packages in the order in which data flows:

- ``informer``: lists and watches; their objects enter the caches, and keys enter the queue.
- ``cache``: the newest known version of every object; ``cache.clusters`` makes the immutable snapshot.
- ``scheduling_queue``: keys of bindings, each at most once and never twice in progress.
- ``scheduler``: the loop over the queue, and the retries. It decides by ``karmada_scheduler.core``.
- ``binding_cycle``: writes a decision as two patches and two Events.
- ``client``: requests to the API server: lists, watches, patches, Events, the Lease.
- ``app``: builds all parts and starts them; ``program`` runs it.
"""
