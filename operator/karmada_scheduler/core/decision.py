"""What was decided about a binding, and the whole story behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from karmada_scheduler.api.binding import BindingKey, TargetCluster
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.diagnosis import Diagnosis, SchedulingError


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run through the recipe, with one affinity term.

    Attributes:
        affinity_name: The term; empty with a single affinity.
        cycle: What the plugins saw, with the notes that they left.
        targets: The result, in the order in which it is written; None if it failed.
        error: What stopped it.
        diagnosis: What kept clusters out.
        scores: Plugin name to scores, one per cluster that passed the filters, in the order of names.
        candidates: The clusters that passed, in the order of preference, with score and room.
        selected: Those that Select chose.
        may_work_next_time: Whether a PostFilter plugin has done something about it.
    """

    affinity_name: str = ""
    cycle: Cycle | None = field(default=None, compare=False, repr=False)
    targets: tuple[TargetCluster, ...] | None = None
    error: SchedulingError | None = None
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    scores: Mapping[str, Sequence[int]] = field(default_factory=dict)
    candidates: Sequence[Candidate] = ()
    selected: Sequence[Candidate] = ()
    may_work_next_time: bool = False


@dataclass(frozen=True, slots=True)
class TermFailure:
    """An affinity term that did not do; each is told to the user in an event of its own."""

    index: int
    name: str
    error: SchedulingError


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write about a binding.

    Attributes:
        targets: The clusters to write, in this order; empty clears them; None keeps what is there.
        applied_placement: The annotation to write along with targets; None exactly when targets is.
        affinity_name: The affinity term in force, to be written into the status; None keeps what is there.
        error: Why the binding could not be scheduled; its text is the condition's message.
        failed_terms: Affinity terms that were tried in vain, in order.
        attempts: The runs behind it, in order; the last one counts.
        fallbacks: Clusters whose estimator should have been heard and was not, with the reason; the summary
            had to do. All of them if no estimator's answer counted.
    """

    key: BindingKey
    targets: tuple[TargetCluster, ...] | None = None
    applied_placement: str | None = None
    affinity_name: str | None = None
    error: SchedulingError | None = None
    failed_terms: tuple[TermFailure, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    fallbacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        """Whether the binding has its place."""
        return self.error is None

    @property
    def was_placed(self) -> bool:
        """Whether some pass found a place; a pass on top of it may have failed (see ``core.schedule``)."""
        return any(attempt.error is None for attempt in self.attempts)

    @property
    def cycle(self) -> Cycle | None:
        """The attempt that found the place, as the plugins saw it; None if none did."""
        return next((each.cycle for each in reversed(self.attempts) if each.error is None), None)

    @property
    def may_work_next_time(self) -> bool:
        """Whether to try again after a pause although no cluster fits: a PostFilter plugin said so."""
        return self.error is not None and any(attempt.may_work_next_time for attempt in self.attempts)

    @property
    def retry_after(self) -> float:
        """After how many seconds a plugin that kept clusters out wants to be asked again; 0 if none does."""
        if self.error is None:
            return 0.0
        waits = [
            result.retry_after
            for attempt in self.attempts
            for result in attempt.diagnosis.result_by_cluster.values()
            if result.retry_after > 0
        ]
        return min(waits, default=0.0)
