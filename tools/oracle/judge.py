"""One world before both judges."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.oracle import defects, features
from tools.oracle.compare import compare
from tools.oracle.ours import Judgement, World
from tools.oracle.program import Oracle, OracleSilentError, Verdict

SILENT = "upstream did not answer in time"


@dataclass
class Tally:
    """What came out of some worlds.

    Attributes:
        found: World, number of the binding, readable lines; one entry per difference.
    """

    worlds: int = 0
    cases: int = 0
    decided: int = 0
    features: Counter[str] = field(default_factory=Counter)
    freedoms: Counter[str] = field(default_factory=Counter)
    defects: Counter[str] = field(default_factory=Counter)
    found: list[tuple[str, int, list[str]]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add what came out of other worlds."""
        self.worlds += other.worlds
        self.cases += other.cases
        self.decided += other.decided
        self.features += other.features
        self.freedoms += other.freedoms
        self.defects += other.defects
        self.found += other.found


def judge(document: dict[str, Any], oracle: Oracle, *, count_features: bool = True) -> Tally:
    """Have both judge all bindings of a world, and compare."""
    tally = Tally(worlds=1)
    clusters, changed = defects.spared_clusters(document["clusters"])
    spared = [defects.spared_binding(binding) for binding in document["bindings"]]
    oracle.ask({**document, "clusters": clusters, "bindings": [binding for binding, _ in spared]})
    if changed:
        tally.defects[defects.NEGATIVE_MINIMUM] += len(spared)
    world = World(document)
    judgements = [_ours(world, binding) for binding in document["bindings"]]  # while upstream thinks
    try:
        verdicts = oracle.answer()
    except OracleSilentError:
        tally.found.append((str(document.get("id")), -1, [SILENT]))
        return tally
    if count_features:
        tally.features.update(set(features.of_world(document)))
    for number, (judgement, verdict) in enumerate(zip(judgements, verdicts, strict=True)):
        binding = document["bindings"][number]
        tally.cases += 1
        tally.decided += sum(len(each.get("terms", ())) for each in verdict.get("passes", ()))
        tally.defects.update(spared[number][1])
        if count_features:
            tally.features.update(set(_features(binding, verdict)))
        if defects.is_expected_panic(binding, verdict.get("panic", "")):
            tally.defects[defects.PANIC] += 1
            continue
        if not isinstance(judgement, Judgement):
            tally.found.append((str(document.get("id")), number, ["ours raised", *judgement]))
            continue
        comparison = compare(world, judgement, verdict)
        tally.freedoms.update(comparison.freedoms)
        tally.defects.update(comparison.defects)
        if comparison.differences:
            tally.found.append((str(document.get("id")), number, comparison.differences))
    return tally


def _ours(world: World, binding: Mapping[str, Any]) -> Judgement | list[str]:
    """Judge a binding; lines of a traceback if that fails."""
    try:
        return world.judge(binding)
    except Exception:  # noqa: BLE001  (whatever it is, it is a difference)
        return traceback.format_exc().splitlines()


def _features(binding: Mapping[str, Any], verdict: Verdict) -> list[str]:
    return [*features.of_case(binding), *features.of_verdict(verdict)]
