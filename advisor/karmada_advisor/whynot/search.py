"""Searches irreducible sets of edits that reach a goal, best first by effort, with the core as the judge."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from karmada_advisor.whynot.edits import Edit, Harm, Side, compatible
from karmada_advisor.whynot.goals import (
    BlockedStep,
    Goal,
    GoalBlocker,
    IsDecided,
    IsPlaced,
    OffCluster,
    OnCluster,
    RunsAll,
    blocker_of,
    last_attempt,
    signature,
)
from karmada_advisor.whynot.harm import harm_of
from karmada_advisor.whynot.objects import NO_EDITS, Edits, ObjectSet, ScheduledObjects
from karmada_advisor.whynot.quantities import least
from karmada_advisor.whynot.vocabulary import leaving, proposals
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.structs import Struct, field

_PATIENCE: Final = (4, 60)
"""Decisions without a further answer after which the search ends, once there is one: few in large fleets."""
_PATIENT_CLUSTERS: Final = 6_000
"""Clusters times decisions of this patience: some 0.1 s."""
_SAME_SIDES: Final = 2.0
"""What makes edits of the sides of an earlier answer less urgent."""
_SAME_KINDS: Final = 6.0
"""What makes edits of the kinds of an earlier answer less urgent: another cluster to exclude is hardly another answer."""
_MAX_FOCUS: Final = 5
_ROUNDS: Final = 6
"""How often amounts and leaving out are repeated until an answer is stable."""

_ASKING: Final = {Side.POLICY, Side.TRIGGER}
_LEAST_COST: Final = 1.0
"""No edit costs less."""
_REMAINING: Final = {
    BlockedStep.TRIGGER: 4.0,
    BlockedStep.FILTER: 9.0,
    BlockedStep.SELECT: 5.0,
    BlockedStep.DIVIDE: 2.0,
    BlockedStep.WRITE: 1.5,
    BlockedStep.DONE: 1.0,
}
"""The estimated effort from a step to the goal, on the high side: progress counts more than a cheap beginning."""


class SearchBounds(Struct, frozen=True):
    """Where a search ends.

    Attributes:
        seconds: Time for the search; what it has found is still verified afterwards.
        max_runs: Decisions of the search, without those that verify an answer.
        max_depth: Edits in one answer.
        answers: Answers to return.
    """

    seconds: float = 2.0
    max_runs: int = 96
    max_depth: int = 4
    answers: int = 3


DEFAULT_BOUNDS: Final = SearchBounds()


class Answer(Struct, frozen=True):
    """An irreducible set of edits that reaches the goal.

    Attributes:
        edits: The edits in the order in which they are applied.
        outcome: The binding after them.
    """

    edits: tuple[Edit, ...]
    outcome: ScheduledObjects

    @property
    def cost(self) -> float:
        """The effort of all edits."""
        return sum(each.cost for each in self.edits)

    @property
    def sides(self) -> frozenset[Side]:
        """The parts of the system that it changes."""
        return _sides(self.edits)

    @property
    def harm(self) -> Harm:
        """What speaks against it."""
        return harm_of(self.edits)


class FoundEdits(Struct):
    """The result of a search.

    Attributes:
        answers: At most as many as the bounds allow, those of different sides first.
        ineffective: Single edits that do not reach the goal, with the binding after them.
        runs: Decisions of the search.
        all_singles: Whether all single edits of the vocabulary for the step that refuses were tried.
        complete: Whether nothing was left to try.
        ended_by: The bound that ended it: ``timeout``, ``maxRuns``, or "".
    """

    answers: list[Answer] = field(default_factory=list)
    ineffective: list[tuple[Edit, ScheduledObjects]] = field(default_factory=list)
    runs: int = 0
    all_singles: bool = True
    complete: bool = True
    ended_by: str = ""


_Source = tuple[ScheduledObjects, str, GoalBlocker]
"""What to cure: the outcome to read, the cluster, and where it drops out."""


class _Node(Struct, frozen=True):
    """A set of edits that was tried; its proposals are made when their turn comes, which costs as much as a decision.

    Attributes:
        sources: What the proposals have to cure.
        signature: What a further edit has to change to be of any effect.
    """

    edits: Edits
    sources: Sequence[_Source]
    signature: tuple[object, ...]


class Search:
    """One search."""

    def __init__(
        self,
        objects: ObjectSet,
        goal: Goal,
        bounds: SearchBounds = DEFAULT_BOUNDS,
        *,
        cluster: str = "",
        may_use: Callable[[Edit], bool] = lambda _: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a search.

        Args:
            objects: All objects.
            goal: What to reach.
            bounds: Where to end.
            cluster: The cluster in question; "" for any, if the goal is that the binding is placed.
            may_use: Whether an edit may be part of an answer.
            clock: Seconds on a scale that does not run backwards.
        """
        self._objects, self._goal, self._bounds, self._cluster = objects, goal, bounds, cluster
        self._clock, self._may_use = clock, may_use
        self._end = clock() + bounds.seconds
        self._queue: list[tuple[float, int, Edits, tuple[object, ...]]] = []
        self._nodes: list[tuple[float, int, _Node]] = []
        self._best: dict[Edits, float] = {}
        self._tried: set[Edits] = set()
        self._found = FoundEdits()
        self._blocked: list[frozenset[object]] = []
        self._delayed: set[Edits] = set()
        self._sides: set[frozenset[Side]] = set()
        self._kinds: set[tuple[str, ...]] = set()
        self._last_answer = 0
        least_patience, most_patience = _PATIENCE
        size = max(1, len(objects.snapshot))
        self._patience = min(most_patience, max(least_patience, _PATIENT_CLUSTERS // size))
        self._number = 0

    def run(self) -> FoundEdits:
        """Search until there are enough answers, or a bound is reached."""
        root = self._objects.outcome(NO_EDITS)
        assert root is not None  # the objects were read before
        self._add(root, ())
        while not self._is_enough():
            self._propose()
            if not self._queue:
                break
            if self._found.runs >= self._bounds.max_runs or self._clock() >= self._end:
                self._found.ended_by = "maxRuns" if self._clock() < self._end else "timeout"
                break
            priority, number, edits, before = heapq.heappop(self._queue)
            if edits in self._tried or self._is_blocked(edits):
                continue
            delay = self._delay(edits)
            if edits not in self._delayed and delay:
                self._delayed.add(edits)
                heapq.heappush(self._queue, (priority + delay, number, edits, before))
                continue
            self._try(edits, before)
        left = [edits for _, _, edits, _ in self._queue if edits not in self._tried]
        self._found.complete = not left and not self._nodes
        self._found.all_singles = all(len(edits) > 1 for edits in left)
        answers = self._found.answers
        if isinstance(self._goal, IsPlaced | IsDecided | RunsAll):
            answers = _simplest(answers)
        self._found.answers = _chosen(answers, self._bounds.answers)
        return self._found

    def _delay(self, edits: Edits) -> float:
        if _kinds(edits) in self._kinds:
            return _SAME_KINDS
        return _SAME_SIDES if _sides(edits) in self._sides else 0.0

    def _is_enough(self) -> bool:
        """Return whether to end: harmful answers do not count, a better one may still come."""
        harmless = sum(1 for each in self._found.answers if each.harm is Harm.NONE)
        if harmless >= self._bounds.answers:
            return True
        return harmless > 0 and self._found.runs - self._last_answer >= self._patience

    def _is_blocked(self, edits: Edits) -> bool:
        keys = _keys(edits)
        return any(each <= keys for each in self._blocked)

    def _try(self, edits: Edits, before: tuple[object, ...]) -> None:
        self._found.runs += 1
        self._tried.add(edits)
        outcome = self._objects.outcome(edits)
        if outcome is None:
            return
        if self._goal.holds(outcome):
            answer = self._verified(edits)
            keys = _keys(edits if answer is None else answer.edits)
            if answer is not None and keys not in self._blocked:
                self._found.answers.append(answer)
                self._sides.add(answer.sides)
                self._kinds.add(_kinds(answer.edits))
                self._last_answer = self._found.runs
            self._blocked.append(keys)
            return
        if len(edits) == 1:
            self._found.ineffective.append((next(iter(edits)), outcome))
        if len(edits) < self._bounds.max_depth:
            self._add(outcome, before)

    def _add(self, outcome: ScheduledObjects, before: tuple[object, ...]) -> None:
        """Add an outcome to those from which the search goes on."""
        sources = list(self._sources(outcome))
        now = tuple(signature(source, blocker) for source, _, blocker in sources)
        # After the filters, an edit without any effect is a dead end; filters may need several edits to be passed, and so
        # may the limits of spread constraints.
        is_after_filters = all(blocker.step > BlockedStep.FILTER for _, _, blocker in sources)
        if now == before and is_after_filters and any(each.op != "setGroups" for each in outcome.edits):
            return
        self._number += 1
        node = _Node(outcome.edits, sources, now)
        least_remaining = min((_REMAINING[blocker.step] for _, _, blocker in sources), default=0.0)
        bound = _priority(outcome.edits, least_remaining) + _LEAST_COST
        heapq.heappush(self._nodes, (bound, self._number, node))

    def _propose(self) -> None:
        """Queue the edits of all nodes of which one may be the next to try."""
        while self._nodes and (not self._queue or self._nodes[0][0] <= self._queue[0][0]):
            _, _, node = heapq.heappop(self._nodes)
            if not self._is_blocked(node.edits):
                self._expand(node)

    def _expand(self, node: _Node) -> None:
        """Queue the edits that may cure what blocks the clusters of the goal."""
        offered = leaving.proposals if isinstance(self._goal, OffCluster) else proposals
        is_wanted = isinstance(self._goal, OnCluster)
        found = [
            (source, blocker, list(offered(Context(self._objects, source, blocker, name, is_wanted))))
            for source, name, blocker in node.sources
        ]
        # Where no trigger can be written, an edit of the placement may follow another edit, and ask for the decision.
        has_trigger = any(each.side is Side.TRIGGER for _, _, edits in found for each in edits)
        for source, blocker, edits in found:
            for each in edits:
                if source.forced and has_trigger and each.side not in _ASKING and each.op != "setReplicas":
                    continue  # nothing asks for a decision after it
                self._push(node.edits, each, _REMAINING[blocker.step], node.signature)

    def _push(self, edits: Edits, change: Edit, remaining: float, now: tuple[object, ...]) -> None:
        if (
            change in edits
            or not self._may_use(change)
            or not all(compatible(each, change) for each in edits)
        ):
            return
        together = edits | {change}
        priority = _priority(together, remaining if edits else 0.0)
        if self._best.get(together, math.inf) <= priority:
            return
        self._best[together] = priority
        self._number += 1
        heapq.heappush(self._queue, (priority, self._number, together, now))

    def _sources(self, outcome: ScheduledObjects) -> Iterator[_Source]:
        for name in self._clusters(outcome):
            blocker = blocker_of(outcome, name)
            yield outcome, name, blocker
            if blocker.code == "NothingAsks":
                # Edits of the placement make the scheduler decide; what they must cure shows a decision without them.
                forced = self._objects.forced(outcome.edits)
                if forced is not None:
                    yield forced, name, blocker_of(forced, name)

    def _clusters(self, outcome: ScheduledObjects) -> Sequence[str]:
        match self._goal:
            case IsPlaced(without):
                return list(_representatives(outcome, without))
            case IsDecided() | RunsAll():
                return list(_representatives(outcome, ""))
        return [self._cluster]

    def _verified(self, edits: Iterable[Edit]) -> Answer | None:
        """Return the irreducible part of a set, with the least amounts.

        The least amount of one edit depends on the others, so both steps are repeated until nothing changes; None if
        that does not happen.
        """
        current = self._shrunk(list(edits))
        for _ in range(_ROUNDS):
            before = list(current)
            for index, each in enumerate(current):
                if each.quantity is not None:
                    others = [*current[:index], *current[index + 1 :]]
                    current[index] = least(each, partial(self._reaches_with, others), self._has_time)
            current = self._shrunk(current)
            if current == before:
                outcome = self._objects.outcome(current)
                assert outcome is not None  # it was computed by ``_shrunk`` or ``least``
                mine = {each: each for each in current}
                return Answer(tuple(mine[each] for each, _ in outcome.patched.operations), outcome)
        return None

    def _shrunk(self, edits: list[Edit]) -> list[Edit]:
        """Leave out edits, the most expensive first, until none can be left out."""
        current = list(edits)
        while len(current) > 1:
            for each in sorted(current, key=lambda one: -one.cost):
                rest = [one for one in current if one is not each]
                if self._reaches(rest):
                    current = rest
                    break
            else:
                break
        return current

    def _reaches(self, edits: Iterable[Edit]) -> bool:
        outcome = self._objects.outcome(edits)
        return outcome is not None and self._goal.holds(outcome)

    def _reaches_with(self, others: Sequence[Edit], change: Edit) -> bool:
        return self._reaches([*others, change])

    def _has_time(self) -> bool:
        return self._clock() < self._end


def _priority(edits: Iterable[Edit], remaining: float) -> float:
    return sum(each.cost for each in edits) + remaining


def _sides(edits: Iterable[Edit]) -> frozenset[Side]:
    return frozenset(each.side for each in edits)


def _kinds(edits: Iterable[Edit]) -> tuple[str, ...]:
    return tuple(sorted(each.op for each in edits))


def _keys(edits: Iterable[Edit]) -> frozenset[object]:
    """Return what identifies a set of edits whatever the amounts."""
    keys: set[object] = set()
    for each in edits:
        if each.quantity is None:
            keys.add((each.slot, each.identity))
        else:
            keys.add((each.slot, each.op, each.quantity.at > each.quantity.base))
    return frozenset(keys)


def _simplest(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers with the fewest edits that do no harm, and the harmful ones with no more.

    To place a binding anywhere, somebody who can change one thing does not change two.
    """
    harmless = [len(each.edits) for each in answers if each.harm is Harm.NONE]
    fewest = min(harmless, default=min((len(each.edits) for each in answers), default=0))
    return [each for each in answers if len(each.edits) <= fewest]


def _chosen(answers: Sequence[Answer], count: int) -> list[Answer]:
    """Return the best answers: those of the least harm, and of these, those that change other sides."""

    def rank(each: Answer) -> tuple[int, float, int]:
        return each.harm.degree, each.cost, len(each.edits)

    ranked = sorted(answers, key=rank)
    chosen: list[Answer] = []
    for harm in Harm:
        same = [each for each in ranked if each.harm is harm]
        for each in same:
            if all(each.sides != other.sides for other in chosen):
                chosen.append(each)
        for each in same:
            if all(_kinds(each.edits) != _kinds(other.edits) for other in chosen):
                chosen.append(each)
        chosen += [each for each in same if each not in chosen]
    return sorted(chosen[:count], key=rank)


def _representatives(outcome: ScheduledObjects, without: str) -> Iterator[str]:
    """Yield a cluster for each way in which clusters drop out, and the best candidates."""
    decision = outcome.scheduled.decision
    attempts = decision.attempts if decision is not None else ()
    last = last_attempt(outcome)
    seen: dict[object, str] = {}
    for attempt in (last,) if last else attempts:
        for each in (*attempt.selected[:1], *attempt.candidates[:2]):
            if each.name != without:
                seen.setdefault(each.name, each.name)
        for name, result in attempt.diagnosis.result_by_cluster.items():
            if name != without:
                seen.setdefault((attempt.affinity_name, result.plugin, result.reasons), name)
    names = list(dict.fromkeys(seen.values()))[:_MAX_FOCUS]
    if not names:
        names = [each.name for each in outcome.snapshot if each.name != without][:1]
    yield from names
