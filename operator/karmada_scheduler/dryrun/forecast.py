"""Schedules bindings one after the other, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from karmada_scheduler.api.binding import Binding, BindingKey, BindingStatus, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import Assumed, with_footprint
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.dryrun.result import Held, SimulationResult, decided, unchanged
from karmada_scheduler.dryrun.state import SimulatedBindings, WaitingDecision
from karmada_scheduler.dryrun.workloads import NONE_GIVEN
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.cycle import no_workload
from karmada_scheduler.framework.diagnosis import FitError, PluginError, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import SUCCESS, Result
from karmada_scheduler.framework.runtime.framework import Framework


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
) -> list[SimulationResult]:
    """Schedule one binding after the other, each as if the previous decisions had been written.

    Args:
        bindings: The bindings, in the order in which they are scheduled.
        clusters: The clusters; decisions do not change their status.
        framework_of: Returns the plugins of a binding's profile; None if another scheduler is responsible.
        gates: Feature gates.
        known: The bindings that the plugins' handles return; decisions are stored there.
        empty_workload_propagation: Whether selected clusters without replicas become targets, too.
        workload_of: Returns the metadata of a binding's workload; called where a plugin needs it.
        stored_workload: Returns the workload of another binding for plugins, None without one.
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
    """One simulation."""

    def __init__(
        self,
        clusters: Iterable[Cluster] | Snapshot,
        *,
        framework_of: Callable[[Binding], Framework | None],
        gates: FeatureGates,
        known: SimulatedBindings,
        empty_workload_propagation: bool,
        workload_of: Callable[[Binding], WorkloadAnswer],
        stored_workload: Callable[[BindingKey], Workload | None],
        algorithm: SchedulingAlgorithm | None = None,
    ) -> None:
        """Prepare; the other arguments are those of ``simulate``.

        Args:
            algorithm: The core with the same arguments, to share its caches; None for a new one.
        """
        self._snapshot = clusters if isinstance(clusters, Snapshot) else Snapshot.of(clusters)
        self._terminating = self._snapshot.terminating
        self._framework_of = framework_of
        self._gates = gates
        self._known = known
        self._workload_of = workload_of
        self._assumed: Assumed = {}
        self._algorithm = algorithm or SchedulingAlgorithm(
            gates,
            [GeneralEstimator(gates)],
            empty_workload_propagation=empty_workload_propagation,
            peers=known if gates.enabled("WorkloadAffinity") else None,
            stored=known.get,
            stored_workload=stored_workload,
        )
        self._permit_results: dict[BindingKey, Decision] = {}
        """The decisions that have waited at Permit: allowed ones, and the errors of rejected ones."""

    def run(self, bindings: Iterable[Binding]) -> list[SimulationResult]:
        """Schedule bindings and return the results in their order."""
        results = [self._place(each) for each in bindings]
        return [
            decided(each.binding, each.type, self._permit_results[each.binding.key])
            if each.binding.key in self._permit_results
            else each
            for each in results
        ]

    def _place(self, binding: Binding) -> SimulationResult:
        schedule_type = ScheduleType.AVOID
        if (
            binding.spec.placement is not None
            and not binding.deleting
            and not binding.spec.scheduling_suspended
        ):
            schedule_type = classify(binding, terminating=self._terminating, gates=self._gates).type
        framework = self._framework_of(binding)
        if schedule_type is ScheduleType.AVOID or framework is None:
            return replace(unchanged(binding), has_profile=framework is not None)
        waits = framework.is_async or framework.plugins.permit
        coroutine = self._decide(binding, schedule_type, framework)
        result = asyncio.run(coroutine) if waits else run_sync(coroutine)
        if self._known.waiting:
            self._end_waits()
        return result

    async def _decide(
        self, binding: Binding, schedule_type: ScheduleType, framework: Framework
    ) -> SimulationResult:
        workload = self._workload_of(binding) if framework.needs_workload else None
        try:
            gate = framework.binding.run_pre_enqueue(binding, workload)
        except PluginError as error:
            return decided(binding, schedule_type, Decision(binding.key, error=error))
        if not gate.is_success:
            held = Held(Point.PRE_ENQUEUE, {gate.plugin: gate.message})
            return replace(unchanged(binding), type=schedule_type, held=held)
        decision = await self._algorithm.decide(
            binding,
            self._snapshot,
            framework,
            assumed=self._assumed,
            in_flight=self._known.in_flight if self._known.waiting else (),
            workload=workload,
        )
        if decision.targets is None:
            return decided(binding, schedule_type, decision)
        context = _bind_context(binding, decision)
        if context is not None:
            try:
                held_by = await self._reserve_and_permit(context, decision, framework)
            except SchedulingError as error:
                return decided(binding, schedule_type, Decision(binding.key, error=error))
            if held_by is not None:
                return replace(unchanged(binding), type=schedule_type, held=held_by)
        self._assume(binding, decision.targets)
        self._known.place(binding, decision)
        return decided(binding, schedule_type, decision)

    async def _reserve_and_permit(
        self, context: BindContext, decision: Decision, framework: Framework
    ) -> Held | None:
        """Run Reserve and Permit; return why the decision waits, None if it does not.

        Raises:
            SchedulingError: A plugin refused or failed; Unreserve has run.
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
        """End the waits that plugins have allowed or rejected; Unreserve may reject others."""
        waiting = self._known.waiting
        while over := [each for each in waiting.values() if each.is_over]:
            for each in over:
                binding, decision = each.binding, each.decision
                del waiting[binding.key]
                if each.refusal:
                    self._assume(binding, binding.spec.clusters)
                    decision = Decision(binding.key, error=UnschedulableError(each.refusal))
                    framework = self._framework_of(binding)
                    assert framework is not None  # it was used for the decision
                    framework.binding.unreserve(each.context)
                else:
                    self._known.place(binding, decision)
                self._permit_results[binding.key] = decision

    def _assume(self, binding: Binding, targets: tuple[TargetCluster, ...]) -> None:
        if targets and self._gates.enabled("SchedulingOvercommitProtection"):
            self._assumed = with_footprint(self._assumed, binding, targets)


def _bind_context(binding: Binding, decision: Decision) -> BindContext | None:
    """Return the context for Reserve and Permit, None for a decision without them, as in the scheduler."""
    if isinstance(decision.error, FitError) or decision.is_refused:
        return None
    if decision.targets is None or decision.cycle is None:
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
    """Return a binding as if it had never been scheduled: without clusters, status and evictions."""
    annotations = {
        name: value for name, value in binding.annotations.items() if name != APPLIED_PLACEMENT_ANNOTATION
    }
    spec = replace(binding.spec, clusters=(), graceful_eviction_tasks=())
    return replace(binding, annotations=annotations, spec=spec, status=BindingStatus())
