"""Bindings as rows: the state that is stored, without deciding anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import PolicyRef, Target
from karmada_advisor.state.model import Applied, BindingEntry, BindingState, ClusterStatus
from karmada_advisor.state.reading import Facts, state_of
from karmada_advisor.state.stored import condition_of
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.structs import Struct

_NO_FACTS: Final = Facts()


class Share(Struct, frozen=True):
    """A part of a whole; more than the whole while a placement shrinks."""

    part: int
    whole: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.part >= self.whole


class BindingRow(BindingEntry, frozen=True):
    """One binding.

    Attributes:
        workload: Kind and name of the workload.
        replicas: What it wants in all; 0 for a workload without replicas.
        state: What is stored, and who decides.
        reason: The reason of the condition Scheduled; "" without one.
        message: The message of that condition.
        is_due: Whether its generation was not scheduled yet.
        last_scheduled: In the format of the API; "" if it never was.
    """

    workload: str
    replicas: int
    state: BindingState
    reason: str
    message: str
    is_due: bool
    policy: PolicyRef | None
    scheduler: str
    last_scheduled: str

    @property
    def placement(self) -> tuple[Target, ...]:
        """The stored clusters."""
        return self.state.clusters

    @property
    def key(self) -> BindingKey:
        """Its key."""
        return BindingKey(self.kind, self.namespace, self.name)

    @property
    def running(self) -> Share | None:
        """Clusters on which it is applied, of all that it has; None if no cluster has reported."""
        rows = [each for each in self.state.rows if each.wanted is not None]
        if all(each.applied is Applied.NOT_REPORTED for each in rows):
            return None
        return Share(sum(each.applied is Applied.YES for each in rows), len(rows))

    @property
    def ready(self) -> Share | None:
        """Replicas that are ready, of all that its clusters should run; None if no cluster has reported any."""
        rows = [each for each in self.state.rows if each.wanted is not None]
        if all(each.ready is None for each in rows):
            return None
        return Share(sum(each.ready or 0 for each in rows), sum(each.wanted or 0 for each in rows))

    def on(self, cluster: str) -> ClusterStatus | None:
        """Return what is stored about it on a cluster; None if it is not there."""
        return next((each for each in self.state.rows if each.name == cluster), None)


def row_of(
    binding: Binding, manifest: Mapping[str, Any] | None = None, facts: Facts = _NO_FACTS
) -> BindingRow:
    """Return the row of a binding.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        facts: What is stored besides it.
    """
    stored = state_of(binding, manifest or {}, facts)
    condition = condition_of(binding)
    spec, status = binding.spec, binding.status
    last = status.last_scheduled_time
    return BindingRow(
        kind=binding.key.kind,
        namespace=binding.key.namespace,
        name=binding.key.name,
        workload=f"{spec.resource.kind} {spec.resource.name}".strip(),
        replicas=spec.replicas,
        state=stored,
        reason=condition.reason,
        message=condition.message,
        is_due=status.scheduler_observed_generation != binding.generation,
        policy=policy_of(binding.annotations),
        scheduler=spec.responsible_scheduler,
        last_scheduled="" if last is None else format_time(last),
    )
