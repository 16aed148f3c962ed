"""Small questions answered without the guidance of the search, to measure what the search misses.

Every edit of the vocabulary is tried, whatever the step at which the cluster drops out, and every set of two (or three) of
them. Only the vocabulary and the core are shared with the search: neither the order of the search, nor what it leaves out.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

from karmada_advisor.whynot import answer as whynot_answer
from karmada_advisor.whynot.answer import WhyNotQuestion
from karmada_advisor.whynot.found_edits import DEFAULT_BOUNDS, SearchBounds, harm_of
from karmada_advisor.whynot.goals import BlockedStep, Goal, GoalBlocker, OffCluster, blocker_of
from karmada_advisor.whynot.json_patch import compatible
from karmada_advisor.whynot.model import WhyNot
from karmada_advisor.whynot.objects import NO_EDITS, Edits, ObjectSet, ScheduledObjects
from karmada_advisor.whynot.vocabulary import leaving, proposals
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.framework.edits import Edit, Harm
from tests.unit.whynot.checker import Checker
from tests.unit.whynot.questions import questions

MOST_CLUSTERS: Final = 6
_BLOCKERS: Final = (
    *((BlockedStep.TRIGGER, code) for code in ("NothingAsks", "Suspended", "OtherScheduler")),
    *(
        (BlockedStep.FILTER, code)
        for code in (
            "APIEnablement", "ClusterAffinity", "ClusterEviction", "SpreadConstraint", "TaintToleration",
            "WorkloadAffinity", "WorkloadAntiAffinity",
        )
    ),
    *((step, "") for step in (BlockedStep.SELECT, BlockedStep.DIVIDE, BlockedStep.DONE)),
)  # fmt: skip


class TooManyDecisionsError(Exception):
    """There are more sets of edits than may be tried."""


@dataclass(frozen=True)
class Smallest:
    """The smallest sets of edits that reach a goal.

    Attributes:
        size: The number of edits of each; 0 if there is none of up to the depth.
        sets: All sets of this size.
    """

    size: int
    sets: tuple[Edits, ...]


def smallest(objects: ObjectSet, goal: Goal, cluster: str, *, depth: int, most_tried: int) -> Smallest:
    """Try all sets of one edit, then of two, up to ``depth``, until some reach the goal.

    Args:
        objects: The objects of the question; without edits, the goal is not reached.
        goal: What to reach.
        cluster: The cluster in question; "" for all of them.
        depth: The largest number of edits in a set.
        most_tried: The number of sets after which it gives up.

    Raises:
        TooManyDecisionsError: It gave up.
    """
    names = [cluster] if cluster else [each.name for each in objects.snapshot]
    level, tried = [NO_EDITS], 0
    for size in range(1, depth + 1):
        following: dict[Edits, None] = {}
        for edits in level:
            outcome = objects.outcome(edits)
            if outcome is None:
                continue
            for each in _catalogue(objects, outcome, goal, names):
                if each not in edits and all(compatible(each, other) for other in edits):
                    following[edits | {each}] = None
            if tried + len(following) > most_tried:
                raise TooManyDecisionsError
        tried += len(following)
        found = [edits for edits in following if (now := objects.outcome(edits)) and goal.holds(now)]
        if found:
            return Smallest(size, tuple(found))
        level = list(following)
    return Smallest(0, ())


def _catalogue(objects: ObjectSet, outcome: ScheduledObjects, goal: Goal, names: list[str]) -> set[Edit]:
    """Return all edits of the vocabulary for some clusters."""
    offered = leaving if isinstance(goal, OffCluster) else proposals
    sources = [outcome, objects.forced(outcome.edits)]
    return {
        each
        for source in sources
        if source is not None
        for name in names
        for blocker in _blockers(source, name)
        for each in offered(Context.of(objects, source, blocker, name))
    }


def single_edits(objects: ObjectSet, goal: Goal, cluster: str) -> set[Edit]:
    """Return the edits of the step that refuses the clusters now: the search tries them before it says that it tried all."""
    names = [cluster] if cluster else [each.name for each in objects.snapshot]
    offered = leaving if isinstance(goal, OffCluster) else proposals
    sources = [objects.outcome(NO_EDITS), objects.forced(NO_EDITS)]
    return {
        each
        for source in sources
        if source is not None
        for name in names
        for each in offered(Context.of(objects, source, blocker_of(source, name), name))
    }


def _blockers(source: ScheduledObjects, name: str) -> Iterator[GoalBlocker]:
    decision = source.scheduled.decision
    for attempt in (decision.attempts if decision is not None else ()) or (None,):
        candidates = attempt.candidates if attempt is not None else ()
        candidate = next((each for each in candidates if each.name == name), None)
        for step, code in _BLOCKERS:
            yield GoalBlocker(step, code, (), attempt, candidate)


@dataclass
class Comparison:
    """The search compared with the exhaustive one.

    Attributes:
        outcomes: How often each result of the comparison was found.
        missed: Questions without an answer of the search, and a set that it should have found, as text.
        larger: Questions whose smallest answer has more edits than necessary, as text.
        problems: Wrong claims: nothing was left to try, or all single edits were tried, although one reaches the goal.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    larger: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, identity: str, answer: WhyNot, found: Smallest, depth: int, singles: set[Edit]) -> None:
        """Compare one question.

        Args:
            identity: Of the question.
            answer: Of the search.
            found: By the exhaustive search.
            depth: The largest sets that it tried.
            singles: The edits that ``exhaustedSingles`` is about.
        """
        remedies = [
            each
            for each in answer.remedies
            if (each.uses_cluster or answer.goal.type.value != "onCluster") and not each.flags
        ]
        sizes = [len(each.edits) for each in remedies]
        if not found.size:
            self.outcomes[
                "none up to the depth, by both" if not sizes or min(sizes) > depth else "WRONG"
            ] += 1
            if sizes and min(sizes) <= depth:
                self.problems.append(f"{identity}: the exhaustive search misses an answer of the search")
            return
        text = f"{identity}: {'; '.join(sorted(each.op for each in found.sets[0]))}"
        if not sizes:
            self.outcomes["missed"] += 1
            self.missed.append(text)
            if answer.search.complete:
                self.problems.append(f"{text} reaches the goal, and the search claims that nothing was left")
        elif min(sizes) > found.size:
            self.outcomes["answered, with more edits than necessary"] += 1
            self.larger.append(text)
        else:
            self.outcomes["answered, with the fewest edits"] += 1
        harm = max((each.harm.degree for each in remedies), default=len(Harm))
        # Worse ones are left out of an answer, and of a full one those that are as bad as its worst.
        left_out = harm if len(remedies) >= DEFAULT_BOUNDS.answers else harm + 1
        is_shown = any(each <= singles and harm_of([*each]).degree < left_out for each in found.sets)
        if found.size == 1 and answer.search.exhausted_singles and (not sizes or min(sizes) > 1) and is_shown:
            self.problems.append(
                f"{text} reaches the goal, and the search claims that it tried all single edits of the step that refuses"
            )

    def report(self) -> str:
        """Return the figures, with the share of the questions with an answer that the search answers."""
        possible = sum(
            self.outcomes[name] for name in self.outcomes if name.startswith(("answered", "missed"))
        )
        answered = possible - self.outcomes["missed"]
        share = f"{100 * answered / possible:.1f} %" if possible else "none possible"
        counts = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())
        return f"exhaustive: {counts}; answered of those with an answer: {answered} of {possible} ({share})"


def compare(
    folder: Path, *, seed: int, cases: int, depth: int = 2, most_tried: int = 10_000
) -> Iterator[Comparison]:
    """Compare random small questions; yield the comparison so far after each."""
    comparison, checker = Comparison(), Checker(folder)
    original = whynot_answer.answer

    def compared(objects: ObjectSet, question: WhyNotQuestion, bounds: SearchBounds, **rest: Any) -> WhyNot:
        found = original(objects, question, bounds, **rest)
        if found.next_holds:
            comparison.outcomes["holds"] += 1
            return found
        if objects.bindings[objects.ref][1].spec.placement is None:
            # No policy claims it. An edit of its placement would make one, which is no change of the user's.
            comparison.outcomes["no policy"] += 1
            return found
        try:
            fewest = smallest(objects, question.goal, question.cluster, depth=depth, most_tried=most_tried)
        except TooManyDecisionsError:
            comparison.outcomes["too many sets"] += 1
        else:
            singles = single_edits(objects, question.goal, question.cluster)
            comparison.add(identity, found, fewest, depth, singles)
        return found

    asked = questions(seed, most_clusters=MOST_CLUSTERS)
    with mock.patch.object(whynot_answer, "answer", compared):
        for question in itertools.islice(asked, cases):
            identity = question.identity
            checker.ask(question)
            yield comparison
