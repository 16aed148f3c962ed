"""Karmada's objects as frozen values, parsed once at the border; no input, no output, no rules of scheduling.

- ``meta``: errors of parsing, times, well-known labels and annotations.
- ``quantity``: resource quantities with Go's exact arithmetic, overflow included.
- ``matching``: selectors, taints and tolerations: does this fit that?
- ``placement``, ``binding``, ``cluster``, ``policy``: the objects.
"""
