"""Where bindings would settle: one decision after the other, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from karmada_scheduler.api.binding import Binding, BindingKey, BindingStatus, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, SCHEDULED_CONDITION, Condition
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.cli.simulate.state import SimulatedBindings, WaitingDecision
from karmada_scheduler.cli.simulate.workloads import NONE_GIVEN
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import Assumed, with_footprint
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.cycle import no_workload
from karmada_scheduler.framework.diagnosis import FitError, PluginError, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import SUCCESS, Result
from karmada_scheduler.framework.runtime.framework import Framework


class Outcome(Enum):
    """What becomes of a binding; the values are how a summary says it."""

    PLACED = "placed"
    NOT_PLACED = "not"
    GATED = "gated at PreEnqueue"
    WAITING = "waiting at Permit"
    LEFT_ALONE = "left alone"  # suspended, being deleted, or of no policy, and without a place
    OTHER_SCHEDULER = "of other schedulers"


@dataclass(frozen=True, slots=True)
class Held:
    """Why nothing would be written about a binding for now.

    Attributes:
        point: PreEnqueue, where it is gated, or Permit, where its decision waits.
        reasons: What each plugin that holds it gave as its reason, by name.
    """

    point: Point
    reasons: Mapping[str, str]

    def __str__(self) -> str:
        """Write it for people."""
        what = "gated at" if self.point is Point.PRE_ENQUEUE else "waits at"
        plugins = [f"{name}: {reason}" if reason else name for name, reason in self.reasons.items()]
        return f"{what} {self.point.label}: {'; '.join(plugins)}"

    def as_fields(self) -> dict[str, Any]:
        """Return it as it is written for programs."""
        return {"point": self.point.value, "plugins": dict(self.reasons)}


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a binding would settle.

    Attributes:
        condition: None for a binding that would be left alone and has none.
        has_profile: Whether a profile has the binding's ``schedulerName``. If not, another scheduler decides, and the
            binding is shown as it is.
        held: What keeps it from being placed for now; it is shown as it is.
    """

    binding: Binding
    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    condition: Condition | None
    affinity_name: str
    has_profile: bool = True
    held: Held | None = None

    @property
    def outcome(self) -> Outcome:
        """What the summary counts it as."""
        if not self.has_profile:
            return Outcome.OTHER_SCHEDULER
        if self.held is not None:
            return Outcome.GATED if self.held.point is Point.PRE_ENQUEUE else Outcome.WAITING
        if self.condition is not None:
            return Outcome.PLACED if self.condition.status == "True" else Outcome.NOT_PLACED
        return Outcome.PLACED if self.targets else Outcome.LEFT_ALONE

    def as_fields(self) -> dict[str, Any]:
        """Return it as it is written for programs."""
        key, condition = self.binding.key, self.condition
        return {
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
            "schedulerName": self.binding.spec.responsible_scheduler,
            "otherScheduler": not self.has_profile,
            "heldAt": None if self.held is None else self.held.as_fields(),
            "scheduleType": self.type.value,
            "clusters": [{"name": target.name, "replicas": target.replicas} for target in self.targets],
            "affinityName": self.affinity_name,
            "condition": None
            if condition is None
            else {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            },
        }


def simulate(
    bindings: Iterable[Binding],
    clusters: Iterable[Cluster],
    *,
    framework_of: Callable[[Binding], Framework | None],
    gates: FeatureGates,
    known: SimulatedBindings | None = None,
    empty_workload_propagation: bool = False,
    workload_of: Callable[[Binding], WorkloadAnswer] = lambda _: NONE_GIVEN,
    stored_workload: Callable[[BindingKey], Workload | None] = no_workload,
) -> list[Placed]:
    """Decide about one binding after the other, each as if the decisions before it had been written.

    Args:
        bindings: In the order in which they are decided.
        clusters: As they are; what is decided does not change their status.
        framework_of: The plugins of a binding's profile; None for one that another scheduler decides.
        gates: Feature gates.
        known: What the plugins' handles have; it takes the decisions over.
        empty_workload_propagation: Whether selected clusters without replicas become targets, too.
        workload_of: What is known of a binding's workload; asked where a plugin needs it.
        stored_workload: Returns the workload of another binding for plugins, None if it is not known.
    """
    if known is None:
        bindings = list(bindings)
        known = SimulatedBindings(bindings)
    simulation = Simulation(
        clusters,
        framework_of=framework_of,
        gates=gates,
        known=known,
        empty_workload_propagation=empty_workload_propagation,
        workload_of=workload_of,
        stored_workload=stored_workload,
    )
    return simulation.run(bindings)


class Simulation:
    """Decisions in memory."""

    def __init__(
        self,
        clusters: Iterable[Cluster],
        *,
        framework_of: Callable[[Binding], Framework | None],
        gates: FeatureGates,
        known: SimulatedBindings,
        empty_workload_propagation: bool,
        workload_of: Callable[[Binding], WorkloadAnswer],
        stored_workload: Callable[[BindingKey], Workload | None],
    ) -> None:
        """Take what ``simulate`` takes."""
        self._snapshot = Snapshot.of(clusters)
        self._terminating = frozenset(cluster.name for cluster in self._snapshot if cluster.deleting)
        self._framework_of = framework_of
        self._gates = gates
        self._known = known
        self._workload_of = workload_of
        self._assumed: Assumed = {}
        self._algorithm = SchedulingAlgorithm(
            gates,
            [GeneralEstimator(gates)],
            empty_workload_propagation=empty_workload_propagation,
            peers=known if gates.enabled("WorkloadAffinity") else None,
            stored=known.get,
            stored_workload=stored_workload,
        )
        self._ended: dict[BindingKey, Decision] = {}
        """The decisions that waited at Permit until they were allowed, and why others were rejected there."""

    def run(self, bindings: Iterable[Binding]) -> list[Placed]:
        """Decide about bindings and return what becomes of them, in the given order."""
        settled = [self._place(each) for each in bindings]
        return [
            _settled(each.binding, each.type, self._ended[each.binding.key])
            if each.binding.key in self._ended
            else each
            for each in settled
        ]

    def _place(self, binding: Binding) -> Placed:
        verdict = ScheduleType.AVOID
        if (
            binding.spec.placement is not None
            and not binding.deleting
            and not binding.spec.scheduling_suspended
        ):
            verdict = classify(binding, terminating=self._terminating, gates=self._gates).type
        framework = self._framework_of(binding)
        if verdict is ScheduleType.AVOID or framework is None:
            return replace(_left_alone(binding), has_profile=framework is not None)
        waits = framework.is_async or framework.plugins.permit
        deciding = self._decide(binding, verdict, framework)
        placed = asyncio.run(deciding) if waits else run_sync(deciding)
        if self._known.waiting:
            self._end_waits()
        return placed

    async def _decide(self, binding: Binding, verdict: ScheduleType, framework: Framework) -> Placed:
        workload = self._workload_of(binding) if framework.needs_workload else None
        try:
            gate = framework.binding.run_pre_enqueue(binding, workload)
        except PluginError as error:
            return _settled(binding, verdict, Decision(binding.key, error=error))
        if not gate.is_success:
            held = Held(Point.PRE_ENQUEUE, {gate.plugin: gate.message})
            return replace(_left_alone(binding), type=verdict, held=held)
        decision = await self._algorithm.decide(
            binding,
            self._snapshot,
            framework,
            assumed=self._assumed,
            in_flight=self._known.in_flight if self._known.waiting else (),
            workload=workload,
        )
        if decision.targets is None:
            return _settled(binding, verdict, decision)
        context = _bind_context(binding, decision)
        if context is not None:
            try:
                held_by = await self._reserve_and_permit(context, decision, framework)
            except SchedulingError as error:
                return _settled(binding, verdict, Decision(binding.key, error=error))
            if held_by is not None:
                return replace(_left_alone(binding), type=verdict, held=held_by)
        self._assume(binding, decision.targets)
        self._known.place(binding, decision)
        return _settled(binding, verdict, decision)

    async def _reserve_and_permit(
        self, context: BindContext, decision: Decision, framework: Framework
    ) -> Held | None:
        """Ask the plugins; return what the decision waits for, None if it does not wait.

        Raises:
            SchedulingError: One refused or failed; nothing is claimed any more.
        """
        points, waits = framework.binding, dict[str, Result]()

        async def wait(results: Mapping[str, Result]) -> Result:
            waits.update(results)
            return SUCCESS

        points.reserve(context)
        try:
            await points.permit(context, wait)
        except SchedulingError:
            points.unreserve(context)
            raise
        if not waits:
            return None
        self._known.waiting[context.binding.key] = WaitingDecision(context, decision, waits)
        self._assume(context.binding, tuple(context.targets))
        return Held(Point.PERMIT, {name: result.message for name, result in waits.items()})

    def _end_waits(self) -> None:
        """Take over what plugins have allowed or rejected meanwhile; giving claims back may reject others."""
        waiting = self._known.waiting
        while over := [each for each in waiting.values() if each.is_over]:
            for each in over:
                binding, decision = each.binding, each.decision
                del waiting[binding.key]
                if each.refusal:
                    self._assume(binding, binding.spec.clusters)
                    decision = Decision(binding.key, error=UnschedulableError(each.refusal))
                    framework = self._framework_of(binding)
                    assert framework is not None  # it has decided
                    framework.binding.unreserve(each.context)
                else:
                    self._known.place(binding, decision)
                self._ended[binding.key] = decision

    def _assume(self, binding: Binding, targets: tuple[TargetCluster, ...]) -> None:
        if targets and self._gates.enabled("SchedulingOvercommitProtection"):
            self._assumed = with_footprint(self._assumed, binding, targets)


def _bind_context(binding: Binding, decision: Decision) -> BindContext | None:
    """Return what Reserve and Permit get, None for a decision that passes them by, as in the scheduler."""
    if isinstance(decision.error, FitError) or decision.targets is None or decision.cycle is None:
        return None
    if (decision.targets, decision.applied_placement) == (
        binding.spec.clusters,
        binding.applied_placement_json,
    ):
        return None
    return BindContext(binding, decision.targets, decision.cycle, _write_nothing)


async def _write_nothing() -> Binding:
    raise RuntimeError("nothing is written in a simulation")


def as_new(binding: Binding) -> Binding:
    """Return a binding as if it had never been scheduled: without a place, a status, and evictions."""
    annotations = {
        name: value for name, value in binding.annotations.items() if name != APPLIED_PLACEMENT_ANNOTATION
    }
    spec = replace(binding.spec, clusters=(), graceful_eviction_tasks=())
    return replace(binding, annotations=annotations, spec=spec, status=BindingStatus())


def _left_alone(binding: Binding) -> Placed:
    found = binding.status.condition(SCHEDULED_CONDITION)
    condition = (
        None
        if found is None
        else Condition(
            SCHEDULED_CONDITION, *(str(found.get(name) or "") for name in ("status", "reason", "message"))
        )
    )
    name = binding.status.scheduler_observing_affinity_name
    return Placed(binding, ScheduleType.AVOID, binding.spec.clusters, condition, name)


def _settled(binding: Binding, type_: ScheduleType, decision: Decision) -> Placed:
    condition = condition_for(decision.error)
    name = decision.affinity_name
    return Placed(
        binding,
        type_,
        binding.spec.clusters if decision.targets is None else decision.targets,
        Condition(SCHEDULED_CONDITION, condition.status, condition.reason, condition.message),
        binding.status.scheduler_observing_affinity_name if name is None else name,
    )
