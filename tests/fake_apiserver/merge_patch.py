"""Merge patches, as an API server applies them."""

from __future__ import annotations

from typing import Any


def merge_patch(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """Apply a merge patch (RFC 7386) in place."""
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            below = target.get(name)
            if not isinstance(below, dict):
                below = target[name] = {}
            merge_patch(below, value)
        else:
            target[name] = value
