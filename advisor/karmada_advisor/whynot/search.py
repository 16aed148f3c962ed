"""Searches irreducible sets of edits that reach a goal, best first by effort, with the core as the judge."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from karmada_advisor.whynot import found_edits, goals
from karmada_advisor.whynot.json_patch import compatible
from karmada_advisor.whynot.objects import NO_EDITS, Edits, ObjectSet, ScheduledObjects
from karmada_advisor.whynot.vocabulary import leaving, proposals
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.framework.edits import Edit, Harm, Side
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

_ASKING: Final = {Side.POLICY, Side.TRIGGER}
_LEAST_COST: Final = 1.0
"""No edit costs less."""
_REMAINING: Final = {
    goals.BlockedStep.TRIGGER: 4.0,
    goals.BlockedStep.FILTER: 9.0,
    goals.BlockedStep.SELECT: 5.0,
    goals.BlockedStep.DIVIDE: 2.0,
    goals.BlockedStep.WRITE: 1.5,
    goals.BlockedStep.DONE: 1.0,
}
"""The estimated effort from a step to the goal, on the high side: progress counts more than a cheap beginning."""


_Source = tuple[ScheduledObjects, str, goals.GoalBlocker]
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


class Search(Struct, dict=True):
    """One search.

    Attributes:
        objects: All objects.
        goal: What to reach.
        bounds: Where to end.
        may_use: Whether an edit may be part of an answer.
    """

    objects: ObjectSet
    goal: goals.Goal
    bounds: found_edits.SearchBounds = found_edits.DEFAULT_BOUNDS
    may_use: Callable[[Edit], bool] = lambda _: True
    _queue: list[tuple[float, int, Edits, tuple[object, ...]]] = field(default_factory=list)
    _nodes: list[tuple[float, int, _Node]] = field(default_factory=list)
    _best: dict[Edits, float] = field(default_factory=dict)
    _tried: set[Edits] = field(default_factory=set)
    _found: found_edits.FoundEdits = field(default_factory=found_edits.FoundEdits)
    _blocked: list[frozenset[object]] = field(default_factory=list)
    _delayed: set[Edits] = field(default_factory=set)
    _sides: set[frozenset[Side]] = field(default_factory=set)
    _kinds: set[tuple[str, ...]] = field(default_factory=set)
    _last_answer: int = 0
    _has_dead_ends: bool = False
    _number: int = 0

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.bounds.seconds
        least_patience, most_patience = _PATIENCE
        size = max(1, len(self.objects.snapshot))
        self._patience = min(most_patience, max(least_patience, _PATIENT_CLUSTERS // size))

    def run(self) -> found_edits.FoundEdits:
        """Search until there are enough answers, or a bound is reached."""
        root = self.objects.outcome(NO_EDITS)
        assert root is not None  # the objects were read before
        self._add(root, ())
        while not self._is_enough():
            self._propose()
            if not self._queue:
                break
            if self._found.runs >= self.bounds.max_runs or not self._has_time():
                self._found.ended_by = "maxRuns" if self._has_time() else "timeout"
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
        # A dead end may lead on together with an edit that cures another step.
        self._found.complete = not left and not self._nodes and not self._has_dead_ends
        self._found.all_singles = all(len(edits) > 1 for edits in left)
        answers = self._found.answers
        if isinstance(self.goal, goals.IsPlaced | goals.IsDecided | goals.RunsAll):
            answers = found_edits.simplest(answers)
        self._found.answers = found_edits.best(answers, self.bounds.answers)
        return self._found

    def _delay(self, edits: Edits) -> float:
        if found_edits.kinds_of(edits) in self._kinds:
            return _SAME_KINDS
        return _SAME_SIDES if found_edits.sides_of(edits) in self._sides else 0.0

    def _is_enough(self) -> bool:
        """Return whether to end: harmful answers do not count, a better one may still come."""
        harmless = sum(1 for answer in self._found.answers if answer.harm is Harm.NONE)
        if harmless >= self.bounds.answers:
            return True
        return harmless > 0 and self._found.runs - self._last_answer >= self._patience

    def _is_blocked(self, edits: Edits) -> bool:
        keys = found_edits.keys_of(edits)
        return any(blocked <= keys for blocked in self._blocked)

    def _try(self, edits: Edits, before: tuple[object, ...]) -> None:
        self._found.runs += 1
        self._tried.add(edits)
        outcome = self.objects.outcome(edits)
        if outcome is None:
            return
        if self.goal.holds(outcome):
            answer = found_edits.irreducible(edits, self.objects, self.goal, self._has_time)
            keys = found_edits.keys_of(edits if answer is None else answer.edits)
            if answer is not None and keys not in self._blocked:
                self._found.answers.append(answer)
                self._sides.add(answer.sides)
                self._kinds.add(found_edits.kinds_of(answer.edits))
                self._last_answer = self._found.runs
            self._blocked.append(keys)
            return
        if len(edits) == 1:
            self._found.ineffective.append((next(iter(edits)), outcome))
        if len(edits) < self.bounds.max_depth:
            self._add(outcome, before)

    def _add(self, outcome: ScheduledObjects, before: tuple[object, ...]) -> None:
        """Add an outcome to those from which the search goes on."""
        sources = list(self._sources(outcome))
        now = tuple(goals.signature(source, blocker) for source, _, blocker in sources)
        # After the filters, an edit without any effect is a dead end; filters may need several edits to be passed, and so
        # may the limits of spread constraints.
        is_after_filters = all(blocker.step > goals.BlockedStep.FILTER for _, _, blocker in sources)
        if now == before and is_after_filters and any(edit.op != "setGroups" for edit in outcome.edits):
            self._has_dead_ends = True
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
        offered = leaving if isinstance(self.goal, goals.OffCluster) else proposals
        context = partial(Context.of, self.objects, is_wanted=isinstance(self.goal, goals.OnCluster))
        found = [
            (source, blocker, list(offered(context(source, blocker, name))))
            for source, name, blocker in node.sources
        ]
        # Where no trigger can be written, an edit of the placement may follow another edit, and ask for the decision.
        has_trigger = any(edit.side is Side.TRIGGER for _, _, edits in found for edit in edits)
        for source, blocker, edits in found:
            for edit in edits:
                if source.forced and has_trigger and edit.side not in _ASKING and edit.op != "setReplicas":
                    continue  # nothing asks for a decision after it
                self._push(node.edits, edit, _REMAINING[blocker.step], node.signature)

    def _push(self, edits: Edits, change: Edit, remaining: float, now: tuple[object, ...]) -> None:
        if (
            change in edits
            or not self.may_use(change)
            or (change.side is Side.POLICY and self.objects.is_managed)
            or not all(compatible(edit, change) for edit in edits)
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
            blocker = goals.blocker_of(outcome, name)
            yield outcome, name, blocker
            if blocker.code == "NothingAsks":
                # Edits of the placement make the scheduler decide; what they must cure shows a decision without them.
                forced = self.objects.forced(outcome.edits)
                if forced is not None:
                    yield forced, name, goals.blocker_of(forced, name)

    def _clusters(self, outcome: ScheduledObjects) -> Sequence[str]:
        match self.goal:
            case goals.OnCluster(cluster) | goals.OffCluster(cluster):
                return [cluster]
            case goals.IsPlaced(without):
                return _representatives(outcome, without)
        return _representatives(outcome, "")

    def _has_time(self) -> bool:
        return time.monotonic() < self._end


def _priority(edits: Iterable[Edit], remaining: float) -> float:
    # A set has no order of its own, and the rounding of ``sum`` depends on it.
    return math.fsum(edit.cost for edit in edits) + remaining


def _representatives(outcome: ScheduledObjects, without: str) -> list[str]:
    """Return a cluster for each way in which clusters drop out, and the best candidates."""
    decision = outcome.scheduled.decision
    attempts = decision.attempts if decision is not None else ()
    last = goals.last_attempt(outcome)
    seen: dict[object, str] = {}
    for attempt in (last,) if last else attempts:
        for candidate in (*attempt.selected[:1], *attempt.candidates[:2]):
            if candidate.name != without:
                seen.setdefault(candidate.name, candidate.name)
        for name, result in attempt.diagnosis.result_by_cluster.items():
            if name != without:
                seen.setdefault((attempt.affinity_name, result.plugin, result.reasons), name)
    names = list(dict.fromkeys(seen.values()))[:_MAX_FOCUS]
    return names or [cluster.name for cluster in outcome.snapshot if cluster.name != without][:1]
