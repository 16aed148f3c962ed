"""Karmada's objects as immutable values, parsed once when they are received; no I/O, no scheduling rules.

- ``binding``, ``placement``, ``cluster``, ``policy``, ``workload``: the objects.
- ``manifest``: readers of manifest fields, and their errors. ``quantity``: resource quantities with Go's arithmetic.
- ``matching``: label and field selectors, taints and tolerations.
- ``well_known``: labels, annotations and conditions. ``versions``: comparison of resourceVersions.
- ``content_cache``, ``interning``: equal contents as one object.
"""
