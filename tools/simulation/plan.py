"""A plan: everything that happens in one run, as data. A seed is expanded to a plan; a failing plan is shrunk and saved."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson

LATEST: Final = 1
"""The version of the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happens at a time.

    Attributes:
        at: In seconds.
        action: The name of an action; see ``actions`` and ``all_actions``.
        arguments: Its arguments.
    """

    at: float
    action: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that applies to requests or watches for some time.

    Attributes:
        kind: The name of the fault; see ``faults``.
        start, end: In seconds.
        share: The probability that it applies to a request, 0 to 1.
        requests: A regular expression that the kind of a request has to match, such as ``PATCH bindings``.
        process: The index of the process whose requests it applies to; None for all.
        value: A parameter of the fault.
    """

    kind: str
    start: float
    end: float
    share: float = 1.0
    requests: str = ""
    process: int | None = None
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        seed: Decides what the plan leaves open: the order of what is due at the same time, delays, shares.
        profile: The profile that it was drawn from.
        processes: The number of schedulers.
        options: Fields of ``Options`` that differ from the defaults.
        setup: What is around the schedulers: gates, profiles, plugins, extenders, estimators; see ``setup.Setup``.
        faults_end: All faults have ended, and the last step has been taken, at this time in seconds.
        settle: Seconds that the schedulers have afterwards until everything must be as it should be.
        steps: In the order of their times.
        faults: The faults.
        version: The version of the format.
    """

    seed: str
    profile: str = "calm"
    processes: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    setup: dict[str, Any] = field(default_factory=dict)
    faults_end: float = 60.0
    settle: float = 400.0
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()
    version: int = LATEST

    def json(self) -> bytes:
        """Return the plan as JSON."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)

    def hash(self) -> str:
        """Return a short name of the plan's content."""
        return hashlib.sha256(self.json()).hexdigest()[:12]

    def without(self, *, steps: frozenset[int] = frozenset(), faults: frozenset[int] = frozenset()) -> Plan:
        """Return the plan without some steps and faults, by their indices."""
        return replace(
            self,
            steps=tuple(each for index, each in enumerate(self.steps) if index not in steps),
            faults=tuple(each for index, each in enumerate(self.faults) if index not in faults),
        )


def load(path: Path) -> Plan:
    """Read a plan.

    Raises:
        ValueError: It has another version.
    """
    found = orjson.loads(path.read_bytes())
    if found.get("version") != LATEST:
        raise ValueError(f"{path}: version {found.get('version')}, not {LATEST}")
    return Plan(
        **{
            **found,
            "steps": tuple(Step(**each) for each in found["steps"]),
            "faults": tuple(Fault(**each) for each in found["faults"]),
        }
    )
