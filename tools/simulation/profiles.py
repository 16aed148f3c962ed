"""All profiles of plans.

``ROUNDS`` is not among ``PROFILES``, because a run of it costs several times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tools.simulation import (
    generate,
    generate_aimed,
    generate_answers,
    generate_breadth,
    generate_contended,
    generate_guard,
    generate_mishaps,
    generate_rounds,
    generate_started,
    generate_works,
)
from tools.simulation.plan import Plan

_GENERATORS: Final = (
    generate,
    generate_breadth,
    generate_guard,
    generate_aimed,
    generate_answers,
    generate_mishaps,
    generate_works,
    generate_started,
    generate_contended,
)
PROFILES: Final = tuple(profile for each in _GENERATORS for profile in each.PROFILES)
ROUNDS: Final = "rounds"
_PLANS: Final[dict[str, Callable[[str, str], Plan]]] = {
    profile: each.plan_for for each in (*_GENERATORS, generate_rounds) for profile in each.PROFILES
}


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    return _PLANS[profile](seed, profile)
