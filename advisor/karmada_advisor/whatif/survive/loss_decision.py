"""What a loss needs of one decision, which bindings may share one, and which losses may move a binding that is elsewhere.

Duplicated bindings, and those without replicas, are decided again upon each change of a cluster that they match. With a
constraint on regions they choose the regions again, by a score that counts the clusters of each. So the loss of a cluster may
let another region win. Without such a constraint it cannot: of an order, the first ones stay the first.

Most losses are found to change nothing without a decision. A region that is not selected and gets no better stays so.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Final

from karmada_advisor.whatif.plan.decide import chooses_regions
from karmada_advisor.whatif.survive.classify import Evicted, FailedBy, Targets
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION, SpreadConstraint
from karmada_scheduler.core.cluster_groups import group_by_region, last_constraint
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.select_clusters import select_by_region
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.diagnosis import (
    FitError,
    HeldError,
    KeptError,
    NotEnoughCapacityError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.structs import Struct, field


def decided(found: Decision | None, before: Targets) -> Evicted:
    """Return what becomes of a binding on some clusters by a decision; None if PreEnqueue plugins hold it."""
    after = before if found is None or found.targets is None else found.targets
    if found is None or found.error is None:
        return Evicted(before, after, is_held=found is None, is_decided=True)
    error, is_held = found.error, isinstance(found.error, HeldError | KeptError)
    return Evicted(before, after, failed_by(error), condition_for(error).message, is_held, is_decided=True)


def failed_by(error: SchedulingError) -> FailedBy:
    """Return why a decision failed."""
    if isinstance(error, FitError):
        return FailedBy.FIT
    if isinstance(error, PluginError):
        return FailedBy.PLUGIN
    is_short = isinstance(error, NotEnoughCapacityError | UnschedulableError)
    return FailedBy.CAPACITY if is_short else FailedBy.RULE


class SharedDecisions(Struct):
    """Decisions about equal questions.

    Attributes:
        questions: A number for each question, as hashing a question takes long.
        standing: Decisions without any loss, and what they tell about sweeps.
        decided: Decisions after losses.
    """

    questions: dict[Hashable, int] = field(default_factory=dict)
    standing: dict[Hashable, tuple[Decision | None, Sweeps | None]] = field(default_factory=dict)
    decided: dict[Hashable, Evicted] = field(default_factory=dict)


_ANY: Final = SpreadConstraint()


class Sweeps:
    """Which losses may change the regions of one binding."""

    def __init__(
        self, binding: Binding, candidates: Sequence[Candidate], selected: Sequence[Candidate]
    ) -> None:
        """Take a binding, and the candidates and the selected ones of a decision that changes nothing.

        Args:
            binding: One that chooses its regions again.
            candidates: In the order of preference.
            selected: Those that are selected without any loss.
        """
        assert binding.spec.placement is not None
        self._placement = binding.spec.placement
        self._replicas = binding.spec.replicas
        self._region = last_constraint(self._placement, SPREAD_BY_REGION) or _ANY
        self._cluster = last_constraint(self._placement, SPREAD_BY_CLUSTER) or _ANY
        self._selected = frozenset(candidate.name for candidate in selected)
        self._chosen = frozenset(candidate.cluster.region for candidate in selected)
        self._regions = {
            group.name: group for group in group_by_region(self._placement, self._replicas, candidates)
        }
        self._changes: dict[Hashable, bool] = {}

    @cached_property
    def members(self) -> Mapping[str, Candidate]:
        """The candidates whose loss may matter, by name, in the order of preference within each region."""
        watched = self._chosen if self._is_local else [*self._regions]
        return {each.name: each for name in sorted(watched) for each in self._regions[name].candidates}

    @property
    def _is_local(self) -> bool:
        """Whether only the selected regions matter: the minimum of regions has enough clusters.

        Then every set of that many regions suffices, and larger ones are not tried. So another set is selected only if
        one of the selected regions gets worse, as none gets better by a loss.
        """
        return self._cluster.min_groups <= max(self._region.min_groups, 1)

    @cached_property
    def cases(self) -> Sequence[Sequence[str]]:
        """The clusters that are not selected and of which each alone, lost, lets others be selected.

        Those of one group count the same in the scores of regions. They are in the order of preference.
        """
        groups: dict[Hashable, list[str]] = {}
        for member in self.members.values():
            if member.name not in self._selected:
                groups.setdefault(self._case([member]), []).append(member.name)
        return [names for names in groups.values() if self.may_change(names[:1])]

    def may_change(self, masks: Collection[str]) -> bool:
        """Return whether the loss of some candidates may lead to another placement; False is exact."""
        if any(name in self._selected for name in masks):
            return True
        lost = [each for name in masks if (each := self.members.get(name)) is not None]
        if not lost:
            return False
        key = self._case(lost)
        found = self._changes.get(key)
        if found is None:
            found = self._changes[key] = self._selects_others(lost)
        return found

    def _case(self, lost: Sequence[Candidate]) -> Hashable:
        """Return what the scores of regions depend on: which clusters count the same."""
        if not self._placement.is_duplicated:
            return frozenset(candidate.name for candidate in lost)
        return tuple(
            sorted((each.cluster.region, each.available >= self._replicas, each.score) for each in lost)
        )

    def _selects_others(self, lost: Sequence[Candidate]) -> bool:
        """Return whether other clusters are selected without some that are not selected."""
        names = {candidate.name for candidate in lost}
        regions = dict(self._regions)
        for region in {candidate.cluster.region for candidate in lost}:
            left = [candidate for candidate in regions.pop(region).candidates if candidate.name not in names]
            regions |= {group.name: group for group in group_by_region(self._placement, self._replicas, left)}
        try:
            chosen = select_by_region(
                [regions[name] for name in sorted(regions)], self._region, self._cluster
            )
        except SchedulingError:
            return True
        return {candidate.name for candidate in chosen} != self._selected


def sweeps_of(binding: Binding, standing: Decision | None) -> Sweeps | None:
    """Return which losses may move a binding of which a decision without any loss is known; None if none can."""
    if standing is None or standing.error is not None or not chooses_regions(binding):
        return None  # no decision is made, or one fails already
    last = standing.attempts[-1]
    return Sweeps(binding, last.candidates, last.selected)
