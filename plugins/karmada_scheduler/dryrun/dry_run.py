"""Decides without a control plane, each binding by the rules of its own scheduler.

The decision itself is ``core.schedule.SchedulingAlgorithm.decide``, which the scheduler calls, too. Before it, PreEnqueue
plugins run, as before a binding enters the queue. ``forecast.Simulation`` adds Reserve and Permit, and what each decision
changes for the next one.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import (
    Assumed,
    Estimators,
    ReplicaEstimator,
    with_footprint,
)
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.dryrun.objects import Frameworks, ShownObjects
from karmada_scheduler.dryrun.result import HoldReasons
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import IdentityStruct, field

T = TypeVar("T")

NOTHING_ASSUMED: Final[Assumed] = {}


class DryRun(IdentityStruct):
    """The rules of one scheduler, and the objects that its plugins see; all decisions share the caches of one core.

    Bindings of other schedulers are decided by their rules, where these are known.

    Attributes:
        gates: Feature gates.
        objects: The objects that the handles of the plugins show.
        frameworks: The plugins of each profile.
        empty_workload_propagation: Whether selected clusters without replicas become targets.
        session: The estimators in the member clusters; None without them.
        others: The rules of other schedulers, by name, about the same objects.
        estimators: The estimators of ``algorithm``, and those in the member clusters.
        peers: The bindings of workload groups; None without the gate WorkloadAffinity.
        algorithm: The core.
    """

    gates: FeatureGates
    objects: ShownObjects
    frameworks: Frameworks
    empty_workload_propagation: bool = False
    session: ReplicaEstimator | None = None
    others: Mapping[str, DryRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the core."""
        local = (GeneralEstimator(self.gates),)
        self.estimators = Estimators(local, self.session)
        self.peers = self.objects.bindings if self.gates.enabled("WorkloadAffinity") else None
        self.objects.show_workloads_to(self.frameworks)
        self.algorithm = SchedulingAlgorithm(
            self.gates,
            local,
            empty_workload_propagation=self.empty_workload_propagation,
            peers=self.peers,
            stored=self.objects.bindings.get,
            stored_workload=self.objects.stored_workload,
        )

    @property
    def accounts(self) -> bool:
        """Whether decisions see the replicas of those before them."""
        return self.gates.enabled("SchedulingOvercommitProtection")

    @property
    def is_coupled(self) -> bool:
        """Whether the decision about one binding can change that about another."""
        counts_others = self.accounts or self.peers is not None
        return counts_others or self.frameworks.has_own_plugins or self.frameworks.has_guards

    def of(self, binding: Binding) -> DryRun | None:
        """Return the rules of the scheduler of a binding: these, or others; None if they are not known."""
        if self.frameworks.of(binding) is not None:
            return self
        return self.others.get(binding.spec.responsible_scheduler)

    def knows(self, binding: Binding) -> bool:
        """Return whether the rules of the scheduler of a binding are known."""
        return self.of(binding) is not None

    def may_decide(self, binding: Binding) -> bool:
        """Return whether a binding is decided by known rules unless its scheduling is suspended."""
        return binding.spec.placement is not None and not binding.deleting and self.knows(binding)

    def type_of(self, binding: Binding, snapshot: Snapshot) -> ScheduleType:
        """Return what asks for a decision about a binding, suspended or not; AVOID if nothing known does."""
        rules = self.of(binding)
        if rules is None or not self.may_decide(binding):
            return ScheduleType.AVOID
        return classify(binding, is_gone=snapshot.is_gone, gates=rules.gates).type

    def workload_for(self, binding: Binding, framework: Framework) -> WorkloadAnswer | None:
        """Return the workload of a binding; None if no plugin of its profile needs it."""
        return self.objects.workloads.of(binding) if framework.needs_workload else None

    def in_queue_order(self, bindings: Iterable[Binding]) -> list[Binding]:
        """Return bindings in the order of the scheduling queue: that of the input, or by priority with its gate."""
        if not self.gates.enabled("PriorityBasedScheduling"):
            return list(bindings)
        return sorted(bindings, key=lambda each: -each.spec.priority)

    def assuming(self, assumed: Assumed, binding: Binding, targets: tuple[TargetCluster, ...]) -> Assumed:
        """Return what counts as taken after a decision."""
        rules = self.of(binding)
        counts = targets and rules is not None and rules.accounts
        return with_footprint(assumed, binding, targets) if counts else assumed

    def decide(
        self, binding: Binding, snapshot: Snapshot, assumed: Assumed = NOTHING_ASSUMED
    ) -> Decision | HoldReasons:
        """Return the stable decision about a binding, whether or not anything asks for it.

        Args:
            binding: A binding that ``may_decide`` accepts.
            snapshot: All clusters.
            assumed: Placements that count as taken.

        Returns:
            The decision; why PreEnqueue keeps the binding out of the queue, if a plugin does.
        """
        rules = self.of(binding)
        assert rules is not None  # may_decide
        if rules is not self:
            return rules.decide(binding, snapshot, assumed if rules.accounts else NOTHING_ASSUMED)
        framework = self.frameworks.of(binding)
        assert framework is not None
        return run(self.deciding(binding, snapshot, framework, assumed), waits=framework.is_async)

    async def deciding(
        self,
        binding: Binding,
        snapshot: Snapshot,
        framework: Framework,
        assumed: Assumed,
        *,
        keep_steps: bool = False,
    ) -> Decision | HoldReasons:
        """Do what ``decide`` does, in a coroutine; it waits only where plugins do.

        With ``keep_steps``, the decision keeps what its steps worked with.
        """
        workload = self.workload_for(binding, framework)
        try:
            gate = framework.binding.run_pre_enqueue(binding, workload)
        except PluginError as error:
            return Decision(binding.key, error=error)
        if not gate.is_success:
            return HoldReasons(Point.PRE_ENQUEUE, {gate.plugin: gate.message})
        known = self.objects.bindings
        return await self.algorithm.decide(
            binding,
            snapshot,
            framework,
            session=self.estimators.session,
            assumed=assumed,
            in_flight=known.in_flight if known.waiting else (),
            workload=workload,
            keep_steps=keep_steps,
        )


def run(coroutine: Coroutine[Any, Any, T], *, waits: bool) -> T:
    """Return the result of a coroutine; in an event loop of its own if it ``waits``.

    Raises:
        WaitsError: It waits for something although ``waits`` is False.
    """
    if not waits:
        return run_sync(coroutine)
    import asyncio

    return asyncio.run(coroutine)
