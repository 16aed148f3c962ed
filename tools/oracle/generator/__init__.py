"""Random scenarios: clusters, bindings and settings, with every field that decisions depend on.

A scenario is the JSON document that the oracle reads (see tools/controlplane/tools/oracle): settings, clusters and some
bindings, each of which is decided independently of the others. Equal seeds give equal scenarios on every machine. Scenario
``i`` of a seed does not depend on the scenarios before it, so workers can share a seed.

Values are odd on purpose, but not everywhere at once. Each scenario draws how often its quantities are odd, how strict its
filters are and how little capacity it has: a scenario in which everything is odd ends at the first filter, and covers
nothing else.
"""
