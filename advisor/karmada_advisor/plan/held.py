"""How long the moves of a plan wait for Guard plugins."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from karmada_advisor.explain.amounts import counted
from karmada_advisor.plan.decide import HeldMove
from karmada_advisor.plan.effects import Comparison
from karmada_advisor.plan.model import Effect


def held_notes(every: Iterable[Comparison]) -> Iterator[str]:
    """Yield how many moves each plugin holds, and how long that takes if as many are let through each time as now."""
    held: dict[str, list[HeldMove]] = defaultdict(list)
    moved = graceful = 0
    for each in every:
        effect, decided = each.effect, each.decided
        if decided is None:
            continue
        if effect is Effect.HELD and each.hold is None and decided.held is not None:
            held[decided.held.plugin].append(decided.held)
        elif effect is Effect.MOVED:
            moved += 1
            graceful += bool(decided.graceful)
    if graceful:
        text = f"{graceful:,} of {counted(moved, 'move')} {'is' if graceful == 1 else 'are'} graceful"
        yield f"{text}: Karmada keeps the old copies until the new ones are healthy"
    for plugin, moves in sorted(held.items()):
        text = f"{plugin} holds {len(moves):,} of {counted(len(moves) + moved, 'move')}"
        pause = max(each.retry_after for each in moves)
        if not pause:
            yield f"{text}: {moves[0].reason}"
        elif not moved:
            yield f"{text} for {_time(pause)} at least: {moves[0].reason}"
        else:
            rest = math.ceil(len(moves) / moved) * pause
            yield f"{text}, the last for some {_time(rest)}: {moves[0].reason}"


def _time(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
