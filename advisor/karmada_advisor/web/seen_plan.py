"""What a plan says to somebody who may do what is planned, and may not read everything.

Built field by field, as ``web.seen`` builds explanations. Of their bindings there is a row each. Its clusters after the change are
named although others may not be: who makes the change reads them in the binding. What the change does not do by itself, such as
the next rebalance, names clusters as an explanation does. Of other bindings there are numbers in steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from karmada_advisor.plan.model import CLASSES, BindingPlan, ClaimChange, Effect, Plan
from karmada_advisor.state.model import BindingEntry, Target
from karmada_advisor.web.plan_rights import ChangePart
from karmada_advisor.web.seen import SeenTargets, SeesCluster, seen_targets
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.structs import Struct

_WARNINGS: Final = frozenset(
    {
        "ApiVersionUnknown",
        "ClusterUnknown",
        "FieldKeyUnknown",
        "FieldUnknown",
        "SchedulerDown",
        "SchedulerUnknown",
        "ValueUnknown",
    }
)
"""What the page of a binding with such a policy says as well. Others are made from templates and policies."""
_OF_CLUSTERS: Final = frozenset(
    {
        "FieldValueUnknown",
        "LabelUnknown",
        "LabelValueUnknown",
        "MatchesNoCluster",
        "TolerationUnmatched",
        "TooFewGroups",
    }
)
"""What labels, taints and numbers of clusters say."""


class SeenBindingPlan(BindingEntry, frozen=True):
    """What a change does to a binding; the attributes are those of ``BindingPlan``, without texts.

    Attributes:
        after: Its clusters after the change, which are its effect.
        later: Those that it would have at the next rebalance, or once nothing holds it; None for the other classes.
        reason: Of the condition, if the decision fails.
        held_by: What holds it.
    """

    effect: Effect
    claim: ClaimChange
    replicas: int
    before: tuple[Target, ...]
    after: tuple[Target, ...]
    later: SeenTargets | None
    when: str
    stops: int
    starts: int
    reason: str
    held_by: str


class SeenClass(Struct, frozen=True):
    """How many bindings of others are in a class: 0, 1-9, 10-99 or 100+."""

    name: str
    count: str


class SeenWarning(Struct, frozen=True):
    """Something in a policy that is probably a mistake; docs/plan.md has the codes."""

    code: str
    object: str
    field: str


class SeenLoad(Struct, frozen=True):
    """A cluster whose load changes, for those who may list Clusters.

    Attributes:
        stops: Replicas of the viewer's bindings that leave it.
        starts: Those that it gets.
        over: The resources of which the whole change asks more than is free.
    """

    name: str
    stops: int
    starts: int
    over: tuple[str, ...]


class SeenPlan(Struct, frozen=True):
    """A plan.

    Attributes:
        changes: The parts of the change, as they were asked for.
        bindings: Those of the viewer that do not stay as they are, by name.
        others: The same of others, by class.
        blocked: The deleted objects that stay Terminating.
        loads: In the order of names; none for those who may not list Clusters.
    """

    changes: tuple[str, ...]
    bindings: tuple[SeenBindingPlan, ...]
    others: tuple[SeenClass, ...]
    blocked: tuple[str, ...]
    warnings: tuple[SeenWarning, ...]
    loads: tuple[SeenLoad, ...]

    def of(self, effect: Effect) -> list[SeenBindingPlan]:
        """Return the bindings of a class."""
        return [each for each in self.bindings if each.effect is effect]


def seen_plan(
    found: Plan,
    parts: Sequence[ChangePart],
    *,
    is_own: Callable[[str], bool],
    sees: Callable[[BindingKey], SeesCluster],
    sees_clusters: bool,
) -> SeenPlan:
    """Return what may be seen of a plan.

    Args:
        found: The plan.
        parts: What was asked for, each of which the viewer may do.
        is_own: Returns whether the bindings of a namespace may be listed; "" for those without one.
        sees: Returns which clusters may be seen with a binding.
        sees_clusters: Whether Clusters may be listed.
    """
    own = sorted((each for each in found.bindings if is_own(each.namespace)), key=str)
    others = Counter(
        name for each in found.bindings if not is_own(each.namespace) for name in _classes_of(each)
    )
    reasons = {name: each.reason for each in found.failures for name in each.bindings}
    objects = {each.object for each in parts}
    codes = _WARNINGS | _OF_CLUSTERS if sees_clusters else _WARNINGS
    return SeenPlan(
        changes=tuple(map(str, parts)),
        bindings=tuple(_row(each, reasons.get(str(each), ""), sees) for each in own),
        others=tuple(
            SeenClass(name, _step(others[name])) for name in CLASSES if name != Effect.UNCHANGED.value
        ),
        blocked=tuple(each.object for each in found.blocked if each.object in objects),
        warnings=tuple(
            SeenWarning(each.code, each.object, each.field)
            for each in found.warnings
            if each.code in codes and each.object in objects
        ),
        loads=tuple(_loads(found, own)) if sees_clusters else (),
    )


def _classes_of(each: BindingPlan) -> Iterator[str]:
    yield each.effect.value
    if each.claim is not ClaimChange.KEPT:
        yield each.claim.value


def _step(count: int) -> str:
    for least, text in ((100, "100+"), (10, "10-99"), (1, "1-9")):
        if count >= least:
            return text
    return "0"


def _row(each: BindingPlan, reason: str, sees: Callable[[BindingKey], SeesCluster]) -> SeenBindingPlan:
    later = each.held or each.later
    return SeenBindingPlan(
        kind=each.kind,
        namespace=each.namespace,
        name=each.name,
        effect=each.effect,
        claim=each.claim,
        replicas=each.replicas,
        before=each.before,
        after=each.after,
        later=None
        if later is None
        else seen_targets(later.targets, sees(BindingKey(each.kind, each.namespace, each.name))),
        when=each.when,
        stops=each.stops,
        starts=each.starts,
        reason=reason,
        held_by="" if each.held is None else each.held.by.value,
    )


def _loads(found: Plan, own: Iterable[BindingPlan]) -> Iterator[SeenLoad]:
    stops: Counter[str] = Counter()
    starts: Counter[str] = Counter()
    for each in own:
        before, after = _replicas(each.before), _replicas(each.after)
        stops += before - after
        starts += after - before
    over = {each.name: each.over for mode in found.capacity[:1] for each in mode.clusters if each.over}
    for name in sorted({*stops, *starts, *over}):
        yield SeenLoad(name, stops[name], starts[name], over.get(name, ()))


def _replicas(targets: Iterable[Target]) -> Counter[str]:
    return Counter({each.name: each.replicas for each in targets})
