"""Answers a question: causes, a search, and what the edits of each answer do besides."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.whynot.blockers import Blocker, Step, blocker_of
from karmada_scheduler.whynot.edits import Side
from karmada_scheduler.whynot.goals import Goal, IsPlaced, OffCluster, OnCluster, is_placed, on_cluster
from karmada_scheduler.whynot.model import CauseFound, Remedy, SearchFacts, Touched, Tried, WhyNot
from karmada_scheduler.whynot.search import Answer, Bounds, Found, Search
from karmada_scheduler.whynot.world import NO_EDITS, Outcome, World

_MAX_INEFFECTIVE: Final = 40
_MAX_CHECKED: Final = 200
"""Other bindings that are scheduled again to count those that an edit moves."""

_STAGES: Final = {
    Step.TRIGGER: "trigger",
    Step.FILTER: "filter",
    Step.SELECT: "select",
    Step.DIVIDE: "divide",
    Step.DONE: "divide",
}

Causes = Callable[[World, Outcome, str], Sequence[CauseFound]]


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes:
        cluster: The cluster; "" if the binding should be placed anywhere.
        goal: What to reach.
    """

    cluster: str
    goal: Goal


def answer(
    world: World,
    question: Question,
    bounds: Bounds,
    *,
    provenance: Mapping[str, Any],
    causes: Causes | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> WhyNot:
    """Return the answer to a question."""
    start = clock()
    root = world.outcome(NO_EDITS)
    assert root is not None  # the objects were read before
    goal = question.goal
    holds = goal.holds(root)
    found = Found() if holds else Search(world, goal, bounds, cluster=question.cluster, clock=clock).run()
    answers = list(found.answers)
    if not holds and isinstance(goal, OnCluster) and not is_placed(root) and not root.scheduled.targets:
        left = max(0.0, bounds.seconds - (clock() - start))
        placing = Bounds(left, max(0, bounds.max_runs - found.runs), bounds.max_depth, bounds.answers)
        others = Search(world, IsPlaced(question.cluster), placing, clock=clock).run()
        answers += others.answers
        found.runs += others.runs
    return WhyNot(
        key=world.key,
        generation=root.binding.generation,
        replicas=root.binding.spec.replicas,
        cluster=question.cluster,
        goal="offCluster"
        if isinstance(goal, OffCluster)
        else "placed"
        if isinstance(goal, IsPlaced)
        else "onCluster",
        wanted=goal.replicas if isinstance(goal, OnCluster) else 0,
        holds=holds,
        as_new=world.as_new,
        present=() if world.as_new else root.binding.spec.clusters,
        scheduled=root.scheduled.targets,
        condition=root.scheduled.code,
        message=root.scheduled.problem,
        provenance=provenance,
        causes=[] if holds else list((causes or own_causes)(world, root, question.cluster)),
        remedies=[
            _remedy(world, question.cluster, each, may_check=lambda: clock() < start + 2 * bounds.seconds)
            for each in answers
        ],
        ineffective=[
            Tried(edit, outcome.scheduled.targets, outcome.scheduled.targets == root.scheduled.targets)
            for edit, outcome in found.ineffective[:_MAX_INEFFECTIVE]
        ],
        search=SearchFacts(
            complete=found.complete,
            decisions=world.decisions,
            runs=found.runs,
            max_runs=bounds.max_runs,
            max_depth=bounds.max_depth,
            seconds=clock() - start,
            timeout=bounds.seconds,
            exhausted_singles=found.all_singles,
            ended_by=found.ended_by,
        ),
    )


def _remedy(world: World, cluster: str, found: Answer, *, may_check: Callable[[], bool]) -> Remedy:
    outcome = found.outcome
    present = () if world.as_new else world.bindings[world.ref][1].spec.clusters
    return Remedy(
        edits=found.edits,
        apply=outcome.patched.apply(),
        result=outcome.scheduled.targets,
        moves=_stopped(present, outcome.scheduled.targets),
        touches=_touched(world, found, may_check),
        leave_one_out=len(found.edits),
        uses_cluster=bool(cluster) and on_cluster(outcome, cluster) > 0,
    )


def _stopped(before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> int:
    """Return the replicas that stop in one cluster (and may start in another)."""
    left = {each.name: each.replicas for each in after}
    return sum(max(0, each.replicas - left.get(each.name, 0)) for each in before)


def _touched(world: World, found: Answer, may_check: Callable[[], bool]) -> Touched:
    """Return what else the edits concern.

    An edit of the policy concerns all its bindings. For an edit of a cluster, or of another binding, the other bindings
    are scheduled with and without it, if there are few enough and there is time.
    """
    policy = world.bindings[world.ref][1]
    claimed = 1
    if Side.POLICY in found.sides:
        ids = _policy_of(policy)
        claimed = max(1, sum(1 for _, each in world.bindings.values() if ids and _policy_of(each) == ids))
    if not found.sides & {Side.CLUSTER, Side.COMPETITOR, Side.PEER}:
        return Touched(claimed, checked=True)
    others = [each for _, each in world.bindings.values() if each.key != world.key]
    if len(others) > _MAX_CHECKED:
        return Touched(claimed, checked=False)
    changed = 0
    for each in others:
        if not may_check():
            return Touched(claimed, checked=False)
        changed += world.differs(each.key, found.edits)
    return Touched(claimed + changed, checked=True)


def _policy_of(binding: Binding) -> tuple[str, ...]:
    return (
        tuple(binding.labels.get(name, "") for name in (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL))
        if any(binding.labels.get(name) for name in (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL))
        else ()
    )


def own_causes(world: World, root: Outcome, cluster: str) -> list[CauseFound]:
    """Return where the cluster drops out now, and, if nothing asks for a decision, where it would."""
    if not cluster:
        message = root.scheduled.problem or condition_for(None).message
        return [CauseFound(root.scheduled.code or "NotPlaced", "filter", message, primary=True)]
    blocker = blocker_of(root, cluster)
    found = [_cause(blocker, primary=True)]
    if blocker.code == "NothingAsks":
        forced = world.forced(NO_EDITS)
        if forced is not None:
            found.append(_cause(blocker_of(forced, cluster), primary=False))
    return found


def _cause(blocker: Blocker, *, primary: bool) -> CauseFound:
    text = "; ".join(blocker.reasons) or blocker.code
    return CauseFound(blocker.code or "Placed", _STAGES[blocker.step], text, primary=primary)
