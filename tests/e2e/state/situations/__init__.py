"""All situations, by what they are about."""

from __future__ import annotations

from typing import Final

from tests.e2e.state.model import REGISTERED, Situation
from tests.e2e.state.situations import (  # noqa: F401 (each registers its own)
    apis,
    capacity,
    claims,
    filters,
    health,
    healthy,
    holds,
    leases,
    moves,
    plans,
    processes,
    rights,
    schedulers,
    spread,
    works,
)

SITUATIONS: Final[tuple[Situation, ...]] = tuple(REGISTERED)
