"""The members that the demo, the tests and `make controlplane` have in common."""

from __future__ import annotations

from .members import Node, RealMember
from .simulated import SimulatedMember

SIZES = (Node(cpu="8", memory="16Gi"), Node(cpu="4", memory="8Gi"))


def real_members(count: int = 2) -> list[RealMember]:
    """Return real1, real2, ...: two nodes each, of 8 CPUs in the odd ones and of 4 in the even ones."""
    return [
        RealMember(
            f"real{number}",
            nodes=(SIZES[(number - 1) % 2],) * 2,
            provider="local",
            region=f"real-{number}",
            zone=f"real-{number}-1",
            labels={"kind": "real"},
        )
        for number in range(1, count + 1)
    ]


def simulated_members(count: int = 6) -> list[SimulatedMember]:
    """Return sim-a1, sim-a2, sim-b1, ...: two per region ra, rb, ..., of 16 CPUs each."""
    members = []
    for number in range(count):
        letter = _letters(number // 2)
        members.append(
            SimulatedMember(
                f"sim-{letter}{number % 2 + 1}",
                provider="paper",
                region=f"r{letter}",
                zone=f"r{letter}-{number % 2 + 1}",
                labels={"kind": "sim"},
            )
        )
    return members


def _letters(number: int) -> str:
    """Count a, b, ..., z, aa, ab, ..."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text
