"""Amounts of resources, as tests write them."""

from __future__ import annotations

from collections.abc import Mapping


def quantities(amounts: Mapping[str, object]) -> dict[str, str]:
    """Return a resource list; ``ephemeral_storage`` is a Python name for its resource."""
    return {
        name.replace("ephemeral_storage", "ephemeral-storage"): str(amount)
        for name, amount in amounts.items()
    }
