"""Why a binding has no place, in upstream's words.

SchedulingError              anything; the placement stays, the attempt is repeated
|- FitError                  no cluster passes the filters; the placement is cleared, no retry by timer
|- UnschedulableError        clusters pass, but the replicas do not fit; the placement stays
|- OverBudgetError           the decision took too long; the placement stays
`- PluginError               a plugin failed or answered nonsense; the placement stays
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from karmada_scheduler.framework.result import Result


class SchedulingError(Exception):
    """A binding could not be scheduled; the text is what the user reads in the condition."""

    def within(self, step: str) -> Self:
        """Return the same error as seen from the step that it stopped."""
        return type(self)(f"{step}: {self}")


class _RetryableError(SchedulingError):
    """An error that may say when the next attempt is worth while.

    Attributes:
        retry_after: After how many seconds it is worth asking again; 0 leaves that to the queue.
    """

    def __init__(self, text: str = "", *, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after

    def within(self, step: str) -> Self:
        """Return the same error as seen from the step that it stopped."""
        return type(self)(f"{step}: {self}", retry_after=self.retry_after)


class UnschedulableError(_RetryableError):
    """The replicas do not fit into the clusters that were found, or a plugin refused."""


class OverBudgetError(SchedulingError):
    """The decision took too long to be finished; as with a broken plugin, that says nothing about the clusters."""


class PluginError(_RetryableError):
    """A plugin raised, took too long, or returned what its extension point does not allow."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What kept each cluster out.

    Attributes:
        result_by_cluster: The first refusal of each; clusters being deleted are not in it.
    """

    result_by_cluster: Mapping[str, Result] = field(default_factory=dict)


class FitError(SchedulingError):
    """No cluster passes the filters.

    Attributes:
        cluster_count: How many there are, those being deleted included.
        diagnosis: What kept them out.
    """

    def __init__(self, cluster_count: int, diagnosis: Diagnosis) -> None:
        super().__init__(_fit_message(cluster_count, diagnosis))
        self.cluster_count = cluster_count
        self.diagnosis = diagnosis

    def within(self, step: str) -> Self:  # noqa: ARG002
        """Return itself: upstream never wraps it, its text is the condition's message."""
        return self


def _fit_message(cluster_count: int, diagnosis: Diagnosis) -> str:
    results = diagnosis.result_by_cluster
    if not cluster_count or not results:
        return f"0/{cluster_count} clusters are available: no cluster exists."
    counts = Counter(reason for result in results.values() for reason in result.reasons)
    # Sorted as strings, the count included, as upstream does: "10 a" comes before "2 b".
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{cluster_count} clusters are available: {reasons}."
