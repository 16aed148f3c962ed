"""What an explanation says to somebody who may see a binding, and not what it was decided by.

Values are built from what may be seen, field by field; nothing is cut out of an answer, so what no field takes is hidden. A text
of a cause may name anything, so its code's sentence is shown, with what the binding itself asks for. Clusters are named if the
binding names them, or all of them to who may list Clusters; of others there are numbers only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from karmada_advisor.explain.codes import CODES
from karmada_advisor.explain.model import Cause, Explanation, Stage
from karmada_advisor.explain.names import affinities_of
from karmada_advisor.explain.remedy_model import Remedy
from karmada_advisor.explain.trace_model import CapacityCell, ClusterRow
from karmada_advisor.state.model import BindingEntry, BindingState, Target
from karmada_advisor.whynot.model import VerifiedRemedy, WhyNot
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.structs import Struct

SeesCluster = Callable[[str], bool]
"""Returns whether the name of a cluster may be seen."""


class SeenCause(Struct, frozen=True):
    """A cause.

    Attributes:
        text: What its code means.
        asked: What the binding asks for, that the cause is about.
    """

    code: str
    stage: Stage
    text: str
    asked: tuple[str, ...] = ()
    primary: bool = False


class SeenTargets(Struct, frozen=True):
    """A placement.

    Attributes:
        clusters: Those that may be seen, in the order of names.
        others: How many more there are.
    """

    clusters: tuple[Target, ...]
    others: int


class SeenWouldBe(Struct, frozen=True):
    """What a decision now would give; ``differs`` as of ``WouldBe``."""

    outcome: str
    placement: SeenTargets
    differs: bool


class SeenStage(Struct, frozen=True):
    """A step, with the clusters, or for DIVIDE replicas, that enter and leave it."""

    name: str
    before: int
    after: int | None
    decisive: bool


class SeenRefusal(Struct, frozen=True):
    """How many clusters a plugin refused."""

    plugin: str
    count: int


class SeenCluster(Struct, frozen=True):
    """A cluster that may be seen.

    Attributes:
        refused_by: The plugins that refuse it.
        capacity: ``enough`` or ``not enough`` for all replicas; "" if nobody knows.
        limited_by: The resource that is short; "" if there is enough, or that is not known.
        cause: The code of why it has no replicas; "" if it has some.
        text: What that code means.
    """

    name: str
    is_target: bool
    replicas: int
    refused_by: tuple[str, ...]
    selected: bool | None
    capacity: str
    limited_by: str
    cause: str
    text: str


class SeenChange(Struct, frozen=True):
    """A kind of change: how many of it, on which side, and what it is, as in ``remove taint``."""

    side: str
    what: str
    count: int


class SeenRemedy(Struct, frozen=True):
    """Changes that together bring what is asked for. The placement afterwards would tell what another fleet would take."""

    changes: tuple[SeenChange, ...]


class SeenExplanation(Struct, frozen=True):
    """An explanation.

    Attributes:
        clusters: Those that may be seen, targets first, then by name: the order of preference would tell what is free.
    """

    binding: BindingEntry
    would_be: SeenWouldBe | None
    causes: tuple[SeenCause, ...]
    stages: tuple[SeenStage, ...]
    refusals: tuple[SeenRefusal, ...]
    clusters: tuple[SeenCluster, ...]
    remedies: tuple[SeenRemedy, ...]


class SeenWhyNot(Struct, frozen=True):
    """An answer to "why not"; the attributes are those of ``WhyNot``."""

    binding: BindingEntry
    cluster: str
    goal: str
    holds: bool
    next_holds: bool
    next: SeenTargets
    causes: tuple[SeenCause, ...]
    remedies: tuple[SeenRemedy, ...]


def clusters_named_by(binding: Binding, stored: BindingState) -> frozenset[str]:
    """Return the clusters that a binding names: where it is, was or reports from, and those of its placement."""
    placement = binding.spec.placement
    affinities = [] if placement is None else affinities_of(placement)
    division = None if placement is None else placement.replica_scheduling
    if division is not None and division.weight_preference is not None:
        affinities += [each.target_cluster for each in division.weight_preference.static_weight_list]
    return frozenset(
        name
        for names in (
            (each.name for each in stored.clusters),
            (each.name for each in stored.rows),
            *((*each.cluster_names, *each.exclude) for each in affinities),
        )
        for name in names
    )


def seen_explanation(found: Explanation, sees: SeesCluster) -> SeenExplanation:
    """Return what may be seen of an explanation."""
    binding, would_be = found.binding, found.would_be
    return SeenExplanation(
        binding=_entry(binding),
        would_be=None
        if would_be is None
        else SeenWouldBe(would_be.outcome.value, seen_targets(would_be.placement, sees), would_be.differs),
        causes=tuple(map(_cause, found.causes)),
        stages=tuple(SeenStage(each.name, each.before, each.after, each.decisive) for each in found.funnel),
        refusals=_refusals(found),
        clusters=tuple(
            _cluster(each, binding.replicas, binding.request)
            for each in sorted(found.clusters, key=lambda it: (not it.is_target, it.name))
            if sees(each.name)
        ),
        remedies=_remedies(found.remedies),
    )


def seen_why_not(found: WhyNot, sees: SeesCluster) -> SeenWhyNot:
    """Return what may be seen of an answer about a cluster that may be seen, or about none."""
    return SeenWhyNot(
        binding=_entry(found.binding),
        cluster=found.cluster,
        goal=found.goal.type.value,
        holds=found.holds,
        next_holds=found.next_holds,
        next=seen_targets(found.next.result, sees),
        causes=tuple(map(_cause, found.causes)),
        remedies=_remedies(found.remedies),
    )


def _entry(binding: BindingEntry) -> BindingEntry:
    return BindingEntry(binding.kind, binding.namespace, binding.name)


def seen_targets(found: Iterable[Target], sees: SeesCluster) -> SeenTargets:
    targets = tuple(found)
    named = tuple(sorted((each for each in targets if sees(each.name)), key=lambda it: it.name))
    return SeenTargets(named, len(targets) - len(named))


def _cause(found: Cause) -> SeenCause:
    asked = _ASKED.get(found.code)
    texts = () if asked is None else tuple(asked(found.evidence))
    return SeenCause(found.code, found.stage, CODES.get(found.code, ""), texts, found.primary)


def _unknown(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the placement asks for and no cluster has, without what is nearest to it."""
    yield from map(str, evidence.get("unknown", ()))


def _missing(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield how much is missing for the replicas, as the condition of the binding says it."""
    missing = evidence.get("missing")
    if isinstance(missing, int):
        yield f"{missing:,} of {evidence['wanted']:,} replicas are missing"
        yield from (f"{amount} {name}" for name, amount in evidence["missingAmounts"].items())


_ASKED: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    "ClusterUnknown": _unknown,
    "ValueUnknown": _unknown,
    "NotEnoughRoom": _missing,
}
"""The causes of whose evidence a part is what the binding asks for."""


def _refusals(found: Explanation) -> tuple[SeenRefusal, ...]:
    """Return the numbers by plugin; reasons have labels and taints of clusters."""
    counts: Counter[str] = Counter()
    for each in found.refusals:
        counts[each.plugin] += each.count
    return tuple(SeenRefusal(*each) for each in sorted(counts.items(), key=lambda it: (-it[1], it[0])))


def _cluster(row: ClusterRow, replicas: int, request: Mapping[str, str]) -> SeenCluster:
    capacity, limited_by = _capacity(row.capacity, replicas)
    return SeenCluster(
        name=row.name,
        is_target=row.is_target,
        replicas=row.replicas,
        refused_by=tuple(each.plugin for each in row.refusals),
        selected=row.selected,
        capacity=capacity,
        limited_by=limited_by if limited_by in {*request, "pods"} else "",
        cause=row.cause,
        text=CODES.get(row.cause, ""),
    )


def _capacity(cell: CapacityCell | None, replicas: int) -> tuple[str, str]:
    if cell is None or not cell.source:
        return "", ""
    return ("enough", "") if cell.available >= replicas else ("not enough", cell.limited_by)


def _remedies(found: Iterable[Remedy | VerifiedRemedy]) -> tuple[SeenRemedy, ...]:
    """Return the kinds of changes, in the order of their names: which are better is known by amounts and other bindings.

    What exactly they change is made from labels, taints and amounts of clusters.
    """
    remedies = set()
    for each in found:
        kinds = Counter((_side(edit.side), _in_words(edit.op)) for edit in each.edits)
        remedies.add(tuple(SeenChange(side, what, count) for (side, what), count in sorted(kinds.items())))
    return tuple(map(SeenRemedy, sorted(remedies, key=repr)))


def _side(side: Any) -> str:
    return side if isinstance(side, str) else str(side.value)


def _in_words(op: str) -> str:
    """Return ``removeTaint`` as ``remove taint``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", op).lower()
