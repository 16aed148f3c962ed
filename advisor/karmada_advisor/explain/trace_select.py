"""How clusters were selected, the criterion at which each other one lost, and the sets of regions to choose from.

The core finds the best set of regions without enumerating (``core.algorithms.select_groups``). An explanation shows
the others as well, as long as there are not too many, in the order in which upstream enumerates them.

Source: karmada v1.18.2 pkg/scheduler/core/spreadconstraint/select_groups.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from karmada_advisor.explain.trace_model import Combination, GroupRow, SelectTrace, Swap
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION, Placement, SpreadConstraint
from karmada_scheduler.core.algorithms.select_groups import Limits, RegionGroup
from karmada_scheduler.core.cluster_groups import last_constraint
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.core.ordering.candidates import sort_key
from karmada_scheduler.core.select_clusters import ignores_spread
from karmada_scheduler.framework.cycle import Candidate, Cycle, KeptRegion, KeptSteps
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.structs import replace

_STEP: Final = "failed to select clusters: "
"""How the errors of the step begin."""
_CRITERIA: Final = ("tier", "score", "available", "name")


def trace_select(cycle: Cycle, attempt: TermAttempt, kept: KeptSteps) -> SelectTrace:
    """Return how a decision selected its clusters, and why not the others."""
    placement, ordered, selected = cycle.placement, attempt.candidates, attempt.selected
    if kept.regions is None and Point.SELECT in kept.answered:
        chosen = frozenset(each.name for each in selected)
        losses = {each.name: "plugin" for each in ordered if each.name not in chosen}
        return SelectTrace("plugin", losses=losses)
    if not placement.spread_constraints or ignores_spread(placement):
        trace = SelectTrace("all")
    elif last_constraint(placement, SPREAD_BY_REGION) is not None:
        trace = _by_region(placement, ordered, selected, kept.regions or ())
    else:
        trace = _by_cluster(placement, ordered, selected)
    error = str(attempt.error) if attempt.error is not None else ""
    return replace(
        trace,
        ignored=_ignored_constraints(placement),
        error=error.removeprefix(_STEP) if error.startswith(_STEP) else "",
    )


def _ignored_constraints(placement: Placement) -> tuple[str, ...]:
    """Return the fields of the spread constraints that do not count."""
    if ignores_spread(placement):
        return tuple(_field(each) for each in placement.spread_constraints)
    counting = {
        id(found)
        for field in (SPREAD_BY_REGION, SPREAD_BY_CLUSTER)
        if (found := last_constraint(placement, field)) is not None
    }
    return tuple(_field(each) for each in placement.spread_constraints if id(each) not in counting)


def _field(constraint: SpreadConstraint) -> str:
    return constraint.spread_by_field or f"label {constraint.spread_by_label}"


def _by_cluster(
    placement: Placement, ordered: Sequence[Candidate], selected: Sequence[Candidate]
) -> SelectTrace:
    constraint = last_constraint(placement, SPREAD_BY_CLUSTER)
    if constraint is None:
        return SelectTrace("cluster")
    names = {each.name for each in selected}
    first = list(ordered[: min(len(ordered), constraint.max_groups)])
    removed = [each.name for each in first if each.name not in names] if selected else []
    added = [each.name for each in selected if each not in first]
    swaps = tuple(Swap(out, into) for out, into in zip(removed, added, strict=False))
    losses = dict.fromkeys(removed, "swap")
    last = max(selected, key=sort_key, default=None)
    for each in ordered:
        if each.name not in names and each.name not in losses:
            losses[each.name] = "maximum" if last is None else _first_difference(each, last)
    limits = {SPREAD_BY_CLUSTER: (constraint.min_groups, constraint.max_groups)}
    return SelectTrace("cluster", limits, swaps=swaps, losses=losses)


def _first_difference(candidate: Candidate, other: Candidate) -> str:
    """Return the first criterion at which a candidate differs from a preferred one."""
    for name, one, another in zip(_CRITERIA, sort_key(candidate), sort_key(other), strict=True):
        if one != another:
            return name
    return "name"


def _by_region(
    placement: Placement,
    ordered: Sequence[Candidate],
    selected: Sequence[Candidate],
    regions: Sequence[KeptRegion],
) -> SelectTrace:
    region = last_constraint(placement, SPREAD_BY_REGION) or SpreadConstraint()
    cluster = last_constraint(placement, SPREAD_BY_CLUSTER) or SpreadConstraint()
    by_cluster = {candidate.name: each.name for each in regions for candidate in each.candidates}
    taken = sorted({by_cluster[each.name] for each in selected})
    groups = [RegionGroup(each.name, len(each.candidates), each.score) for each in regions]
    found = combinations(groups, Limits(region.min_groups, region.max_groups, cluster.min_groups), taken)
    names, losses = {each.name for each in selected}, dict[str, str]()
    for each in ordered:
        if each.name in names:
            continue
        own = by_cluster.get(each.name, "")
        if own not in taken:
            losses[each.name] = f"region:{found.best_with.get(own, 'insufficient')}"
        else:  # without a maximum, each region gets one
            losses[each.name] = "maximum" if cluster.max_groups else "one"
    limits = {SPREAD_BY_REGION: (region.min_groups, region.max_groups)}
    if last_constraint(placement, SPREAD_BY_CLUSTER) is not None:
        limits[SPREAD_BY_CLUSTER] = (cluster.min_groups, cluster.max_groups)
    return SelectTrace(
        "region",
        limits,
        groups=tuple(
            GroupRow(region.name, region.score, tuple(each.name for each in region.candidates))
            for region in regions
        ),
        combinations=found.shown,
        more_combinations=found.more,
        losses=losses,
    )


_MAX_STEPS: Final = 100_000
"""Sets that are looked at; a tenth of a second."""
_SHOWN: Final = 10


class Combinations(NamedTuple):
    """The sets, the taken one first.

    Attributes:
        shown: The best.
        more: The number of the others; -1 if there are too many to enumerate.
        best_with: Group that is not taken to the criterion at which the best set with it lost.
    """

    shown: tuple[Combination, ...]
    more: int
    best_with: dict[str, str]


class _Set(NamedTuple):
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
            return Combinations(_only(groups, taken), -1, {})
        if chosen is not None:
            weight = sum(each.weight for each in chosen)
            clusters = sum(each.clusters for each in chosen)
            found.append(_Set(weight, clusters, len(found), chosen))
    found.sort(key=lambda each: (-each.weight, -each.clusters, each.number))
    names = frozenset(taken)
    rows, best_with = [], dict[str, str]()
    for each in found:
        is_taken = {group.name for group in each.groups} == names
        lost_by = "" if is_taken else _criterion(each, found[0])
        row = Combination(tuple(sorted(g.name for g in each.groups)), each.clusters, each.weight, lost_by)
        for group in each.groups:
            if lost_by and group.name not in names:
                best_with.setdefault(group.name, lost_by)
        rows.append(row)
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


def _only(groups: Sequence[RegionGroup], taken: Sequence[str]) -> tuple[Combination, ...]:
    chosen = [group for group in groups if group.name in taken]
    clusters, weight = sum(each.clusters for each in chosen), sum(each.weight for each in chosen)
    return (Combination(tuple(sorted(taken)), clusters, weight),)
