"""Sentences about names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable

from karmada_scheduler.api.names import nearest


def unknown(shown: str, name: str, existing: Iterable[str]) -> str:
    """Return that something does not exist, and the existing name that is most like its own.

    Args:
        shown: What it is, with its name.
        name: Its name.
        existing: The names that exist.
    """
    near = nearest(name, existing)
    return f"{shown} does not exist" + (f". Nearest: {near}" if near else "")


def nearest_hint(name: str, existing: Iterable[str]) -> str:
    """Return the end of a message about a name that does not exist: the one that is most like it; "" if none is."""
    near = nearest(name, existing)
    return f"; nearest: {near}" if near else ""
