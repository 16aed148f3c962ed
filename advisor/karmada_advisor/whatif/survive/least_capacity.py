"""The least capacity to add to one cluster so that a loss leaves nothing short, verified by deciding the loss again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from karmada_advisor.explain.amounts import shown_units
from karmada_advisor.explain.model import ObjectShown
from karmada_advisor.whatif.plan.load import CPU, requests
from karmada_advisor.whatif.survive.classify import LossClass, Pair, wanted
from karmada_advisor.whatif.survive.edited import PairKey
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import Loss, never
from karmada_advisor.whatif.survive.remedies import FoundRemedy
from karmada_advisor.whynot.model import EditShown
from karmada_advisor.whynot.quantities import amounts_of, least
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.framework.edits import Edit, EditTarget, Minimum, ObjectRef, Side
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot
from karmada_scheduler.structs import replace

_MEMORY: Final = "memory"
_STEPS: Final = {CPU: 100, _MEMORY: 64 * 1024 * 1024}
"""The least steps, in thousandths of a core and in bytes; 1 for other resources."""
_MOST_STEPS: Final = 64
"""Of all that is asked for: larger amounts are found in larger steps, since each is a decision of the whole domain."""
_DOMAINS: Final = 5
_CANDIDATES: Final = 5
_ANSWERS: Final = 2
SECONDS: Final = 5.0
"""Of the search: each step decides about all that starts after a loss."""

_NOTHING: Final[Mapping[str, Minimum]] = {}
_Capacity = Mapping[str, Mapping[str, int]]
"""By cluster and resource: cpu in thousandths, others in whole units."""


@dataclass
class LeastCapacity:
    """Looks for the least capacity to add.

    Attributes:
        losses: The losses, decided.
        loss: The world.
        is_over: Whether to end.
        short: Domains that leave something without capacity; known after ``find``, as ``looked``.
        looked: Those that were looked at.
    """

    losses: Losses
    loss: Loss
    is_over: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        """Make the snapshot without more capacity."""
        self._log = ChangeLog()
        self._unchanged = Snapshot.of(self.losses.inputs.clusters, log=self._log)
        self._changed: set[str] = set()
        self.short = self.looked = 0

    def find(self) -> list[FoundRemedy]:
        """Return what to add for each of the domains with the most missing replicas, and what suffices for all of them."""
        found: dict[object, FoundRemedy] = {}
        most: defaultdict[str, Counter[str]] = defaultdict(Counter)
        numbers = self._short()
        unmended = False

        def add(cured: frozenset[PairKey], edits: Sequence[EditShown]) -> None:
            """Add a remedy; equal ones of several domains are one."""
            key = tuple(each.text for each in edits)
            known = found.get(key) or FoundRemedy(None, LossClass.SHORT, frozenset(), tuple(edits))
            found[key] = replace(known, cured=known.cured | cured)

        for number in numbers:
            answers = 0
            for name in self._candidates(number):
                if answers >= _ANSWERS or self.is_over():
                    break
                least_ = self._least(number, name)
                if least_ is None:
                    continue
                more = Counter({resource: minimum.at for resource, minimum in least_.items()})
                add(self._cured(number), _shown(name, more, least_))
                answers += 1
                if answers == 1:
                    most[name] |= more
            unmended |= not answers
            self.looked += not self.is_over()
        if len(numbers) > 1 and not unmended and not any(self._is_short(number, most) for number in numbers):
            edits = [edit for name, more in sorted(most.items()) for edit in _shown(name, more)]
            add(frozenset().union(*map(self._cured, numbers)), edits)
        return list(found.values())

    def _short(self) -> list[int]:
        """Return the domains that leave most replicas without capacity, those with the fewest bindings to decide first."""
        missing = {
            number: sum(pair.classified.missing for pair in self._pairs(number))
            for number in range(len(self.losses.inputs.domains))
        }
        self.short = sum(map(bool, missing.values()))
        worst = sorted((each for each in missing if missing[each]), key=lambda each: -missing[each])
        return sorted(worst[:_DOMAINS], key=lambda each: len(self._starting(each)))

    def _pairs(self, number: int) -> list[Pair]:
        """Return what is short after the loss of a domain."""
        pairs = self.losses.tallies[self.loss][number].pairs
        return [pair for pair in pairs if pair.classified.effect is LossClass.SHORT]

    def _cured(self, number: int) -> frozenset[PairKey]:
        return frozenset((number, pair.position) for pair in self._pairs(number))

    def _candidates(self, number: int) -> list[str]:
        """Return the clusters that most of what is short may go to, those that are asked for too much first."""
        tally = self.losses.tallies[self.loss][number]
        lost = frozenset(self.losses.inputs.domains[number].clusters)
        counts: Counter[str] = Counter()
        for pair in self._pairs(number):
            found = self.losses.side.passing(self.losses.asked[pair.position].binding)
            counts.update({name for rows in found or () for name in rows})
        over, clusters = tally.overcommitted, self.losses.inputs.clusters
        unreported = {cluster.name for cluster in clusters if cluster.resource_summary is None}
        names = sorted(
            {*counts, *over} - lost - unreported, key=lambda name: (name not in over, -counts[name], name)
        )
        return names[:_CANDIDATES]

    def _least(self, number: int, name: str) -> dict[str, Minimum] | None:
        """Return the least amounts of resources that one cluster needs more; None if no amount suffices."""
        asked: Counter[str] = Counter()
        for pair in self._pairs(number):
            spec = self.losses.asked[pair.position].binding.spec
            for resource, amount in requests(spec).items():
                asked[resource] += amount * wanted(spec)
        sizes = {resource: _step(resource, asked[resource]) for resource in asked if asked[resource]}
        steps = {resource: -(-2 * asked[resource] // size) for resource, size in sizes.items()}

        def amounts(counts: Mapping[str, int]) -> dict[str, int]:
            return {resource: count * sizes[resource] for resource, count in counts.items()}

        if not steps or self._is_short(number, {name: amounts(steps)}):
            return None
        found: dict[str, Minimum] = {}
        for resource in sorted(steps):
            if self.is_over():
                return None
            rest = {other: steps[other] for other in steps if other != resource}
            if not self._is_short(number, {name: amounts(rest)}):
                steps = rest
                continue

            def reaches(change: Edit, resource: str = resource, rest: Mapping[str, int] = rest) -> bool:
                assert change.quantity is not None
                return not self._is_short(number, {name: amounts({**rest, resource: change.quantity.at})})

            [change] = amounts_of(lambda _: _edit(name), base=0, amounts=[steps[resource]])
            smallest = least(change, reaches, lambda: False).minimal
            assert smallest is not None
            steps = {**rest, resource: smallest.at}
            step = sizes[resource]
            unit = "m" if resource == CPU else ""
            found[resource] = Minimum(smallest.at * step, smallest.fails_at * step, unit, smallest.monotone)
        return found

    def _is_short(self, number: int, more: _Capacity) -> bool:
        """Return whether anything is short after a loss if clusters have more capacity."""
        inputs = self.losses.inputs
        again = Losses(
            replace(
                inputs,
                snapshot=self._snapshot(more),
                bindings=self._starting(number),
                domains=[inputs.domains[number]],
                losses=[self.loss],
                is_over=never,
            )
        )
        again.run()
        return any(pair.classified.effect is LossClass.SHORT for pair in again.tallies[self.loss][0].pairs)

    def _starting(self, number: int) -> list[Binding]:
        """Return the bindings about which a loss asks for a decision: with more capacity, others may start as well."""
        return [
            self.losses.asked[pair.position].stored
            for pair in sorted(self.losses.tallies[self.loss][number].pairs, key=lambda each: each.position)
            if pair.found.is_decided and pair.classified.effect is not LossClass.HOLDS
        ]

    def _snapshot(self, more: _Capacity) -> Snapshot:
        """Return the clusters, some of them with more capacity: one sequence, so that caches stay hot."""
        known = {name: cluster for name in more if (cluster := self._unchanged.get(name)) is not None}
        for name in {*self._changed, *known}:
            self._log.append(name)
        self._changed.clear()
        self._changed.update(known)
        changed = [_with_more(cluster, more[name]) for name, cluster in known.items()]
        return self._unchanged.with_reported(changed, generation=0)


def _shown(name: str, more: Mapping[str, int], exact: Mapping[str, Minimum] = _NOTHING) -> list[EditShown]:
    """Return what to add to a cluster; ``exact`` has the boundaries of the amounts that have one."""
    shown, instead = ObjectShown(CLUSTER, "", name), f"Add nodes to {name}; its resource summary follows."
    texts = {each: f"{each} +{shown_units(each, more[each])} on {name}" for each in sorted(more)}
    return [
        EditShown(Side.CLUSTER, "addCapacity", shown, text, exact.get(resource), instead)
        for resource, text in texts.items()
    ]


def _edit(name: str) -> Edit:
    cluster = EditTarget(Side.CLUSTER, ObjectRef(CLUSTER, "", name))
    return cluster.set("addCapacity", ("status", "resourceSummary"), None, "")


def _step(resource: str, asked: int) -> int:
    """Return the precision with which an amount is found."""
    least_step = _STEPS.get(resource, 1)
    return least_step * max(1, asked // (_MOST_STEPS * least_step))


def _with_more(cluster: Cluster, more: Mapping[str, int]) -> Cluster:
    """Return a cluster with more of some resources; the same without a summary."""
    summary = cluster.resource_summary
    if summary is None:
        return cluster
    allocatable = dict(summary.allocatable)
    for resource, amount in more.items():
        added = Quantity(amount, -3 if resource == CPU else 0)
        allocatable[resource] = allocatable[resource] + added if resource in allocatable else added
    return replace(cluster, resource_summary=replace(summary, allocatable=allocatable))
