"""Schedules bindings one after the other, in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from karmada_scheduler.api.binding import Binding, BindingKey, BindingStatus, TargetCluster
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import bind_context
from karmada_scheduler.dryrun.dry_run import NOTHING_ASSUMED, DryRun, run
from karmada_scheduler.dryrun.objects import WaitingDecision
from karmada_scheduler.dryrun.result import HoldReasons, SimulationResult, decided, unchanged
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.diagnosis import SchedulingError, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import SUCCESS, Result
from karmada_scheduler.framework.runtime.binding_points import RefusedError
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.waiting_bindings import PendingPermit
from karmada_scheduler.structs import replace


class Simulation:
    """One simulation: binding after binding, each as if the previous decisions had been written."""

    def __init__(self, rules: DryRun, snapshot: Snapshot, *, keep_steps: bool = False) -> None:
        """Schedule by these rules, on these clusters; decisions do not change their status.

        Decisions are stored in the bindings of ``rules.objects``. With ``keep_steps``, they keep what their steps worked
        with.
        """
        self._keep_steps = keep_steps
        self._rules = rules
        self._snapshot = snapshot
        self._known = rules.objects.bindings
        self._assumed = NOTHING_ASSUMED
        self._permit_results: dict[BindingKey, Decision] = {}
        """The decisions that have waited at Permit: allowed ones, and the errors of rejected ones."""

    def run(self, bindings: Iterable[Binding]) -> list[SimulationResult]:
        """Schedule bindings and return the results in their order."""
        results = [self._place(binding) for binding in bindings]
        return [
            decided(result.binding, result.type, self._permit_results[result.binding.key])
            if result.binding.key in self._permit_results
            else result
            for result in results
        ]

    def _place(self, binding: Binding) -> SimulationResult:
        rules = self._rules.of(binding)
        framework = None if rules is None else rules.frameworks.of(binding)
        if rules is None or framework is None:
            return replace(unchanged(binding), has_profile=False)
        schedule_type = ScheduleType.AVOID
        if not binding.spec.scheduling_suspended:
            schedule_type = self._rules.type_of(binding, self._snapshot)
        if schedule_type is ScheduleType.AVOID:
            return unchanged(binding)
        waits = framework.is_async or bool(framework.plugins.permit)
        result = run(self._schedule(binding, schedule_type, rules, framework), waits=waits)
        if self._known.waiting:
            self._end_waits()
        return result

    async def _schedule(
        self, binding: Binding, schedule_type: ScheduleType, rules: DryRun, framework: Framework
    ) -> SimulationResult:
        assumed = self._assumed if rules.accounts else NOTHING_ASSUMED
        decision = await rules.deciding(
            binding, self._snapshot, framework, assumed, keep_steps=self._keep_steps
        )
        if isinstance(decision, HoldReasons):
            return replace(unchanged(binding), type=schedule_type, held=decision)
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
    ) -> HoldReasons | None:
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
        permit = PendingPermit(context.binding, frozenset(), dict.fromkeys(waits, math.inf))
        self._known.waiting[context.binding.key] = WaitingDecision(context, decision, permit)
        self._assume(context.binding, tuple(context.targets))
        return HoldReasons(Point.PERMIT, {name: result.message for name, result in waits.items()})

    def _end_waits(self) -> None:
        """End the waits that plugins have allowed or rejected; Unreserve may reject others."""
        waiting = self._known.waiting
        while over := [wait for wait in waiting.values() if wait.permit.result is not None]:
            for wait in over:
                binding, decision, result = wait.permit.binding, wait.decision, wait.permit.result
                del waiting[binding.key]
                if isinstance(result, Result) and not result.is_success:
                    self._assume(binding, binding.spec.clusters)
                    decision = Decision(binding.key, error=UnschedulableError(result.message))
                    framework = self._rules.frameworks.of(binding)
                    assert framework is not None  # it was used for the decision
                    framework.binding.unreserve(wait.context)
                else:
                    self._known.place(binding, decision)
                self._permit_results[binding.key] = decision

    def _assume(self, binding: Binding, targets: tuple[TargetCluster, ...]) -> None:
        self._assumed = self._rules.assuming(self._assumed, binding, targets)


def _bind_context(binding: Binding, decision: Decision) -> BindContext | None:
    """Return the context for Reserve and Permit, None for a decision without them, as in the scheduler."""
    stored = binding.spec.clusters, binding.applied_placement_json
    changes = (decision.targets, decision.applied_placement) != stored
    return bind_context(binding, decision, _write_nothing) if changes else None


async def _write_nothing() -> Binding:
    raise RuntimeError("nothing is written in a simulation")


class AtPermitError(RefusedError):
    """A decision would wait at Permit until a plugin allows it."""

    def __init__(self, plugin: str, why: str) -> None:
        super().__init__(plugin, Point.PERMIT, why)
        self.args = (f"held back at Permit by {plugin}: {why}",)


async def admitted(binding: Binding, decision: Decision, framework: Framework) -> Decision:
    """Return a decision after Reserve and Permit, which are undone; with an error if a plugin refuses it, or lets it wait."""
    context = _bind_context(binding, decision)
    if context is None:
        return decision
    points = framework.binding

    async def wait(results: Mapping[str, Result]) -> Result:
        raise AtPermitError(*next((name, result.message) for name, result in results.items()))

    try:
        points.reserve(context)
        try:
            await points.permit(context, wait)
        finally:
            points.unreserve(context)
    except SchedulingError as error:
        return replace(decision, targets=None, applied_placement=None, affinity_name=None, error=error)
    return decision


def as_new(binding: Binding) -> Binding:
    """Return a binding as if it had never been scheduled: without clusters, status and evictions."""
    annotations = {
        name: value for name, value in binding.annotations.items() if name != APPLIED_PLACEMENT_ANNOTATION
    }
    spec = replace(binding.spec, clusters=(), graceful_eviction_tasks=())
    return replace(binding, annotations=annotations, spec=spec, status=BindingStatus())
