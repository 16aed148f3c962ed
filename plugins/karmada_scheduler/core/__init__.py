"""The scheduling algorithm: from one binding and a snapshot of all clusters to a decision, without I/O.

- ``classify``: whether a binding has to be scheduled, and why.
- ``schedule``, ``schedule_terms``: a stable decision, one pass over the affinity terms.
- ``find_clusters``, ``prioritize_clusters``, ``select_clusters``, ``assign_replicas``: the steps of a run, with
  ``available_replicas`` and ``cluster_groups``.
- ``ordering``: the order of the candidates and its caches. ``algorithms``: algorithms on numbers.
- ``decision``, ``condition``: the result, and the condition that reports it.
- ``budget``, ``limits``, ``run_sync``: how long a decision may take, and how it runs without waiting.
"""
