"""Whether the uid of a workload decides where its replicas go."""

from __future__ import annotations

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.assign_replicas import assign_replicas
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.structs import replace


def depends_on_uid(decision: Decision, other: str) -> bool:
    """Return whether the workload would get other replicas if ``other`` was its uid.

    The division is the only step of the core that reads the uid: ties go to the earlier or to the later name. So it
    is made again for each run of the algorithm; plugins of one's own are not asked.
    """
    return any(_differs(each, other) for each in decision.attempts)


def _differs(attempt: TermAttempt, other: str) -> bool:
    cycle = attempt.cycle
    if cycle is None or attempt.error is not None:
        return False
    twin = replace(cycle, binding=with_uid(cycle.binding, other))
    return assign_replicas(twin, attempt.selected) != assign_replicas(cycle, attempt.selected)


def with_uid(binding: Binding, uid: str) -> Binding:
    """Return a binding whose workload has another uid."""
    spec = binding.spec
    return replace(binding, spec=replace(spec, resource=spec.resource._replace(uid=uid)))
