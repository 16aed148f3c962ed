"""Edits with an amount, and the least amount that reaches a goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from karmada_scheduler.api.quantity import MAX_INT64
from karmada_scheduler.framework.edits import Edit, EditQuantity, Minimum
from karmada_scheduler.structs import replace

SAMPLES: Final = 8
"""Amounts below the boundary that are tried, with those of the doubling and bisection."""


def amounts_of(
    build: Callable[[int], Edit], *, base: int, amounts: Iterable[int], unit: str = ""
) -> Iterator[Edit]:
    """Yield an edit with several amounts.

    Args:
        build: Returns the edit with an amount.
        base: The amount without the edit.
        amounts: The amounts to try; those equal to the base, or beyond 64 bits, are left out.
        unit: The unit for people.
    """

    def make(amount: int) -> Edit:
        return replace(build(amount), quantity=EditQuantity(amount, base, make, unit))

    for number, amount in enumerate(dict.fromkeys(amounts)):
        if amount != base and abs(amount) <= MAX_INT64:
            found = make(amount)
            yield replace(found, cost=found.cost + 0.1 * number)


def least(change: Edit, reaches: Callable[[Edit], bool], may_go_on: Callable[[], bool]) -> Edit:
    """Return an edit with the amount nearest to the base that reaches the goal, by doubling, bisection and samples.

    The goal need not be monotone in the amount: smaller amounts are sampled, and if one of them reaches the goal, the
    search goes on below it.

    Args:
        change: An edit that reaches the goal; without it, the goal is not reached.
        reaches: Whether another amount reaches it.
        may_go_on: Whether there is time left; without, the boundary is still exact, but no samples are taken.
    """
    amount = change.quantity
    if amount is None:
        return change
    step = 1 if amount.at > amount.base else -1
    tried: dict[int, bool] = {amount.base: False, amount.at: True}

    def holds(at: int) -> bool:
        if at not in tried:
            tried[at] = reaches(amount.make(at))
        return tried[at]

    low, high, monotone = amount.base, amount.at, "sampled"
    while True:
        high = _boundary(low, high, holds)
        fails_at = high - step
        if not may_go_on():
            monotone = "unchecked"
            break
        between = sum(1 for count in tried if min(amount.base, fails_at) < count < max(amount.base, fails_at))
        samples = _samples(amount.base, fails_at, SAMPLES - between)
        smaller = next((sample for sample in samples if holds(sample)), None)
        if smaller is None:
            break
        low, high = amount.base, smaller
    found: Edit = amount.make(high)
    return replace(found, cost=change.cost, minimal=Minimum(high, fails_at, amount.unit, monotone))


def _boundary(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return an amount that holds while the next one towards ``low`` does not; ``low`` fails and ``high`` holds.

    By doubling and bisection: most boundaries are near ``low``, and a decision costs more the more clusters it uses.
    """
    base, step = low, 1 if high > low else -1
    while abs(step) < abs(high - base):
        if holds(base + step):
            high = base + step
            break
        low, step = base + step, 2 * step
    while abs(high - low) > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _samples(low: int, high: int, count: int) -> Iterator[int]:
    """Yield up to ``count`` amounts between two amounts, both excluded."""
    distance = abs(high - low)
    if distance < 2 or count < 1:
        return
    step = 1 if high > low else -1
    count = min(count, distance - 1)
    yield from dict.fromkeys(low + step * (1 + number * (distance - 1) // count) for number in range(count))
