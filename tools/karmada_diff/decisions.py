"""How often two versions of karmada-scheduler decide differently about generated cases, by kind, with shrunk examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tools.controlplane.versions import KarmadaVersion
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.program import Oracle, UpstreamResult, ensure
from tools.oracle.shrink import shrink
from tools.oracle.versions import Against

_EXAMPLES: Final = 3
_TRIES: Final = 400

CRASH: Final = "one ends its process"
PLACEMENT: Final = "placement"
REASON: Final = "reason or condition, same placement"
ORDER: Final = "order of clusters only"


@dataclass
class DecisionCounts:
    """How many cases there were, and how many differ by kind, with up to three examples of each."""

    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def compared(
    before: KarmadaVersion, after: KarmadaVersion, *, seed: int, cases: int, default_gates: bool
) -> DecisionCounts:
    """Decide generated cases with both versions."""
    found = DecisionCounts()
    against = Against(min(before, after, key=_age), default_gates=default_gates)
    with Oracle(ensure(before)) as one, Oracle(ensure(after)) as other:
        for scenario in scenarios(seed, cases=cases):
            document = against.adapted(scenario)
            for number, kind in enumerate(_kinds(document, one, other)):
                found.cases += 1
                if kind:
                    found.kinds[kind] += 1
                    examples = found.examples.setdefault(kind, [])
                    if len(examples) < _EXAMPLES:
                        alone = {**document, "bindings": [document["bindings"][number]]}
                        examples.append(shrink(alone, partial(_shows, one, other, kind), budget=_TRIES))
    return found


def kind_of(one: UpstreamResult, other: UpstreamResult) -> str:
    """Return how two results for a binding differ, "" if they do not."""
    if "panic" in one or "panic" in other:
        return CRASH if ("panic" in one) != ("panic" in other) else ""
    places = [[tuple(each) for each in result["final"]["clusters"]] for result in (one, other)]
    if sorted(places[0]) != sorted(places[1]):
        return PLACEMENT
    if one["final"]["conditions"] != other["final"]["conditions"]:
        return REASON
    return ORDER if places[0] != places[1] else ""


def _age(version: KarmadaVersion) -> list[int]:
    return [int(each) for each in version.name.split(".")]


def _kinds(document: dict[str, Any], one: Oracle, other: Oracle) -> Iterator[str]:
    one.send(document)
    other.send(document)
    results = [each.receive().get("bindings", []) for each in (one, other)]
    for first, second in zip(*results, strict=True):
        yield kind_of(first, second)


def _shows(one: Oracle, other: Oracle, kind: str, document: dict[str, Any]) -> bool:
    try:
        return kind in _kinds(document, one, other)
    except (ValueError, KeyError, RuntimeError):
        one.restart()
        other.restart()
        return False
