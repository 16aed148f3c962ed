"""Decides about bindings on one side of a change, with the functions of the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from karmada_scheduler.api.binding import Binding, GracefulEvictionTask, TargetCluster
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import Assumed, Estimators, with_footprint
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.framework.cycle import Cycle, Peers
from karmada_scheduler.framework.diagnosis import HeldError, PluginError, SchedulingError
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.snapshot import Snapshot

NOTHING_ASSUMED: Assumed = {}


@dataclass(frozen=True)
class Rules:
    """A configuration of the scheduler: what it decides with.

    Attributes:
        gates: Feature gates.
        framework_of: Returns the plugins of a binding's profile; None if another scheduler is responsible.
        algorithm: The core, with these gates and ``estimators``; all decisions share its caches.
        estimators: The estimators of ``algorithm``.
        scheduler_names: The names of the profiles; None if every binding is decided.
        workload_of: Returns the metadata of a workload, for plugins that need it.
        show: Lets plugins see clusters and bindings, until the next call.
        place: Lets plugins see the clusters that a decision writes.
        peers: The bindings of workload groups; None without the gate WorkloadAffinity.
        has_own_plugins: Whether a profile has plugins of the user's own, which may read other bindings.
        has_guards: Whether a profile has Guard plugins, which may count the moves of other bindings.
        empty_workload_propagation: Whether selected clusters without replicas become targets.
        missing: Plugins of the running scheduler whose code is not available here, so that they are not asked.
    """

    gates: FeatureGates
    framework_of: Callable[[Binding], Framework | None]
    algorithm: SchedulingAlgorithm
    estimators: Estimators
    scheduler_names: frozenset[str] | None
    workload_of: Callable[[Binding], WorkloadAnswer]
    show: Callable[[Snapshot, Sequence[Binding]], None]
    place: Callable[[Binding, Decision], None]
    peers: Peers | None = None
    has_own_plugins: bool = False
    has_guards: bool = False
    empty_workload_propagation: bool = False
    missing: tuple[str, ...] = ()

    @property
    def accounts(self) -> bool:
        """Whether decisions see the replicas of those before them."""
        return self.gates.enabled("SchedulingOvercommitProtection")

    @property
    def is_coupled(self) -> bool:
        """Whether the decision about one binding can change that about another."""
        return is_coupled(self.gates, has_own_plugins=self.has_own_plugins, has_guards=self.has_guards)


def is_coupled(gates: FeatureGates, *, has_own_plugins: bool, has_guards: bool) -> bool:
    """Return whether the decision about one binding can change that about another.

    Args:
        gates: Feature gates.
        has_own_plugins: As in ``Rules``.
        has_guards: As in ``Rules``.
    """
    counts_others = gates.enabled("SchedulingOvercommitProtection") or gates.enabled("WorkloadAffinity")
    return counts_others or has_own_plugins or has_guards


class HeldMove(NamedTuple):
    """A decision that a Guard plugin does not let through yet.

    Attributes:
        plugin: The plugin.
        reason: Its reason.
        targets: The clusters of the decision.
        retry_after: Seconds until it is decided again at the earliest; 0 for the backoff of the queue.
    """

    plugin: str
    reason: str
    targets: tuple[TargetCluster, ...]
    retry_after: float


class Outcome(NamedTuple):
    """A decision, without the data that only explanations need.

    Attributes:
        type: Why it was made; AVOID if there was none.
        targets: The clusters of the binding afterwards.
        reason: The reason of the condition ``Scheduled``, or ``Gated``.
        error: Why the decision failed; "" if it did not, or there was none.
        held: What a Guard plugin does not let through yet; None if it does.
        graceful: The clusters that get a graceful eviction task.
    """

    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    reason: str = ""
    error: str = ""
    held: HeldMove | None = None
    graceful: tuple[str, ...] = ()


class Side:
    """The bindings of a plan on one side of the change."""

    def __init__(self, rules: Rules, snapshot: Snapshot, bindings: Iterable[Binding]) -> None:
        """Decide with these rules about these clusters."""
        self.rules = rules
        self.snapshot = snapshot
        rules.show(snapshot, list(bindings))

    def type_of(self, binding: Binding) -> ScheduleType:
        """Return what asks for a decision about a binding; AVOID if nothing does, or it is not ours."""
        if not self.may_decide(binding):
            return ScheduleType.AVOID
        return classify(binding, terminating=self.snapshot.terminating, gates=self.rules.gates).type

    def is_assigned(self, binding: Binding) -> bool:
        """Return whether this scheduler decides about a binding."""
        return self.may_decide(binding) and not binding.spec.scheduling_suspended

    def may_decide(self, binding: Binding) -> bool:
        """Return whether this scheduler decides about a binding unless its scheduling is suspended."""
        return (
            binding.spec.placement is not None
            and not binding.deleting
            and self.rules.framework_of(binding) is not None
        )

    def decide(
        self, binding: Binding, type_: ScheduleType, assumed: Assumed = NOTHING_ASSUMED
    ) -> tuple[Outcome, Decision | None]:
        """Return the stable decision about a binding, whether or not anything asks for it; None if it is gated."""
        framework = self.rules.framework_of(binding)
        assert framework is not None  # is_assigned
        workload = self.rules.workload_of(binding) if framework.needs_workload else None
        try:
            gate = framework.binding.run_pre_enqueue(binding, workload)
        except PluginError as error:
            decision = Decision(binding.key, error=error)
            return outcome_of(binding, type_, decision), decision
        if not gate.is_success:
            text = f"gated by {gate.plugin}: {gate.message}"
            return Outcome(ScheduleType.AVOID, binding.spec.clusters, "Gated", text), None
        decision = self._decision(binding, framework, workload, assumed)
        if isinstance(decision.error, PluginError):
            # On a busy machine a plugin may exceed its timeout once; the scheduler would try again as well.
            decision = self._decision(binding, framework, workload, assumed)
        return outcome_of(binding, type_, decision), decision

    def _decision(
        self, binding: Binding, framework: Framework, workload: WorkloadAnswer | None, assumed: Assumed
    ) -> Decision:
        coroutine = self.rules.algorithm.decide(
            binding, self.snapshot, framework, assumed=assumed, workload=workload
        )
        return asyncio.run(coroutine) if framework.is_async else run_sync(coroutine)

    def in_order(self, bindings: Iterable[tuple[Binding, ScheduleType]]) -> Iterator[tuple[Binding, Outcome]]:
        """Yield the decisions about bindings, each as if those before it had been written."""
        assumed = NOTHING_ASSUMED
        for binding, type_ in bindings:
            outcome, decision = self.decide(binding, type_, assumed)
            if decision is not None and decision.targets is not None:
                if self.rules.accounts and decision.targets:
                    assumed = with_footprint(assumed, binding, decision.targets)
                self.rules.place(binding, decision)
            yield binding, outcome

    def passes(self, binding: Binding, names: Container[str]) -> bool:
        """Return whether any of some clusters passes the filters for a binding; True if that is not known."""
        framework, placement = self.rules.framework_of(binding), binding.spec.placement
        if framework is None or placement is None:
            return False
        terms = [each.affinity_name for each in placement.cluster_affinities] or [""]
        for term in terms:
            cycle = Cycle(binding, placement, term, self.snapshot, peers=self.rules.peers)
            try:
                results = framework.cached_filter_results(cycle)
            except SchedulingError:
                return True
            if results is None or any(name in names for name in results.rows):
                return True
        return False


def outcome_of(binding: Binding, type_: ScheduleType, decision: Decision) -> Outcome:
    """Return the outcome of a decision."""
    condition = condition_for(decision.error)
    targets = binding.spec.clusters if decision.targets is None else decision.targets
    guarded = decision.guarded
    return Outcome(
        type_,
        targets,
        condition.reason,
        "" if decision.error is None else condition.message,
        _held(decision),
        () if guarded is None else tuple(task.from_cluster for task in guarded.tasks),
    )


def _held(decision: Decision) -> HeldMove | None:
    error, guarded = decision.error, decision.guarded
    if not isinstance(error, HeldError) or guarded is None:
        return None
    return HeldMove(guarded.refused_by, guarded.reason, guarded.refused_targets or (), error.retry_after)


def without_clusters(binding: Binding, clusters: Container[str]) -> Binding:
    """Return a binding as Karmada's taint manager leaves it: off these clusters, with eviction tasks."""
    spec = binding.spec
    leaving = [each.name for each in spec.clusters if each.name in clusters]
    known = {each.from_cluster for each in spec.graceful_eviction_tasks}
    tasks = [GracefulEvictionTask(name) for name in leaving if name not in known]
    return replace(
        binding,
        generation=binding.generation + 1,
        spec=replace(
            spec,
            clusters=tuple(each for each in spec.clusters if each.name not in clusters),
            graceful_eviction_tasks=(*spec.graceful_eviction_tasks, *tasks),
        ),
    )


def grouped(bindings: Iterable[Binding]) -> list[Binding]:
    """Return bindings with those together whose decisions share cached filter results, scores and orders.

    The order within a group is that of the input.
    """
    numbers: dict[Hashable, int] = {}

    def number(key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers))

    def key(binding: Binding) -> tuple[int, int, int]:
        spec = binding.spec
        requirements = spec.replica_requirements
        rules = number((spec.scheduler_name, spec.placement))
        resource = number((spec.resource.api_version, spec.resource.kind))
        return rules, resource, number(None if requirements is None else requirements.key)

    return sorted(bindings, key=key)
