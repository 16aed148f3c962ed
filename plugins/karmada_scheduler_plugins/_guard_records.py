"""The annotations of PlacementGuard: what moved when, and since when a decision is held.

They are the memory of the plugin, so that a new leader continues with the same budgets and waits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

LAST_MOVE: Final = "pyscheduler.karmada.io/last-move"
HELD: Final = "pyscheduler.karmada.io/held"

_MAX_MOVES: Final = 20
"""Moves of one binding that are recorded. The oldest ones are added to the next one, which counts longer."""


class Recorded(NamedTuple):
    """A move of a binding.

    Attributes:
        at: When it was written, in seconds since 1970.
        replicas: How many replicas moved.
    """

    at: float
    replicas: int


def moves_text(moves: Sequence[Recorded], *, clusters: Sequence[str], cause: str, term: str) -> str:
    """Return the annotation about the last moves of a binding, of which the last one left ``clusters``."""
    kept = list(moves)
    while len(kept) > _MAX_MOVES:
        first, second, *rest = kept
        kept = [Recorded(second.at, first.replicas + second.replicas), *rest]
    fields: dict[str, Any] = {
        "moves": [{"at": text_of(each.at), "replicas": each.replicas} for each in kept],
        "from": list(clusters),
        "cause": cause,
    }
    return json.dumps({**fields, **({"term": term} if term else {})}, separators=(",", ":"))


@lru_cache(maxsize=8192)
def moves_in(text: str) -> tuple[Recorded, ...]:
    """Return the moves of an annotation in order of time; none if it cannot be read."""
    try:
        found = [
            Recorded(seconds_of(each["at"]), int(each["replicas"])) for each in json.loads(text)["moves"]
        ]
    except (ValueError, TypeError, KeyError):
        return ()
    return tuple(sorted(found))


def held_text(since: float, cause: str) -> str:
    """Return the annotation of a decision that is held."""
    return json.dumps({"since": text_of(since), "cause": cause}, separators=(",", ":"))


def held_since(text: str, cause: str) -> float | None:
    """Return since when a decision is held for a cause, None if it is not or the annotation cannot be read."""
    try:
        found = json.loads(text)
        return seconds_of(found["since"]) if found["cause"] == cause else None
    except (ValueError, TypeError, KeyError):
        return None


def text_of(seconds: float) -> str:
    """Return a time as text in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """Return a time in seconds since 1970; ValueError if it is none."""
    return datetime.fromisoformat(text).timestamp()
