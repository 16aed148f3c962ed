"""Losses of two domains at once: only what neither of them does alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import comb
from typing import Final

from karmada_advisor.whatif.survive.classify import LossTally
from karmada_advisor.whatif.survive.domains import CLUSTER, PAIR, FailureDomain
from karmada_advisor.whatif.survive.edited import PairFigures, figures
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import Loss
from karmada_scheduler.structs import replace

_FIRST: Final = 50
"""Half of the pairs are of the worst domains: there it hurts most if a second one goes."""

DomainPair = tuple[int, int]
"""The numbers of two domains."""


def drawn(losses: Losses, count: int, loss: Loss, seed: str) -> Sequence[DomainPair]:
    """Return pairs of clusters, half of them of those whose loss is worst.

    Args:
        losses: All domains, decided.
        count: How many; fewer if there are not so many.
        loss: The world by which the worst are found.
        seed: Equal seeds draw equal pairs.
    """
    numbers = [number for number, each in enumerate(losses.inputs.domains) if each.kind == CLUSTER]
    tallies = losses.tallies[loss]
    worst = sorted(numbers, key=lambda number: _badness(tallies[number]))[:_FIRST]
    dice, found = random.Random(seed), dict[DomainPair, None]()  # noqa: S311 (a sample, not a secret)
    for among, wanted in ((worst, count // 2), (numbers, count)):
        while len(found) < min(wanted, comb(len(among), 2)):
            first, second = sorted(dice.sample(among, 2))
            found[first, second] = None
    return list(found)


def _badness(tally: LossTally) -> tuple[int, int, int]:
    found = [figures(each.classified) for each in tally.pairs]
    dark, missing, interrupted = (sum(each[place] for each in found) for place in range(3))
    return -dark, -missing, -interrupted


def decide_pairs(losses: Losses, pairs: Sequence[DomainPair]) -> Sequence[FailureDomain]:
    """Decide about the losses of pairs, add what is new to the tallies, and return the pairs as domains.

    A binding is new in a pair if it is dark, misses more replicas, or is interrupted, and is not in either domain alone.
    """
    domains = losses.inputs.domains
    made = [
        FailureDomain(
            PAIR,
            f"{domains[one].name}+{domains[other].name}",
            tuple(sorted({*domains[one].clusters, *domains[other].clusters})),
            (),
        )
        for one, other in pairs
    ]
    both = Losses(replace(losses.inputs, domains=made))
    both.run()
    for loss, tallies in both.tallies.items():
        singles = losses.tallies[loss]
        for tally, pair in zip(tallies, pairs, strict=True):
            alone = [
                {each.position: figures(each.classified) for each in singles[number].pairs} for number in pair
            ]
            tally.pairs = [
                each
                for each in tally.pairs
                if _is_new(figures(each.classified), [one.get(each.position) for one in alone])
            ]
        losses.tallies[loss] += tallies
    losses.done.extend(
        is_done and all(losses.done[number] for number in pair)
        for is_done, pair in zip(both.done, pairs, strict=True)
    )
    losses.inputs = replace(losses.inputs, domains=[*domains, *made])
    return made


def _is_new(now: PairFigures, alone: Sequence[PairFigures | None]) -> bool:
    known = [each for each in alone if each is not None]
    return any(value > max((each[place] for each in known), default=0) for place, value in enumerate(now))
