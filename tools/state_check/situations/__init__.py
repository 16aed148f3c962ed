"""All situations, by what they are about."""

from __future__ import annotations

from typing import Final

from tools.state_check.model import Situation
from tools.state_check.situations import (
    claims,
    filters,
    healthy,
    holds,
    processes,
    rights,
    running,
    schedulers,
    selection,
)

SITUATIONS: Final[tuple[Situation, ...]] = (
    *healthy.SITUATIONS,
    *filters.SITUATIONS,
    *selection.SITUATIONS,
    *claims.SITUATIONS,
    *holds.SITUATIONS,
    *processes.SITUATIONS,
    *running.SITUATIONS,
    *rights.SITUATIONS,
    *schedulers.SITUATIONS,
)

assert len({each.name for each in SITUATIONS}) == len(SITUATIONS)
