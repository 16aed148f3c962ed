"""The errors that end an attempt, with upstream's texts.

SchedulingError              any error; the placement stays, the attempt is repeated
|- FitError                  no cluster passes the filters; the placement is cleared, no retry by timer
|  `- KeptError              the same, but a Guard plugin or the term in use keeps the placement; retried
|- NotEnoughCapacityError    Select finds no clusters that can take the replicas; the placement stays
|- UnschedulableError        a plugin refused; the placement stays
|  |- NotEnoughReplicasError the selected clusters cannot take the replicas; also a NotEnoughCapacityError
|  `- HeldError              a Guard plugin does not let the decision through; the placement stays
|- InvalidExpressionError    an expression of the placement is not known; the placement stays
|- OverBudgetError           the decision took too long; the placement stays
`- PluginError               a plugin failed or returned an invalid value; the placement stays
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Final, Self

from karmada_scheduler.framework.result import Result, bounded_delay
from karmada_scheduler.structs import Struct, field


class SchedulingError(Exception):
    """A binding could not be scheduled; the text is the message of the condition."""

    def within(self, step: str) -> Self:
        """Return the same error with the name of the failed step in its text."""
        return type(self)(f"{step}: {self}")


class _RetryableError(SchedulingError):
    """An error that may have the delay of the next attempt.

    Attributes:
        retry_after: The delay of the next attempt in seconds, 30 days at most; 0 for the backoff of the queue.
    """

    def __init__(self, text: str = "", *, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = bounded_delay(retry_after)

    def within(self, step: str) -> Self:
        """Return the same error with the name of the failed step in its text."""
        return type(self)(f"{step}: {self}", retry_after=self.retry_after)


class UnschedulableError(_RetryableError):
    """The replicas do not fit into the feasible clusters, or a plugin refused."""


class NotEnoughCapacityError(_RetryableError):
    """Clusters pass, but those that Select may choose cannot take the replicas."""


class NotEnoughReplicasError(NotEnoughCapacityError, UnschedulableError):
    """The selected clusters cannot take the replicas together."""


class InvalidExpressionError(SchedulingError):
    """An expression of the placement is not known, so nothing is known about the clusters that it selects.

    Attributes:
        path: Keys and indexes of the expression from the placement.
    """

    def __init__(self, text: str = "", path: tuple[str | int, ...] = ()) -> None:
        super().__init__(text)
        self.path = path


class OverBudgetError(SchedulingError):
    """The decision exceeded its time budget; as with a plugin error, nothing is known about the clusters."""


class PluginError(_RetryableError):
    """A plugin raised, exceeded its timeout, or returned a value that its extension point does not allow."""


class Diagnosis(Struct, frozen=True):
    """Why clusters were refused.

    Attributes:
        result_by_cluster: The first refusal of each cluster by name, without clusters that are being deleted.
    """

    result_by_cluster: Mapping[str, Result] = field(default_factory=dict)


class FitError(SchedulingError):
    """No cluster passes the filters.

    Attributes:
        cluster_count: The number of clusters, those that are being deleted included.
        diagnosis: Why they were refused.
    """

    def __init__(self, cluster_count: int, diagnosis: Diagnosis) -> None:
        super().__init__(_fit_message(cluster_count, diagnosis))
        self.cluster_count = cluster_count
        self.diagnosis = diagnosis

    def within(self, step: str) -> Self:  # noqa: ARG002
        """Return itself: upstream never adds the step, the text is the message of the condition."""
        return self


class HeldError(UnschedulableError):
    """A Guard plugin does not let a decision through; the placement stays, the decision is repeated.

    Attributes:
        line: The line of ``GuardAnswer`` in which the decision waits; None without one.
    """

    def __init__(
        self, plugin: str, reason: str, *, retry_after: float = 0.0, line: Hashable | None = None
    ) -> None:
        super().__init__(f"held{AT_GUARD}{plugin}: {reason}", retry_after=retry_after)
        self.line = line


class KeptError(FitError):
    """No cluster passes the filters, and the placement stays: a Guard plugin keeps it, or a reschedule removes nothing.

    Attributes:
        of: The error without that.
        retry_after: As in ``UnschedulableError``.
    """

    def __init__(
        self, error: FitError, plugin: str = "", reason: str = "", *, retry_after: float = 0.0
    ) -> None:
        super().__init__(error.cluster_count, error.diagnosis)
        self.of = error
        if plugin:
            self.args = (f"{error} Kept{AT_GUARD}{plugin}: {reason}",)
        self.retry_after = bounded_delay(retry_after)


AT_GUARD: Final = " at Guard by "
"""In the text of every HeldError and KeptError of a Guard plugin, and so in the condition of a binding that a Guard plugin keeps."""


def _fit_message(cluster_count: int, diagnosis: Diagnosis) -> str:
    results = diagnosis.result_by_cluster
    if not cluster_count or not results:
        return f"0/{cluster_count} clusters are available: no cluster exists."
    counts = Counter(reason for result in results.values() for reason in result.reasons)
    # Sorted as strings, the count included, as upstream does: "10 a" comes before "2 b".
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{cluster_count} clusters are available: {reasons}."
