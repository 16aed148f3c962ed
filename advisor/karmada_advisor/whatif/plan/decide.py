"""Decides about bindings on one side of a change, with the functions of the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from karmada_advisor.explain.inputs import rebalanced
from karmada_scheduler.api.binding import Binding, BindingKey, GracefulEvictionTask, TargetCluster
from karmada_scheduler.api.placement import SPREAD_BY_REGION
from karmada_scheduler.core.algorithms import webster
from karmada_scheduler.core.available_replicas import Assumed
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.cluster_groups import last_constraint
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.select_clusters import ignores_spread
from karmada_scheduler.dryrun.dry_run import NOTHING_ASSUMED, DryRun
from karmada_scheduler.dryrun.result import as_written
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import HeldError, PluginError, SchedulingError
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import IdentityStruct, field, replace

Progress = Callable[[int, int], None]
"""Receives how many decisions are made, of how many."""


def no_progress(_done: int, _total: int) -> None:
    """Show nothing."""


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


class PlannedDecision(NamedTuple):
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


Decide = Callable[[Binding, ScheduleType], tuple[PlannedDecision, Decision | None]]


class PlanSide(IdentityStruct):
    """The bindings of a plan on one side of the change.

    Attributes:
        rules: Decide.
        snapshot: The clusters.
        written: The decisions of ``make``, by binding; none without ``remembers``.
        decisions: These, and those that are only compared.
    """

    rules: DryRun
    snapshot: Snapshot
    bindings: Iterable[Binding]
    remembers: bool = False
    written: dict[BindingKey, Decision] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    _known: dict[Hashable, PlannedDecision] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rules.objects.show(self.snapshot, self.bindings)

    def type_of(self, binding: Binding) -> ScheduleType:
        """Return what asks for a decision about a binding; AVOID if nothing does, or it is not ours."""
        return self.rules.type_of(binding, self.snapshot)

    def is_assigned(self, binding: Binding) -> bool:
        """Return whether this scheduler decides about a binding."""
        return self.rules.may_decide(binding) and not binding.spec.scheduling_suspended

    def decision(self, binding: Binding) -> Decision | None:
        """Return the stable decision about a binding, whether or not anything asks for it; None if it is gated."""
        found = self.rules.decide(binding, self.snapshot)
        return found if isinstance(found, Decision) else None

    def decide(
        self, binding: Binding, type_: ScheduleType, assumed: Assumed = NOTHING_ASSUMED
    ) -> tuple[PlannedDecision, Decision | None]:
        """Return the stable decision about a binding, whether or not anything asks for it; None if it is gated."""
        found = self.rules.decide(binding, self.snapshot, assumed)
        if isinstance(found, Decision) and isinstance(found.error, PluginError):
            # On a busy machine a plugin may exceed its timeout once; the scheduler would try again as well.
            found = self.rules.decide(binding, self.snapshot, assumed)
        if isinstance(found, Decision):
            if self.remembers:
                self.decisions.append(found)
            return outcome_of(binding, type_, found), found
        text = "; ".join(f"gated by {name}: {reason}" for name, reason in found.reasons.items())
        return PlannedDecision(ScheduleType.AVOID, binding.spec.clusters, "Gated", text), None

    def make(
        self, binding: Binding, type_: ScheduleType, assumed: Assumed = NOTHING_ASSUMED
    ) -> tuple[PlannedDecision, Decision | None]:
        """Return what ``decide`` does; the decision is one that is written."""
        outcome, decision = self.decide(binding, type_, assumed)
        if self.remembers and decision is not None:
            self.written[binding.key] = decision
        return outcome, decision

    def decisions_in_order(
        self, bindings: Iterable[tuple[Binding, ScheduleType]]
    ) -> Iterator[tuple[Binding, PlannedDecision, Decision | None]]:
        """Yield what ``make`` returns for bindings, each as if those before it had been written."""
        assumed = NOTHING_ASSUMED
        for binding, type_ in bindings:
            outcome, decision = self.make(binding, type_, assumed)
            if decision is not None and decision.targets is not None:
                assumed = self.rules.assuming(assumed, binding, decision.targets)
                self.rules.objects.bindings.place(binding, decision)
            yield binding, outcome, decision

    def make_if_asked(self, binding: Binding, type_: ScheduleType) -> PlannedDecision | None:
        """Return what ``make`` does; None if nothing asks for a decision."""
        return None if type_ is ScheduleType.AVOID else self._shared(binding, type_, self.make)

    def _shared(self, binding: Binding, type_: ScheduleType, decide: Decide) -> PlannedDecision:
        """Return the outcome of a decision; equal questions are decided once where no decision sees another one."""
        rules = self.rules.of(binding)
        if self.remembers or rules is None or rules.is_coupled:
            return decide(binding, type_)[0]
        asked = type_, question(binding)
        found = self._known.get(asked)
        if found is None:
            found = self._known[asked] = decide(binding, type_)[0]
        return found

    def outcomes(
        self,
        bindings: Sequence[Binding],
        types: Mapping[BindingKey, ScheduleType],
        progress: Progress,
    ) -> Iterator[tuple[Binding, PlannedDecision | None]]:
        """Yield decisions, None where nothing asks for one.

        They come in an order that suits the caches, or in that of the queue if they see each other. Then the next
        step begins when all are made.

        Args:
            bindings: The bindings.
            types: What asks for each decision.
            progress: Receives how many decisions are made, of how many.
        """
        if not self.rules.is_coupled:
            for number, binding in enumerate(grouped(bindings), 1):
                yield binding, self.make_if_asked(binding, types[binding.key])
                progress(number, len(bindings))
            return
        asked = [binding for binding in bindings if types[binding.key] is not ScheduleType.AVOID]
        ordered = [(binding, types[binding.key]) for binding in self.rules.in_queue_order(asked)]
        made: dict[BindingKey, PlannedDecision] = {}
        for number, (binding, outcome, _) in enumerate(self.decisions_in_order(ordered), 1):
            made[binding.key] = outcome
            progress(number, len(ordered))
        yield from ((binding, made.get(binding.key)) for binding in grouped(bindings))

    def rebalanced(self, binding: Binding) -> PlannedDecision:
        """Return the decision after a rebalance; one that a Guard plugin lets through later counts as let through."""
        found = self._shared(rebalanced(binding), ScheduleType.RECONCILE, self.decide)
        return (
            found if found.held is None else found._replace(targets=found.held.targets, error="", held=None)
        )

    def passes(self, binding: Binding, names: Collection[str]) -> bool:
        """Return whether any of some clusters passes the filters for a binding; True if that is not known."""
        found = self.passing(binding)
        return found is None or any(name in rows for rows in found for name in names)

    def passing(self, binding: Binding) -> tuple[Mapping[str, int], ...] | None:
        """Return the clusters that pass the filters for a binding that is on none, per affinity term.

        They are the keys. None if that is not known, because filter results of its profile cannot be cached.
        """
        rules, placement = self.rules.of(binding), binding.spec.placement
        framework = None if rules is None else rules.frameworks.of(binding)
        if rules is None or framework is None or placement is None:
            return ()
        if framework.keyed.unkeyed_filters or framework.plugins.pre_filter:
            return None
        found = []
        for term in [affinity.affinity_name for affinity in placement.cluster_affinities] or [""]:
            matching = rules.gates.rules.placement(placement)
            cycle = Cycle(binding, matching, term, self.snapshot, peers=rules.peers)
            try:
                results = framework.keyed.filter_results(cycle)
            except SchedulingError:
                return None
            if results is None:
                return None
            found.append(results.rows)
        return tuple(found)


def outcome_of(binding: Binding, type_: ScheduleType, decision: Decision) -> PlannedDecision:
    """Return the outcome of a decision."""
    condition, guarded = condition_for(decision.error), decision.guarded
    held = None
    if guarded is not None and isinstance(decision.error, HeldError):
        refused, pause = guarded.refused_targets or (), decision.error.retry_after
        held = HeldMove(guarded.refused_by, guarded.reason, refused, pause)
    return PlannedDecision(
        type_,
        binding.spec.clusters if decision.targets is None else decision.targets,
        condition.reason,
        "" if decision.error is None else condition.message,
        held,
        () if guarded is None else tuple(task.from_cluster for task in guarded.tasks),
    )


def settled(binding: Binding, found: Decision) -> Binding:
    """Return a binding after a decision is written, at a time after which a requested reschedule is done."""
    return as_written(binding, found, binding.spec.reschedule_triggered_at or datetime.fromtimestamp(0, UTC))


def without_clusters(binding: Binding, clusters: Container[str]) -> Binding:
    """Return a binding as Karmada's taint manager leaves it: off these clusters, with eviction tasks."""
    spec = binding.spec
    leaving = [target.name for target in spec.clusters if target.name in clusters]
    known = {task.from_cluster for task in spec.graceful_eviction_tasks}
    tasks = [GracefulEvictionTask(name) for name in leaving if name not in known]
    return replace(
        binding,
        generation=binding.generation + 1,
        spec=replace(
            spec,
            clusters=tuple(target for target in spec.clusters if target.name not in clusters),
            graceful_eviction_tasks=(*spec.graceful_eviction_tasks, *tasks),
        ),
    )


def chooses_regions(binding: Binding) -> bool:
    """Return whether a change of a cluster lets a binding choose its regions again, also where it is not on that cluster."""
    placement = binding.spec.placement
    if placement is None or not (placement.is_duplicated or not binding.spec.is_workload):
        return False
    return not ignores_spread(placement) and last_constraint(placement, SPREAD_BY_REGION) is not None


def question(binding: Binding) -> Hashable:
    """Return what a decision depends on; the name of the binding if that is more than what many may agree in.

    Of the uid of the workload only counts which name a tie of the division goes to.
    """
    spec = binding.spec
    placement = spec.placement
    if placement is None or spec.components or spec.workload_affinity_groups:
        return binding.key
    requirements = spec.replica_requirements
    return (
        spec.scheduler_name,
        placement,
        webster.prefers_descending_names(spec.resource.uid),
        spec.replicas,
        None if requirements is None else requirements.key,
        spec.clusters,
        spec.graceful_eviction_tasks,
        spec.resource.api_version,
        spec.resource.kind,
        binding.status.scheduler_observing_affinity_name,
        binding.applied_placement_json,
        binding.reschedule_triggered,
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
