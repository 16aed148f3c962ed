"""The faults of a run, drawn from its seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

KINDS: Final[Mapping[str, tuple[float, float]]] = {
    "kill apiserver": (0.5, 6.0),
    "stop apiserver": (3.0, 18.0),
    "kill etcd": (0.5, 5.0),
    "stop etcd": (2.0, 12.0),
    "full etcd": (5.0, 12.0),
    "kill webhook": (1.0, 8.0),
    "stop webhook": (3.0, 12.0),
    "kill aggregated apiserver": (1.0, 8.0),
    "kill controllers": (1.0, 5.0),
    "kill leader": (0.5, 3.0),
    "stop leader": (3.0, 25.0),
    "kill standby": (0.5, 3.0),
    "stop standby": (3.0, 25.0),
    "kill karmada-scheduler": (1.0, 5.0),
    "stop karmada-scheduler": (3.0, 15.0),
    "expired certificate": (14.0, 24.0),
    "rotated certificate": (1.0, 1.0),
    "RBAC removed": (3.0, 12.0),
    "slow network": (8.0, 20.0),
    "cut connections": (1.0, 6.0),
    "held network": (3.0, 18.0),
}
"""Kinds of faults, with the least and the most seconds that one lasts. "stop" is SIGSTOP, with SIGCONT at the end."""

_GAP_SECONDS: Final = (2.0, 8.0)
_OVERLAP: Final = 0.3
"""The probability that a fault begins while the one before it lasts."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        at: When it begins, in seconds from the first possible moment.
        kind: A key of ``KINDS``.
        seconds: How long it lasts.
        choice: Between 0 and 1; decides what is left open, such as which standby.
    """

    at: float
    kind: str
    seconds: float
    choice: float


def faults_for(seed: int, minutes: float) -> list[Fault]:
    """Return the faults of a run, in rounds that have each kind once, in random order."""
    random = Random(f"{seed}:faults")
    end, at = minutes * 60, 0.0
    faults: list[Fault] = []
    while True:
        for kind in random.sample(sorted(KINDS), len(KINDS)):
            seconds = round(random.uniform(*KINDS[kind]), 1)
            if at + seconds > end:
                return faults
            faults.append(Fault(round(at, 1), kind, seconds, round(random.random(), 3)))
            overlaps = random.random() < _OVERLAP
            at += seconds * random.uniform(0.2, 0.8) if overlaps else seconds + random.uniform(*_GAP_SECONDS)


def missing_kinds(faults: Counter[str]) -> list[str]:
    """Return the kinds of which none occurred."""
    return [kind for kind in KINDS if not faults[kind]]
