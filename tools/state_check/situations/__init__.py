"""All situations, by what they are about."""

from __future__ import annotations

from typing import Final

from tools.state_check.model import Situation
from tools.state_check.situations import (
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

SITUATIONS: Final[tuple[Situation, ...]] = (
    *healthy.SITUATIONS,
    *filters.SITUATIONS,
    *apis.SITUATIONS,
    *spread.SITUATIONS,
    *capacity.SITUATIONS,
    *claims.SITUATIONS,
    *holds.SITUATIONS,
    *moves.SITUATIONS,
    *processes.SITUATIONS,
    *works.SITUATIONS,
    *health.SITUATIONS,
    *plans.SITUATIONS,
    *rights.SITUATIONS,
    *schedulers.SITUATIONS,
    *leases.SITUATIONS,
)
