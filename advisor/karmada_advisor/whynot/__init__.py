"""Finds verified changes after which a cluster gets replicas of a binding.

- ``json_patch``: sets of edits as RFC 6902 patches, and the objects after them.
- ``objects``: the objects as they were read, and the decision about a binding after edits.
- ``goals``: what to reach, and the step at which a cluster drops out of a decision.
- ``vocabulary``: the edits that can cure a blocker.
- ``quantities``: the least amount of an edit.
- ``search``: irreducible sets of edits that reach a goal.
- ``answer``, ``model``: the whole answer, and its data. ``remedies``: what ``explain`` shows, and what helps without a decision.
- ``clusters``: several clusters, and all bindings that one cluster does not have.
"""
