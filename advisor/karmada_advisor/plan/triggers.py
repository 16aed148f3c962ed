"""Which bindings the scheduler looks at because of a change: the rules of its informer, for one change as a whole."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from karmada_advisor.state.stored import condition_of
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.cluster_changes import ClusterChanges
from karmada_scheduler.core.condition import NO_CLUSTER_FIT
from karmada_scheduler.structs import Struct

AT_ONCE: Final = "at once"
AT_RETRY: Final = "at the next retry"
AFTER_EVICTION: Final = "after eviction"
AT_RESTART: Final = "when the scheduler restarts"


class Triggers(Struct, frozen=True):
    """Finds when the scheduler looks at a binding.

    Attributes:
        clusters: The changed clusters.
        policy_bindings: The bindings of changed policies.
        restarts: Whether the configuration changes: a scheduler that starts looks at every binding.
        knows_claims: Whether a binding without a policy id is not claimed; otherwise every binding counts as claimed.
    """

    clusters: ClusterChanges
    policy_bindings: Collection[BindingKey]
    restarts: bool
    knows_claims: bool

    def when(self, old: Binding | None, new: Binding) -> str:
        """Return when the scheduler looks at a binding, "" if it does not.

        Args:
            old: The binding before the change, None if there was none.
            new: The binding after the change; this scheduler is responsible for it.
        """
        is_claimed = not self.knows_claims or requeue_rules.is_claimed(new)
        if self.clusters and self.clusters.concerns(new):
            return AT_ONCE
        if not is_claimed:
            return ""
        if old is None or old.generation != new.generation or old.labels != new.labels:
            return AT_ONCE
        if new.key in self.policy_bindings:
            return AT_ONCE
        if self.restarts:
            return AT_RESTART
        return AT_RETRY if _is_retried(new) else ""


def _is_retried(binding: Binding) -> bool:
    """Return whether the scheduler tries again without an event: its last attempt failed, and not by the filters."""
    condition = condition_of(binding)
    return condition.status == "False" and condition.reason != NO_CLUSTER_FIT
