"""Where bindings would settle: one decision after the other, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.meta import SCHEDULED_CONDITION, Condition
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.at_once import at_once
from karmada_scheduler.core.available_replicas import Assumed, with_footprint
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.outcome import condition_for
from karmada_scheduler.core.schedule import decide
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Framework, Snapshot


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a binding would settle.

    Attributes:
        condition: None for a binding that would be left alone and has none.
    """

    binding: Binding
    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    condition: Condition | None
    affinity_name: str

    def as_fields(self) -> dict[str, Any]:
        """Return it as it is written for programs."""
        key, condition = self.binding.key, self.condition
        return {
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
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
) -> Iterator[Placed]:
    """Decide about one binding after the other.

    Args:
        bindings: In the order in which they are decided.
        clusters: As they are; what is decided does not change their status.
        framework_of: The plugins of a binding's profile; None for one that another scheduler decides.
        gates: Feature gates.
        empty_workload_propagation: Whether selected clusters without replicas become targets, too.
    """
    snapshot = Snapshot.of(clusters)
    terminating = frozenset(cluster.name for cluster in snapshot if cluster.deleting)
    estimators = [GeneralEstimator(gates)]
    waiting = list(bindings)
    peers = _Peers(waiting)
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
            yield _left_alone(binding)
            continue
        deciding = decide(
            binding,
            snapshot,
            framework=framework,
            estimators=estimators,
            gates=gates,
            empty_workload_propagation=empty_workload_propagation,
            assumed=assumed,
            peers=peers if gates.enabled("WorkloadAffinity") else None,
        )
        decision = asyncio.run(deciding) if framework.talks else at_once(deciding)
        if decision.targets is not None:
            if decision.targets and gates.enabled("SchedulingOvercommitProtection"):
                assumed = with_footprint(assumed, binding, decision.targets)
            peers.place(binding, decision.targets)
        yield _settled(binding, verdict, decision)


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

    def assigning(self, key: BindingKey) -> Binding | None:  # noqa: ARG002
        """Return None: what was decided is remembered at once."""
        return None


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
