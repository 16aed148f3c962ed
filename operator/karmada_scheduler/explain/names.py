"""The nearest existing name for a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, existing: Iterable[str]) -> str:
    """Return the existing name that is most like a name; "" if none is like it."""
    found = get_close_matches(name, sorted(existing), n=1, cutoff=0.5)
    return found[0] if found else ""
