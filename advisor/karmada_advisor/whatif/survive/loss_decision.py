"""What a loss needs of one decision, and which bindings may share one."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from karmada_advisor.whatif.survive.classify import FailedBy, Targets
from karmada_advisor.whatif.survive.sweep import Sweeps
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.algorithms import webster
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.written import as_written
from karmada_scheduler.framework.diagnosis import (
    FitError,
    HeldError,
    KeptError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.structs import Struct, field

_NO_CAPACITY: Final = "no enough resource"
"""In the text of the error of a selection by cluster for which the replicas do not fit."""


class LossDecision(NamedTuple):
    """A decision, as far as a loss needs it.

    Attributes:
        after: The clusters of the binding afterwards.
        failed_by: Why it failed.
        message: Of the failure; "" without one.
        is_held: Whether a plugin keeps the binding as it is.
    """

    after: Targets
    failed_by: FailedBy = FailedBy.NOTHING
    message: str = ""
    is_held: bool = False


def decided(found: Decision | None, before: Targets) -> LossDecision:
    """Return what a loss needs of a decision about a binding on some clusters; None if PreEnqueue plugins hold it."""
    if found is None:
        return LossDecision(before, is_held=True)
    after = before if found.targets is None else found.targets
    error = found.error
    if error is None:
        return LossDecision(after)
    return LossDecision(
        after, failed_by(error), condition_for(error).message, isinstance(error, HeldError | KeptError)
    )


def settled(binding: Binding, found: Decision) -> Binding:
    """Return a binding after a decision is written, at a time after which a requested reschedule is done."""
    return as_written(binding, found, binding.spec.reschedule_triggered_at or datetime.fromtimestamp(0, UTC))


def failed_by(error: SchedulingError) -> FailedBy:
    """Return why a decision failed."""
    if isinstance(error, FitError):
        return FailedBy.FIT
    if isinstance(error, PluginError):
        return FailedBy.PLUGIN
    return (
        FailedBy.CAPACITY
        if isinstance(error, UnschedulableError) or _NO_CAPACITY in str(error)
        else FailedBy.RULE
    )


class SharedDecisions(Struct):
    """Decisions about equal questions.

    Attributes:
        questions: A number for each question, as hashing a question takes long.
        standing: Decisions without any loss, and what they tell about sweeps.
        decided: Decisions after losses.
    """

    questions: dict[Hashable, int] = field(default_factory=dict)
    standing: dict[Hashable, tuple[Decision | None, Sweeps | None]] = field(default_factory=dict)
    decided: dict[Hashable, LossDecision] = field(default_factory=dict)


def question(binding: Binding) -> Hashable | None:
    """Return what a decision depends on; None if that is more than what many bindings may agree in.

    Of the uid of the workload only counts which name a tie of the division goes to.
    """
    spec = binding.spec
    placement = spec.placement
    if placement is None or spec.components or spec.workload_affinity_groups:
        return None
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
