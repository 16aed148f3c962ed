"""Karmada's objects as immutable values, parsed once when they are received; no I/O, no scheduling rules.

- ``binding``, ``placement``, ``cluster``, ``policy``, ``workload``: the objects.
- ``manifest``: readers of manifest fields, and their errors. ``object_fields``: readers and writers by the types of fields.
- ``quantity``: resource quantities with Go's arithmetic.
- ``matching``: label and field selectors, taints and tolerations.
- ``well_known``: labels, annotations and conditions.
- ``content_cache``: equal contents as one object.
"""
