"""How clusters were selected, the criterion at which each other one lost, and the sets of regions to choose from.

The core finds the best set of regions without enumerating (``core.algorithms.select_groups``). An explanation shows
the others as well, as long as there are not too many, in the order in which upstream enumerates them.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint/select_groups.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.trace_model import Combination, GroupRow, SelectTrace, Swap
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION, SpreadConstraint
from karmada_scheduler.core.algorithms.select_groups import Limits, RegionGroup
from karmada_scheduler.core.cluster_groups import last_constraint
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.core.ordering.candidates import sort_key
from karmada_scheduler.core.select_clusters import ignores_spread
from karmada_scheduler.framework.cycle import Candidate, Cycle, KeptRegion, KeptSteps
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.structs import Struct, replace

_STEP: Final = "failed to select clusters: "
"""How the errors of the step begin."""
_CRITERIA: Final = ("tier", "score", "available", "name")


class NotSelected(Struct, frozen=True):
    """Why a cluster is not selected.

    Attributes:
        code: Of the cause.
        text: Of the cause, with a place for the name of the cluster.
        short: The same in a table.
    """

    code: str
    text: str
    short: str


_REGION: Final = "{} is not selected:"
_TIED: Final = "lost a tie of regions"
_NOT_NEEDED: Final = f"{_REGION} no set with its region is sufficient"
LOSSES: Final = {
    "plugin": NotSelected("PluginSelected", "a Select plugin did not choose {}", "not chosen by the plugin"),
    "tier": NotSelected("TierAhead", "{} belongs to an overflow affinity, and the clusters before it suffice",
        "overflow affinity, not needed"),
    "score": NotSelected("LowerScore", "{} scores less than the selected clusters", "lower score"),
    "available": NotSelected("LessRoom", "{} can take fewer replicas than the selected clusters", "less room"),
    "swap": NotSelected("LessRoom", "{} can take fewer replicas than the selected clusters", "exchanged for more room"),
    "name": NotSelected("NameTie", "{} has the same score and can take as many replicas; the order of names decided",
        "later in order of names"),
    "maximum": NotSelected("MaxGroupsReached", "the maximum of clusters is reached before {}", "the maximum is reached"),
    "one": NotSelected("RegionOneCluster", "each region gets one cluster, because cluster has no maxGroups, and another one comes "
        "before {}", "its region has one"),
    "region:weight": NotSelected("RegionWeight", f"{_REGION} its region has less weight", "region has less weight"),
    "region:clusters": NotSelected("RegionFewerClusters", f"{_REGION} its region has the same weight and brings fewer clusters",
        "region has fewer clusters"),
    "region:groupClusters": NotSelected("RegionTie", f"{_REGION} its region tied, and upstream prefers regions with fewer clusters",
        _TIED),
    "region:groupWeight": NotSelected("RegionTie", f"{_REGION} its region tied, and lost by the weight of single regions", _TIED),
    "region:name": NotSelected("RegionTie", f"{_REGION} its region tied, and lost by the order of names", _TIED),
    "region:superset": NotSelected("RegionNotNeeded", _NOT_NEEDED, "region is not needed"),
    "region:insufficient": NotSelected("RegionNotNeeded", _NOT_NEEDED, "region is in no sufficient set"),
}  # fmt: skip
"""By the criterion in ``SelectTrace.losses``."""


def trace_select(cycle: Cycle, attempt: TermAttempt, kept: KeptSteps) -> SelectTrace:
    """Return how a decision selected its clusters, and why not the others."""
    placement, ordered, selected = cycle.placement, attempt.candidates, attempt.selected
    if kept.regions is None and Point.SELECT in kept.answered:
        chosen = frozenset(candidate.name for candidate in selected)
        losses = {candidate.name: "plugin" for candidate in ordered if candidate.name not in chosen}
        return SelectTrace("plugin", losses=losses)
    is_ignored = ignores_spread(placement)
    fields = () if is_ignored else (SPREAD_BY_REGION, SPREAD_BY_CLUSTER)
    counting = {field: found for field in fields if (found := last_constraint(placement, field)) is not None}
    if not placement.spread_constraints or is_ignored:
        trace = SelectTrace("all")
    elif SPREAD_BY_REGION in counting:
        cluster = counting.get(SPREAD_BY_CLUSTER, SpreadConstraint())
        trace = _by_region(counting[SPREAD_BY_REGION], cluster, ordered, selected, kept.regions or ())
    elif SPREAD_BY_CLUSTER in counting:
        trace = _by_cluster(counting[SPREAD_BY_CLUSTER], ordered, selected)
    else:
        trace = SelectTrace("cluster")
    counted, error = set(map(id, counting.values())), "" if attempt.error is None else str(attempt.error)
    return replace(
        trace,
        limits={field: (found.min_groups, found.max_groups) for field, found in counting.items()},
        ignored=tuple(
            found.spread_by_field or f"label {found.spread_by_label}"
            for found in placement.spread_constraints
            if id(found) not in counted
        ),
        error=error.removeprefix(_STEP) if error.startswith(_STEP) else "",
    )


def _by_cluster(
    constraint: SpreadConstraint, ordered: Sequence[Candidate], selected: Sequence[Candidate]
) -> SelectTrace:
    names = {candidate.name for candidate in selected}
    first = list(ordered[: min(len(ordered), constraint.max_groups)])
    removed = [candidate.name for candidate in first if candidate.name not in names] if selected else []
    added = [candidate.name for candidate in selected if candidate not in first]
    swaps = tuple(Swap(out, into) for out, into in zip(removed, added, strict=False))
    losses = dict.fromkeys(removed, "swap")
    last = max(selected, key=sort_key, default=None)
    for candidate in ordered:
        if candidate.name not in names and candidate.name not in losses:
            losses[candidate.name] = "maximum" if last is None else _first_difference(candidate, last)
    return SelectTrace("cluster", swaps=swaps, losses=losses)


def _first_difference(candidate: Candidate, other: Candidate) -> str:
    """Return the first criterion at which a candidate differs from a preferred one."""
    pairs = zip(_CRITERIA, sort_key(candidate), sort_key(other), strict=True)
    return next((name for name, one, another in pairs if one != another), "name")


def _by_region(
    region: SpreadConstraint,
    cluster: SpreadConstraint,
    ordered: Sequence[Candidate],
    selected: Sequence[Candidate],
    regions: Sequence[KeptRegion],
) -> SelectTrace:
    by_cluster = {candidate.name: group.name for group in regions for candidate in group.candidates}
    taken = sorted({by_cluster[candidate.name] for candidate in selected})
    groups = [RegionGroup(group.name, len(group.candidates), group.score) for group in regions]
    found = combinations(groups, Limits(region.min_groups, region.max_groups, cluster.min_groups), taken)
    names, losses = {candidate.name for candidate in selected}, dict[str, str]()
    for name in (candidate.name for candidate in ordered if candidate.name not in names):
        own = by_cluster.get(name, "")
        if own not in taken:
            losses[name] = f"region:{found.best_with.get(own, 'insufficient')}"
        else:  # without a maximum, each region gets one
            losses[name] = "maximum" if cluster.max_groups else "one"
    names_in = {group.name: tuple(candidate.name for candidate in group.candidates) for group in regions}
    rows = (GroupRow(group.name, group.score, names_in[group.name]) for group in regions)
    return SelectTrace(
        "region", groups=tuple(rows), combinations=found.shown, more_combinations=found.more, losses=losses
    )


_MAX_STEPS: Final = 100_000
"""Sets that are looked at; a tenth of a second."""
_SHOWN: Final = 10


class Combinations(Struct, frozen=True):
    """The sets, the taken one first.

    Attributes:
        shown: The best.
        more: The number of the others; -1 if there are too many to enumerate.
        best_with: Group that is not taken to the criterion at which the best set with it lost.
    """

    shown: tuple[Combination, ...]
    more: int
    best_with: dict[str, str]


class _Set(Struct, frozen=True):
    weight: int
    clusters: int
    number: int
    groups: tuple[RegionGroup, ...]


def combinations(groups: Sequence[RegionGroup], limits: Limits, taken: Sequence[str]) -> Combinations:
    """Return the sufficient sets, in the order in which the core prefers them.

    Args:
        groups: All groups.
        limits: What makes a set sufficient.
        taken: The groups that the core has chosen; without any, no set is sufficient.
    """
    if not taken:
        return Combinations((), 0, {})
    ordered = sorted(groups, key=lambda group: (group.clusters, -group.weight, group.name))
    found: list[_Set] = []
    for steps, chosen in enumerate(_sets(ordered, limits)):
        if steps > _MAX_STEPS:
            of_taken = [group for group in groups if group.name in taken]
            clusters = sum(group.clusters for group in of_taken)
            weight = sum(group.weight for group in of_taken)
            return Combinations((Combination(tuple(sorted(taken)), clusters, weight),), -1, {})
        if chosen is not None:
            weight = sum(group.weight for group in chosen)
            clusters = sum(group.clusters for group in chosen)
            found.append(_Set(weight, clusters, len(found), chosen))
    found.sort(key=lambda each: (-each.weight, -each.clusters, each.number))
    rows, best_with = [], dict[str, str]()
    for option in found:
        names = sorted(group.name for group in option.groups)
        lost_by = "" if names == sorted(taken) else _criterion(option, found[0])
        rows.append(Combination(tuple(names), option.clusters, option.weight, lost_by))
        for name in names:
            if lost_by and name not in taken:
                best_with.setdefault(name, lost_by)
    rows.sort(key=lambda row: not row.taken)
    return Combinations(tuple(rows[:_SHOWN]), max(0, len(rows) - _SHOWN), best_with)


def _sets(ordered: Sequence[RegionGroup], limits: Limits) -> Iterator[tuple[RegionGroup, ...] | None]:
    """Yield each sufficient set, and None for every other set on the way."""
    stack: list[tuple[int, tuple[RegionGroup, ...], int]] = [(0, (), 0)]
    while stack:
        begin, chosen, clusters = stack.pop()
        if limits.suffice(len(chosen), clusters):
            yield chosen
            continue
        yield None
        if len(chosen) >= limits.max_groups:
            continue
        for place in range(len(ordered) - 1, begin - 1, -1):
            group = ordered[place]
            stack.append((place + 1, (*chosen, group), clusters + group.clusters))


def _criterion(other: _Set, winner: _Set) -> str:
    """Return the criterion at which a set loses against the best one."""
    if other.number == winner.number:
        return "superset"  # a part of it is sufficient, and that part is taken
    if other.weight != winner.weight:
        return "weight"
    if other.clusters != winner.clusters:
        return "clusters"
    for one, best in zip(other.groups, winner.groups, strict=False):
        if one != best:
            if one.clusters != best.clusters:
                return "groupClusters"
            return "groupWeight" if one.weight != best.weight else "name"
    return "name"
