"""The decisions with which the schedulers of a run are judged: the pure decision core, with healthy plugins around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import orjson

from karmada_pyscheduler.extenders.http_extender import HttpExtender
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.config.configuration_file import load
from karmada_scheduler.config.profiles import SchedulerConfiguration
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.condition import NO_CLUSTER_FIT
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.forecast import Simulation
from karmada_scheduler.dryrun.objects import Frameworks, ShownObjects, Workloads
from karmada_scheduler.dryrun.result import SimulationResult
from karmada_scheduler.framework import Plugin, Snapshot
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import framework, gates
from tests.fake_apiserver.objects import DUPLICATED
from tools.manifests import targets_of
from tools.simulation.estimators import GivenEstimates, replicas_in
from tools.simulation.extenders import HealthyTransport, NamedManifests
from tools.simulation.setup import Setup

_DECIDING = ("region_filter", "name_score", "reading", "divider")
"""The plugin files with extension points of the decision. Others only delay or fail what is decided."""

Targets = dict[str, int]


def read_binding(raw: bytes) -> Binding | None:
    """Return a binding, None if it is unreadable."""
    try:
        return Binding.from_manifest(orjson.loads(raw))
    except ManifestError:
        return None


class DecisionCore:
    """Decides as healthy schedulers would."""

    def __init__(self, setup: Setup) -> None:
        """Take the surroundings."""
        self._setup = setup
        self._frameworks: dict[tuple[int, bool], Framework] = {}

    def decide(
        self,
        binding: Binding,
        clusters: Sequence[Cluster],
        version: int = 1,
        *,
        extenders_score: bool = True,
        estimates: Callable[[str], int] = replicas_in,
    ) -> SimulationResult:
        """Return the decision about a binding.

        Args:
            binding: The binding.
            clusters: The clusters.
            version: Of the plugins.
            extenders_score: Whether the scores of extenders count.
            estimates: The responses of estimators by cluster, if they are enabled; by default those of healthy ones.
        """
        dry_run = DryRun(
            self._setup.gates,
            ShownObjects(Workloads(None)),
            Frameworks.only(self._framework(version, extenders_score)),
            session=GivenEstimates(estimates) if self._setup.estimators else None,
        )
        snapshot = Snapshot.of(clusters)
        dry_run.objects.show(snapshot, [binding])
        (result,) = Simulation(dry_run, snapshot).run([binding])
        return result

    def targets(
        self,
        binding: Binding,
        clusters: Sequence[Cluster],
        version: int = 1,
        *,
        extenders_score: bool = True,
        estimates: Callable[[str], int] = replicas_in,
    ) -> Targets:
        """Return the clusters of the decision about a binding; see ``decide``."""
        result = self.decide(binding, clusters, version, extenders_score=extenders_score, estimates=estimates)
        return {each.name: each.replicas for each in result.targets}

    def explains(self, before: Any, after: Targets, clusters: Sequence[Cluster]) -> bool:
        """Return whether a change of a stored binding is what is decided for some clusters."""
        binding = Binding.from_manifest(before)
        bindings = [binding] if self._setup.fail_back is None else [binding, _from_first_term(binding)]
        if any(
            self.targets(each, clusters, version) == after
            for each in bindings
            for version in self._setup.versions
        ):
            return True
        if self._setup.guard is not None and self._keeps(before, after, clusters):
            return True
        return self._setup.varies_capacity and self.may_have(before, after, clusters)

    def _keeps(self, before: Any, after: Targets, clusters: Sequence[Cluster]) -> bool:
        """Return whether a placement that nothing fits is kept on all clusters that exist."""
        there = {each.name for each in clusters if not each.deleting}
        return after == {name: count for name, count in targets_of(before).items() if name in there}

    def explains_without_scores(self, before: Any, after: Targets, clusters: Sequence[Cluster]) -> bool:
        """Return whether a change is what is decided without the scores of extenders.

        An error at prioritize ends no decision, as in kube-scheduler (docs/extenders.md). Clusters that an extender
        refuses stay refused.
        """
        binding = Binding.from_manifest(before)
        return any(
            self.targets(binding, clusters, version, extenders_score=False) == after
            for version in self._setup.versions
        )

    def may_have(self, before: Any, after: Targets, clusters: Sequence[Cluster]) -> bool:
        """Return whether clusters are feasible for a binding, and its replicas complete, whatever the capacities are.

        That is what can be said without the estimates and assumed placements of the moment. A cleared placement needs
        clusters none of which is feasible, so it is never explained here.
        """
        placement = before["spec"]["placement"]
        everywhere = {**placement, "replicaScheduling": DUPLICATED}
        everywhere.pop("spreadConstraints", None)
        binding = Binding.from_manifest({**before, "spec": {**before["spec"], "placement": everywhere}})
        feasible = self.targets(binding, clusters).keys()
        if not after or not feasible >= after.keys():
            return False
        wanted: int = before["spec"].get("replicas", 0)
        if placement.get("replicaScheduling") == DUPLICATED or not wanted:
            return all(each == wanted for each in after.values())
        return sum(after.values()) == wanted

    def problem_of(
        self, manifest: Any, clusters: Sequence[Cluster], version: int = 1, *, extenders_score: bool = True
    ) -> str:
        """Return what differs between a stored binding and the decision about it; "" if nothing does."""
        binding = Binding.from_manifest(manifest)
        has_terms = self._setup.fail_back is not None and not binding.spec.graceful_eviction_tasks
        decided = _from_first_term(binding) if has_terms else binding
        result = self.decide(decided, clusters, version, extenders_score=extenders_score)
        stored, wanted = targets_of(manifest), {each.name: each.replicas for each in result.targets}
        if self._setup.guard is not None and result.condition is not None:
            wanted = stored if result.condition.reason == NO_CLUSTER_FIT else wanted
        condition = next((each for each in binding.status.conditions if each.get("type") == "Scheduled"), {})
        if stored != wanted:
            is_explained = self._setup.varies_capacity and condition.get("status") == "True"
            if not (is_explained and self.may_have(manifest, stored, clusters)):
                return f"has {stored}, the decision is {wanted}"
        elif binding.spec.scheduling_suspended:
            return ""
        elif result.condition is not None and (condition.get("status"), condition.get("reason")) != (
            result.condition.status,
            result.condition.reason,
        ):
            return f"has the condition {condition}, the decision gives {result.condition}"
        if not condition:
            return "has no condition Scheduled"
        if result.type is ScheduleType.AVOID and stored and condition.get("status") != "True":
            return f"needs no scheduling, and has the condition {condition}"
        if condition.get("status") == "True" and (gone := stored.keys() - {each.name for each in clusters}):
            return f"is a success on {', '.join(sorted(gone))}, which does not exist"
        observed = binding.status.scheduler_observed_generation
        if condition.get("status") == "True" and observed != binding.generation:
            return f"generation {binding.generation}, observed {observed}"
        return ""

    def _framework(self, version: int, extenders_score: bool) -> Framework:
        found = self._frameworks.get((version, extenders_score))
        if found is None:
            found = self._new_framework(version, extenders_score)
            self._frameworks[version, extenders_score] = found
        return found

    def _new_framework(self, version: int, extenders_score: bool) -> Framework:
        files = tuple(each for each in self._setup.plugins if each in _DECIDING)
        base = _in_tree_framework(files, version, self._setup)
        if not self._setup.extenders:
            return base
        configs = [
            each if extenders_score else dataclasses.replace(each, prioritize_verb="")
            for each in load_extenders(self._setup).extenders
        ]
        extenders = [
            HttpExtender(each, NamedManifests(), clock=lambda: 0.0, transport=HealthyTransport)
            for each in configs
        ]
        return Framework(base.plugins, extenders=extenders)


def _from_first_term(binding: Binding) -> Binding:
    """Return a binding that is decided from its first affinity term on, as FailBack proposes.

    Without the applied placement there is always something to decide.
    """
    annotations = {
        name: text for name, text in binding.annotations.items() if name != APPLIED_PLACEMENT_ANNOTATION
    }
    status = replace(binding.status, scheduler_observing_affinity_name="")
    return replace(binding, annotations=annotations, status=status)


def load_extenders(setup: Setup) -> SchedulerConfiguration:
    """Return the configuration of a run."""
    path = setup.options(0).config
    assert path is not None  # a setup with extenders has one
    return load(path, scheduler_name="my-scheduler")


def _in_tree_framework(files: Sequence[str], version: int, setup: Setup) -> Framework:
    plugins = [_plugin(each, version) for each in sorted(files)]
    if plugins:
        return framework(*plugins, gates=setup.gates)
    return _framework_without_files(tuple(sorted(setup.gates.settings.items())))


@cache
def _framework_without_files(settings: tuple[tuple[str, bool], ...]) -> Framework:
    return framework(gates=gates(**dict(settings)))


@cache
def _plugin(file: str, version: int) -> type[Plugin]:
    module = import_module(f"tools.simulation.plugin_files.{file}")
    name = "".join(part.capitalize() for part in file.split("_"))
    found: type[Plugin] = getattr(module, name)
    return type(name, (found,), {"version": version}) if hasattr(found, "version") else found


class ReadableClusters:
    """The last readable version of each cluster, as schedulers keep it while the newest one is unreadable.

    A deletion timestamp counts all the same (docs/decisions/0021-unknown-clusters.md): the cluster is that version, being
    deleted.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._last: dict[str, Cluster] = {}

    def read(self, state: Mapping[tuple[str, str], bytes]) -> tuple[tuple[Cluster, ...], frozenset[str]]:
        """Return the clusters of a state, old versions of unreadable ones included, and the names of these."""
        unreadable = set()
        for (_, name), raw in state.items():
            manifest = orjson.loads(raw)
            try:
                self._last[name] = Cluster.from_manifest(manifest)
            except ManifestError:
                if manifest["metadata"].get("deletionTimestamp") is not None:
                    self._last[name] = replace(self._last.get(name, Cluster(name)), deleting=True)
                else:
                    unreadable.add(name)
        names = sorted(name for _, name in state)
        self._last = {name: self._last[name] for name in names if name in self._last}
        return tuple(self._last.values()), frozenset(unreadable)
