"""The decision: a pure function of one binding and a snapshot of all clusters.

- ``classify``: is there anything to do, and why?
- ``schedule``: affinity terms, filter, score, select, assign; the recipe.
- ``available_replicas``, ``cluster_groups``, ``region_paths``, ``select_clusters``, ``assign_replicas``,
  ``webster``: its steps, each numbers in and numbers out where that is possible.
- ``outcome``: what a decision means for the binding's condition.
"""
