"""Random draws of all generators of bindings and clusters, and how odd the values of a scenario are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


class Random(random.Random):
    """A random generator with the draws that the generator needs."""

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Draw one item."""
        return items[int(self.random() * len(items))]

    def upto(self, most: int) -> int:
        """Draw an integer from 0 to most."""
        return int(self.random() * (most + 1))

    def between(self, least: int, most: int) -> int:
        """Draw an integer, both ends included."""
        return least + self.upto(most - least)

    def some(self, items: Sequence[T], most: int = 3, least: int = 0) -> list[T]:
        """Draw a few different items, in random order."""
        return self.sample(items, min(len(items), self.between(least, most)))


@dataclass(frozen=True, slots=True)
class ScenarioProfile:
    """The probabilities and sizes of a scenario.

    Attributes:
        odd: Probability that a quantity is written in an unusual notation.
        extreme: Probability that a quantity is negative, huge, or both.
        strict: Probability that a filter-like field is set at all.
        capacity: How many units of each resource a cluster has, roughly.
        models: Probability that a cluster has resource models.
        vast: Whether a cluster may take 2**31 pods and more.
        tiers: Whether affinity terms may have overflow affinities.
        tiny: Probability that a field is an explicit empty value instead of missing.
    """

    odd: float
    extreme: float
    strict: float
    capacity: int
    models: float
    vast: bool
    tiers: bool
    tiny: float
