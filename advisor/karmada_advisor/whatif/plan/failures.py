"""Failing decisions by policy and reason, with the causes that ``explain`` gives for one of each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause, PolicyRef
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.model import Target
from karmada_advisor.whatif.plan.decide import PlannedDecision, PlanSide
from karmada_advisor.whatif.plan.effects import Comparison, Hold
from karmada_advisor.whatif.plan.model import Effect, FailureGroup
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.core.requeue_rules import may_take
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import replace

_EXPLAINED: Final = 4
"""Groups whose causes are computed: a trace of all clusters for each."""

_STORED: Final = frozenset(
    {
        "KeptOnFailure",
        "NothingAsks",
        "StaleCondition",
        "BackingOff",
        "NotRetried",
        "WaitingInQueue",
        "QuotaRefused",
    }
)
"""Causes that compare a decision with what is stored now, which says nothing about one that is only supposed."""

Failing = tuple[BindingKey, Effect, Binding, PlannedDecision]


def grouped(
    failing: Iterable[Failing], side: PlanSide, policies: Mapping[BindingKey, PolicyRef]
) -> tuple[FailureGroup, ...]:
    """Return the groups, the largest first.

    Args:
        failing: Key, class, the binding as it was decided, and the failed decision.
        side: Where the decisions were made.
        policies: The policy of each binding that has one.
    """
    found: dict[tuple[Effect, PolicyRef | None, str, str], list[Failing]] = {}
    for failure in failing:
        key, effect, _, outcome = failure
        found.setdefault((effect, policies.get(key), outcome.reason, outcome.error), []).append(failure)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0][2], item[0][3]))
    return tuple(
        FailureGroup(
            effect,
            policy,
            reason,
            message,
            _causes(members[0][2], side) if number < _EXPLAINED else (),
            len(members),
            tuple(str(key) for key, *_ in members),
            _disallowed([binding for _, _, binding, _ in members], side) if effect is Effect.STUCK else (),
        )
        for number, ((effect, policy, reason, message), members) in enumerate(ordered)
    )


def held(every: Mapping[BindingKey, Comparison]) -> tuple[FailureGroup, ...]:
    """Return the bindings whose decisions do not take effect, by what holds them.

    Those whose spec the change edits come first, as others may be held whatever is planned; then those about which nobody
    decides.
    """
    found: dict[tuple[str, Hold], list[BindingKey]] = {}
    for key, comparison in every.items():
        if comparison.hold is not None and comparison.effect is comparison.hold.effect:
            found.setdefault((comparison.effect.value, comparison.hold), []).append(key)
    ordered = sorted(
        found.items(),
        key=lambda item: (
            not any(every[key].is_spec_changed for key in item[1]),
            item[0][0] == Effect.HELD.value,
            -len(item[1]),
            item[0][1].text,
        ),
    )
    return tuple(
        FailureGroup(hold.effect, None, hold.reason, hold.text, (), len(keys), tuple(map(str, keys)))
        for (_, hold), keys in ordered
    )


def _disallowed(bindings: Iterable[Binding], side: PlanSide) -> tuple[Target, ...]:
    """Return the replicas on clusters that no affinity of the placement matches."""
    found: dict[str, int] = {}
    for binding in bindings:
        placement = binding.spec.placement
        for target in binding.spec.clusters:
            cluster = side.snapshot.get(target.name)
            if cluster is not None and placement is not None and not may_take(cluster, placement):
                found[target.name] = found.get(target.name, 0) + target.replicas
    return tuple(Target(name, replicas) for name, replicas in sorted(found.items()))


def _causes(binding: Binding, side: PlanSide) -> tuple[Cause, ...]:
    if side.rules.of(binding) is None:
        return ()
    inputs = ExplainInputs.of(side.rules, binding, side.snapshot)
    try:
        found = causes_of_binding(Situation(inputs))
    except SchedulingError:
        return ()
    kept = [cause for cause in found if cause.code not in _STORED]
    return tuple(replace(cause, primary=cause is kept[0]) for cause in kept)
