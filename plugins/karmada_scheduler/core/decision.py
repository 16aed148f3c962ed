"""A decision about a binding, with all its attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import groupby, starmap

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.binding_spec import TargetComponents
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.diagnosis import Diagnosis, KeptError, SchedulingError
from karmada_scheduler.framework.guard_point import EvictionTask, Proposal
from karmada_scheduler.structs import Struct, equal_without, field


class TermAttempt(Struct, frozen=True):  # noqa: PLW1641 - nothing hashes it
    """One run of the algorithm with one affinity term.

    Attributes:
        affinity_name: The term; empty with a single affinity.
        cycle: The context that plugins received, with their cycle state, and with what the steps kept if that was asked for.
        targets: The result, in the order in which it is written; None after an error.
        error: Why the run ended without a result.
        diagnosis: Why clusters did not pass the filters.
        scores: Plugin name to scores, one per cluster that passed the filters, in the order of names.
        candidates: The clusters that passed, in the order of preference, with score and available replicas.
        selected: The candidates that Select chose.
        may_work_next_time: Whether a PostFilter plugin returned success, so that a retry may work.
    """

    affinity_name: str = ""
    cycle: Cycle | None = None
    targets: tuple[TargetCluster, ...] | None = None
    error: SchedulingError | None = None
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    scores: Mapping[str, Sequence[int]] = field(default_factory=dict)
    candidates: Sequence[Candidate] = ()
    selected: Sequence[Candidate] = ()
    may_work_next_time: bool = False

    def __eq__(self, other: object) -> bool:
        return equal_without("cycle", self, other)


def are_same_targets(one: Sequence[TargetCluster] | None, other: Sequence[TargetCluster] | None) -> bool:
    """Return whether two results are the same in whatever order, which scores decide; None is the same as None only."""
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and sorted(one) == sorted(other)


class TermFailure(Struct, frozen=True):
    """An affinity term that failed; each is reported in an Event."""

    index: int
    name: str
    error: SchedulingError


class Guarded(Struct, frozen=True):
    """What Guard plugins add to a decision, or make of it.

    Attributes:
        refused_by: The plugin that keeps the placement, "" if the decision is let through.
        reason: Its reason.
        refused_targets: The targets of the refused decision; None if no cluster fits.
        tasks: Eviction tasks to write with the targets.
        annotations: Annotations to set; None removes one.
        cancelled: The clusters whose eviction tasks of this scheduler are removed, because they take the workload back.
        warning: What people should know about the decision, "" for nothing.
    """

    refused_by: str = ""
    reason: str = ""
    refused_targets: tuple[TargetCluster, ...] | None = None
    tasks: tuple[EvictionTask, ...] = ()
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    cancelled: frozenset[str] = frozenset()
    warning: str = ""


class ReconsiderResult(Enum):
    """What became of a proposal of a Reconsider plugin."""

    ACCEPTED = "accepted"
    """It is written."""
    DECLINED = "declined"
    """The decision succeeds, and the plugin does not want it yet."""
    HELD = "held"
    """A Guard plugin does not let it through."""
    MISSED = "missed"
    """The decision fails."""
    FAILED = "failed"
    """A plugin failed, or the API server refused the write."""


class Reconsidered(Struct, frozen=True):
    """A proposal of a Reconsider plugin, and what became of it.

    Attributes:
        plugin: The plugin that proposed it.
        proposal: The proposal.
        result: What became of it.
        reason: Why nothing is written; "" if it is accepted.
        retry_after: The seconds that the plugin waits for; 0 if that is not known.
    """

    plugin: str
    proposal: Proposal
    result: ReconsiderResult
    reason: str = ""
    retry_after: float = 0.0


class Decision(Struct, frozen=True):
    """The result of scheduling a binding.

    Attributes:
        targets: The clusters to write, in this order; empty removes all; None keeps the current ones.
        applied_placement: The annotation to write with the targets; None if and only if ``targets`` is None.
        affinity_name: The affinity term in use, for the status; None keeps the current one.
        components: What each target has as ``components``, by the rules of 1.19; None keeps what is stored.
        error: Why the binding could not be scheduled; its text is the message of the condition.
        failed_terms: The affinity terms that failed, in order.
        attempts: The runs of the algorithm, in order; the last one counts.
        fallbacks: By cluster, the reason for using its resource summary instead of its estimator; all clusters
            if no estimate counted.
        guarded: The answers of Guard plugins; None without any, and for a decision that changes no clusters.
        reconsidered: The proposal that this decision tried, None for a decision that an event requires. Unless it is
            accepted, the decision is empty.
    """

    key: BindingKey
    targets: tuple[TargetCluster, ...] | None = None
    applied_placement: str | None = None
    affinity_name: str | None = None
    error: SchedulingError | None = None
    failed_terms: tuple[TermFailure, ...] = ()
    attempts: tuple[TermAttempt, ...] = ()
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    guarded: Guarded | None = None
    reconsidered: Reconsidered | None = None
    components: TargetComponents | None = None

    def changes_clusters(self, binding: Binding) -> bool:
        """Return whether ``spec.clusters`` of a binding changes: the targets, or their components."""
        if self.targets is None:
            return False
        if self.targets != binding.spec.clusters:
            return True
        return self.components is not None and any(
            binding.spec.stored_components(target) != self.components for target in self.targets
        )

    @property
    def is_kept_reschedule(self) -> bool:
        """Whether karmada-scheduler 1.19 would clear the placement, which fits in the term in use and stays here."""
        return isinstance(self.error, KeptError) and self.guarded is None

    @property
    def is_success(self) -> bool:
        """Whether the binding was scheduled."""
        return self.error is None

    @property
    def was_placed(self) -> bool:
        """Whether any pass succeeded and is written; a later pass may have failed (see ``core.schedule``)."""
        return not self.is_refused and any(attempt.error is None for attempt in self.attempts)

    @property
    def is_refused(self) -> bool:
        """Whether a Guard plugin keeps the placement."""
        return self.guarded is not None and self.guarded.refused_by != ""

    @property
    def cycle(self) -> Cycle | None:
        """The context of the last successful run; None if no run succeeded."""
        return next((attempt.cycle for attempt in reversed(self.attempts) if attempt.error is None), None)

    @property
    def may_work_next_time(self) -> bool:
        """Whether to retry after a pause although no cluster fits, because a PostFilter plugin returned success."""
        return self.error is not None and any(attempt.may_work_next_time for attempt in self.attempts)

    @property
    def retry_after(self) -> float:
        """Seconds after which a filter plugin requests a retry; 0 if none does."""
        if self.error is None:
            return 0.0
        waits = [
            result.retry_after
            for attempt in self.attempts
            for result in attempt.diagnosis.result_by_cluster.values()
            if result.retry_after > 0
        ]
        return min(waits, default=0.0)


def each_once(targets: tuple[TargetCluster, ...]) -> tuple[TargetCluster, ...]:
    """Return targets in which each cluster occurs once, with the sum of its replicas.

    A cluster that is listed twice gets the replicas of its last entry: its Work is written once for each.

    Source: karmada v1.18.2 pkg/controllers/binding/common.go ensureWork.
    """
    replicas: dict[str, int] = {}
    for name, count in targets:
        replicas[name] = replicas.get(name, 0) + count
    return targets if len(replicas) == len(targets) else tuple(starmap(TargetCluster, replicas.items()))


def deciding_attempts(decision: Decision) -> tuple[Sequence[TermAttempt], int]:
    """Return the attempts of the pass that led to the result, and the number of passes until it was stable.

    Later passes start from the result itself, so their scores prefer it. One is returned only if it changed the result.
    """
    # The attempts of one pass share the binding.
    groups = groupby(decision.attempts, key=lambda each: id(each.cycle.binding) if each.cycle else None)
    by_pass = [list(attempts) for _, attempts in groups]
    if not by_pass:
        return (), 0
    led = (attempts for attempts in by_pass if are_same_targets(attempts[-1].targets, decision.targets))
    return next(led, by_pass[-1]), len(by_pass)
