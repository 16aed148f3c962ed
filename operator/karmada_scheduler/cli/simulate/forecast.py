"""Where bindings would settle: one decision after the other, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from karmada_scheduler.api.binding import Binding, BindingKey, BindingStatus, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, SCHEDULED_CONDITION, Condition
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
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
from karmada_scheduler.framework.cycle import no_workload
from karmada_scheduler.framework.runtime.framework import Framework


class Outcome(Enum):
    """What becomes of a binding; the values are how a summary says it."""

    PLACED = "placed"
    NOT_PLACED = "not"
    LEFT_ALONE = "left alone"  # suspended, being deleted, or of no policy, and without a place
    OTHER_SCHEDULER = "of other schedulers"


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a binding would settle.

    Attributes:
        condition: None for a binding that would be left alone and has none.
        has_profile: Whether a profile has the binding's ``schedulerName``. If not, another scheduler decides, and the
            binding is shown as it is.
    """

    binding: Binding
    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    condition: Condition | None
    affinity_name: str
    has_profile: bool = True

    @property
    def outcome(self) -> Outcome:
        """What the summary counts it as."""
        if not self.has_profile:
            return Outcome.OTHER_SCHEDULER
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
    empty_workload_propagation: bool = False,
    workload_of: Callable[[Binding], WorkloadAnswer] = lambda _: NONE_GIVEN,
    stored_workload: Callable[[BindingKey], Workload | None] = no_workload,
) -> Iterator[Placed]:
    """Decide about one binding after the other.

    Args:
        bindings: In the order in which they are decided.
        clusters: As they are; what is decided does not change their status.
        framework_of: The plugins of a binding's profile; None for one that another scheduler decides.
        gates: Feature gates.
        empty_workload_propagation: Whether selected clusters without replicas become targets, too.
        workload_of: What is known of a binding's workload; asked where a plugin needs it.
        stored_workload: Returns the workload of another binding for plugins, None if it is not known.
    """
    snapshot = Snapshot.of(clusters)
    terminating = frozenset(cluster.name for cluster in snapshot if cluster.deleting)
    waiting = list(bindings)
    peers = _Peers(waiting)
    algorithm = SchedulingAlgorithm(
        gates,
        [GeneralEstimator(gates)],
        empty_workload_propagation=empty_workload_propagation,
        peers=peers if gates.enabled("WorkloadAffinity") else None,
        stored_workload=stored_workload,
    )
    assumed: Assumed = {}
    for binding in waiting:
        verdict = ScheduleType.AVOID
        if (
            binding.spec.placement is not None
            and not binding.deleting
            and not binding.spec.scheduling_suspended
        ):
            verdict = classify(binding, terminating=terminating, gates=gates).type
        framework = framework_of(binding)
        if verdict is ScheduleType.AVOID or framework is None:
            yield replace(_left_alone(binding), has_profile=framework is not None)
            continue
        deciding = algorithm.decide(
            binding,
            snapshot,
            framework,
            assumed=assumed,
            workload=workload_of(binding) if framework.needs_workload else None,
        )
        decision = asyncio.run(deciding) if framework.is_async else run_sync(deciding)
        if decision.targets is not None:
            if decision.targets and gates.enabled("SchedulingOvercommitProtection"):
                assumed = with_footprint(assumed, binding, decision.targets)
            peers.place(binding, decision.targets)
        yield _settled(binding, verdict, decision)


def as_new(binding: Binding) -> Binding:
    """Return a binding as if it had never been scheduled: without a place, a status, and evictions."""
    annotations = {
        name: value for name, value in binding.annotations.items() if name != APPLIED_PLACEMENT_ANNOTATION
    }
    spec = replace(binding.spec, clusters=(), graceful_eviction_tasks=())
    return replace(binding, annotations=annotations, spec=spec, status=BindingStatus())


class _Peers:
    """The bindings of the file by group, each where it was last decided to be."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self._bindings: dict[BindingKey, Binding] = {}
        self._keys: dict[tuple[int, str], list[BindingKey]] = {}
        for binding in bindings:
            self._bindings[binding.key] = binding
            for kind, group in enumerate(binding.spec.workload_affinity_groups or ()):
                self._keys.setdefault((kind, group), []).append(binding.key)

    def place(self, binding: Binding, targets: tuple[TargetCluster, ...]) -> None:
        """Remember where a binding was decided to be."""
        self._bindings[binding.key] = replace(binding, spec=replace(binding.spec, clusters=targets))

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Look an affinity group up."""
        return [self._bindings[key] for key in self._keys.get((0, group), ())]

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Look an anti-affinity group up."""
        return [self._bindings[key] for key in self._keys.get((1, group), ())]


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
