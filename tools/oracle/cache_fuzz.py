"""Compares decisions with and without caches: ``make fuzz-cache`` (STEPS=2000 SEED=1)

Bindings share placements and requests, as bindings of one policy do. They are decided repeatedly while clusters change,
join, leave and begin to be deleted, and while the bindings get their targets: once with filter results, scores and
orders from caches, and once without caches and with an estimator that is called cluster by cluster. Half of the scenarios
have plugins without keys (``unkeyed_plugins``).
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import LocalEstimator
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import framework
from tools.oracle.generator.rng import Random
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.generator.values import T1
from tools.oracle.unkeyed_plugins import UNKEYED

_SHARED = 3
"""Placements, requests and kinds in a scenario; few, so that most bindings find something in the caches."""


class OneByOne:
    """The built-in estimator without columns, as the estimators in member clusters are."""

    name = "one-by-one"

    def __init__(self, gates: FeatureGates) -> None:
        general = GeneralEstimator(gates)
        self.max_available_replicas = general.max_available_replicas
        self.max_available_component_sets = general.max_available_component_sets


@dataclass
class Tally:
    """Result of a run."""

    decisions: int = 0
    different: list[str] = field(default_factory=list)


class ChangingScenario:
    """A scenario whose clusters change, with one framework and its caches."""

    def __init__(self, document: dict[str, Any], rng: Random, spare: list[dict[str, Any]]) -> None:
        self.rng = rng
        self.gates = FeatureGates({**document["gates"], "SchedulingOvercommitProtection": False})
        self.plugins = tuple(document["plugins"])
        self.identity = str(document["id"])
        unkeyed = [plugin for plugin in UNKEYED if rng.chance(0.3)]
        self.framework = framework(*unkeyed, gates=self.gates, select=self.plugins)
        self.empty = bool(document["emptyWorkloadPropagation"])
        self.cached = self._algorithm([GeneralEstimator(self.gates)])
        self.clusters = {each["metadata"]["name"]: each for each in document["clusters"]}
        self.spare = spare
        self.cache = ClusterCache()
        self.version = 0
        self.changed = set(self.clusters)
        self.bindings = self._sharing(document["bindings"])

    def _sharing(self, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        models = [copy.deepcopy(each["spec"]) for each in documents[:_SHARED]]
        for document in documents:
            spec = document["spec"]
            for fields in (("placement",), ("replicaRequirements", "components"), ("resource",)):
                model = self.rng.pick(models)
                for name in fields:
                    if name == "resource":
                        uid = spec["resource"].get("uid", "")
                        spec["resource"] = {**model["resource"], "uid": uid}
                    elif name in model:
                        spec[name] = model[name]
                    else:
                        spec.pop(name, None)
        return documents

    def step(self, tally: Tally) -> None:
        """Change some clusters, then decide everything both ways."""
        self._change()
        self._fill_cache()
        snapshot = self.cache.snapshot()
        for document in self.bindings:
            binding = Binding.from_manifest(document)
            if binding.spec.placement is None:
                continue
            decision = run_sync(self.cached.decide(binding, snapshot, self.framework))
            uncached = self._algorithm([])
            framework_ = Framework(self.framework.plugins, caches_results=False)
            again = run_sync(uncached.decide(binding, snapshot, framework_, session=OneByOne(self.gates)))
            tally.decisions += 1
            if (shown := _shown(decision)) != (expected := _shown(again)):
                tally.different.append(
                    f"{self.identity} {binding.key}: cached {shown}\n  uncached {expected}"
                )
            if decision.targets is not None and self.rng.chance(0.3):
                document["spec"]["clusters"] = [
                    {"name": each.name, "replicas": each.replicas} for each in decision.targets
                ]

    def _fill_cache(self) -> None:
        for name in sorted(self.changed):
            self.version += 1
            if name in self.clusters:
                parsed = Cluster.from_manifest(self.clusters[name])
                self.cache.put(replace(parsed, resource_version=str(self.version)))
            else:
                self.cache.remove(name, self.version)
        self.changed.clear()

    def _algorithm(self, estimators: Sequence[LocalEstimator]) -> SchedulingAlgorithm:
        return SchedulingAlgorithm(self.gates, estimators, empty_workload_propagation=self.empty)

    def _change(self) -> None:
        for _ in range(self.rng.upto(2)):
            name = self.rng.pick(list(self.clusters)) if self.clusters else ""
            luck = self.rng.random()
            if luck < 0.5 and name and self.spare:
                other = self.rng.pick(self.spare)
                self.clusters[name] = {**other, "metadata": {**other["metadata"], "name": name}}
            elif luck < 0.7 and name:
                del self.clusters[name]
            elif luck < 0.9 and self.spare:
                other = self.rng.pick(self.spare)
                name = other["metadata"]["name"]
                self.clusters[name] = other
            elif name:
                metadata = {**self.clusters[name]["metadata"], "deletionTimestamp": T1}
                self.clusters[name] = {**self.clusters[name], "metadata": metadata}
            self.changed.add(name)


def _shown(decision: Decision) -> tuple[object, ...]:
    """Return everything visible of a decision and its attempts."""
    return (
        decision.targets,
        decision.applied_placement,
        decision.affinity_name,
        str(decision.error),
        [(term.index, term.name, str(term.error)) for term in decision.failed_terms],
        [
            (
                attempt.targets,
                dict(attempt.diagnosis.result_by_cluster),
                {plugin: list(each) for plugin, each in attempt.scores.items()},
                list(attempt.candidates),
                list(attempt.selected),
            )
            for attempt in decision.attempts
        ],
    )


def _grown(clusters: list[dict[str, Any]], size: int, rng: Random) -> list[dict[str, Any]]:
    """Return clusters and copies of them under other names, so many in all."""
    grown = list(clusters)
    while grown and len(grown) < size:
        model = rng.pick(clusters)
        metadata = {**model["metadata"], "name": f"x{len(grown):04}"}
        grown.append({**model, "metadata": metadata})
    return grown


def run(seed: int, steps: int, *, clusters: int = 0) -> Iterator[Tally]:
    """Run scenarios of a seed, some steps each; yield the tally after each scenario.

    Args:
        seed: Equal seeds give equal scenarios.
        steps: How many rounds over all bindings of a scenario.
        clusters: How many every scenario has at least; its own are copied.
    """
    tally = Tally()
    documents = scenarios(seed, cases=1 << 62)
    played = 0
    while played < steps:
        document, other = next(documents), next(documents)
        rng = Random(f"memory/{document['id']}")
        spare = [*document["clusters"], *other["clusters"]]
        document["clusters"] = _grown(document["clusters"], clusters, rng)
        scenario = ChangingScenario(document, rng, spare)
        for _ in range(6):
            scenario.step(tally)
            played += 1
        yield tally


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz-cache", description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000, help="rounds over all bindings of a scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clusters", type=int, default=0, help="of a scenario, at least (default: as drawn)")
    options = parser.parse_args(arguments)
    tally = Tally()
    for tally in run(options.seed, options.steps, clusters=options.clusters):
        if len(tally.different) >= 3:
            break
    for difference in tally.different[:3]:
        print(f"different: {difference}")
    print(f"{tally.decisions} decisions taken twice, {len(tally.different)} different")
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main())
