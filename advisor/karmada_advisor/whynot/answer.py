"""Answers a question: causes, a search, and what the edits of each answer do besides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from karmada_advisor.explain.model import Cause, ObjectShown, Provenance
from karmada_advisor.explain.policies import lazy_edit
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.model import BindingState, SchedulerStatus, Target
from karmada_advisor.state.propagation import Suspended
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.whynot import goals
from karmada_advisor.whynot import model as shown
from karmada_advisor.whynot.found_edits import Answer, FoundEdits, SearchBounds, caution_of
from karmada_advisor.whynot.objects import NO_EDITS, NOBODY_DECIDES, ObjectSet, Scheduled, ScheduledObjects
from karmada_advisor.whynot.search import Search
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.decision import are_same_targets
from karmada_scheduler.framework.edits import Edit, Side
from karmada_scheduler.structs import Struct, replace

_MAX_INEFFECTIVE: Final = 40
_MAX_CHECKED: Final = 200
"""Other bindings that are scheduled again to count those that an edit moves."""


class WhyNotQuestion(Struct, frozen=True):
    """A question.

    Attributes:
        cluster: The cluster; "" if the binding should be placed anywhere.
        goal: What to reach.
    """

    cluster: str
    goal: goals.Goal

    @classmethod
    def of(cls, cluster: str, *, placed: bool, off: bool, replicas: int) -> WhyNotQuestion:
        """Return a question by the flags of the command: about any cluster, or for or against one."""
        if placed:
            return cls(cluster, goals.IsPlaced())
        return cls(cluster, goals.OffCluster(cluster) if off else goals.OnCluster(cluster, replicas))


def answer(
    objects: ObjectSet,
    question: WhyNotQuestion,
    bounds: SearchBounds,
    *,
    state: BindingState,
    provenance: Provenance,
    causes: Callable[[ScheduledObjects], Sequence[Cause]],
    more: Callable[[ScheduledObjects], Sequence[shown.VerifiedRemedy]] = lambda _: (),
    notes: Sequence[str] = (),
) -> shown.WhyNot:
    """Return the answer to a question.

    Args:
        objects: All objects.
        question: The question.
        bounds: Where the search ends.
        state: What is stored about the binding.
        provenance: Where the objects come from.
        causes: Returns why the goal does not hold.
        more: Returns remedies that are no patches of objects; called if the goal does not hold.
        notes: What limits the answer, for people.
    """
    start = time.monotonic()
    root = objects.outcome(NO_EDITS)
    assert root is not None  # the objects were read before
    goal = question.goal
    next_holds = goal.holds(root)
    found = FoundEdits() if next_holds else Search(objects, goal, bounds).run()
    answers = list(found.answers)
    is_nowhere = not goals.is_placed(root) and not root.scheduled.targets
    if not next_holds and isinstance(goal, goals.OnCluster) and is_nowhere:
        answers += _placing(objects, question.cluster, bounds, found, elapsed=time.monotonic() - start)

    def may_check() -> bool:
        return time.monotonic() < start + 2 * bounds.seconds

    binding = root.binding
    return shown.WhyNot(
        binding=shown.BindingShown(*binding.key, binding.generation, binding.spec.replicas),
        cluster=question.cluster,
        goal=goal_shown(goal, as_new=objects.as_new),
        state=state,
        holds=next_holds and _is_stored(objects, goal, root),
        next_holds=next_holds,
        provenance=provenance,
        present=_targets(_present(objects)),
        next=shown.NextDecision(
            _targets(root.scheduled.targets), root.scheduled.code, root.scheduled.problem
        ),
        causes=() if next_holds else tuple(causes(root)),
        remedies=_ranked(
            [
                *(_remedy(objects, question.cluster, root, each, may_check=may_check) for each in answers),
                *(() if next_holds else [*_restarted(objects, question), *more(root)]),
            ]
        ),
        ineffective=tuple(_ineffective(root, tried) for tried in found.ineffective[:_MAX_INEFFECTIVE]),
        search=shown.SearchShown(
            complete=found.complete,
            decisions=objects.decisions,
            runs=found.runs,
            max_runs=bounds.max_runs,
            max_depth=bounds.max_depth,
            seconds=round(time.monotonic() - start, 3),
            timeout_seconds=bounds.seconds,
            exhausted_singles=found.all_singles,
            ended_by=found.ended_by,
        ),
        notes=tuple(notes),
    )


def _is_stored(objects: ObjectSet, goal: goals.Goal, root: ScheduledObjects) -> bool:
    """Return whether what is stored reaches a goal; with forgotten placements, only the next decision counts."""
    if objects.as_new:
        return True
    stored = Scheduled(ScheduleType.AVOID, root.binding.spec.clusters, None, code=NOBODY_DECIDES)
    return goal.holds(replace(root, scheduled=stored)) if not isinstance(goal, goals.IsDecided) else True


def _placing(
    objects: ObjectSet, cluster: str, bounds: SearchBounds, found: FoundEdits, *, elapsed: float
) -> list[Answer]:
    """Return changes that place a binding that is placed nowhere, on other clusters than the one in question."""
    seconds, runs = max(0.0, bounds.seconds - elapsed), max(0, bounds.max_runs - found.runs)
    left = replace(bounds, seconds=seconds, max_runs=runs)
    others = Search(objects, goals.IsPlaced(cluster), left).run()
    found.runs += others.runs
    return others.answers


def goal_shown(goal: goals.Goal, *, as_new: bool) -> shown.GoalShown:
    """Return a goal as it is printed."""
    if isinstance(goal, goals.OnCluster):
        return shown.GoalShown(shown.GoalType.ON_CLUSTER, goal.replicas, as_new)
    kind = shown.GoalType.OFF_CLUSTER if isinstance(goal, goals.OffCluster) else shown.GoalType.PLACED
    return shown.GoalShown(kind, 0, as_new)


def _present(objects: ObjectSet) -> Sequence[TargetCluster]:
    return () if objects.as_new else objects.bindings[objects.ref][1].spec.clusters


def _targets(targets: Sequence[TargetCluster]) -> tuple[Target, ...]:
    return tuple(Target(target.name, target.replicas) for target in targets)


_GATES: Final = (
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "SchedulingOvercommitProtection",
    "WorkloadAffinity",
)


class RuleChange(Struct, frozen=True):
    """A change of one gate or plugin.

    Attributes:
        op: ``setGate`` or ``disablePlugin``.
        text: For people.
        flag: What to append to the command line of the scheduler, and of ``simulate``.
    """

    op: str
    text: str
    flag: str

    def applied(self, rules: Rules) -> Rules:
        """Return rules with the change."""
        _, _, value = self.flag.partition("=")
        if self.op == "setGate":
            return replace(rules, feature_gates=[*rules.feature_gates, value])
        return replace(rules, plugins=[*(rules.plugins or ()), value])


def alternatives(rules: Rules, gates: FeatureGates, refusing: str) -> Iterator[RuleChange]:
    """Yield changes of one gate or plugin.

    Args:
        rules: As they are.
        gates: Their feature gates.
        refusing: The plugin that refuses the cluster, "" if none does.
    """
    if refusing:
        enabled = "" if rules.plugins else "*,"
        flag = f"--plugins={enabled}-{refusing}"
        yield RuleChange("disablePlugin", f"without the plugin {refusing} ({flag})", flag)
    for name in _GATES:
        value = not gates.enabled(name)
        flag = f"--feature-gates={name}={str(value).lower()}"
        yield RuleChange("setGate", f"feature gate {name}={str(value).lower()}", flag)


def remedy_of_configuration(
    objects: ObjectSet, cluster: str, outcome: ScheduledObjects, *, op: str, text: str, flags: tuple[str, ...]
) -> shown.VerifiedRemedy:
    """Return a remedy that consists of flags; the outcome is that of a scheduler with them."""
    edit = shown.EditShown(Side.CONFIGURATION, op, ObjectShown("Scheduler", "", ""), text)
    found = _remedy_of(objects, cluster, outcome, edit)
    return replace(found, touches=shown.Touched(len(objects.bindings), checked=False), flags=flags)


def _remedy_of(
    objects: ObjectSet, cluster: str, outcome: ScheduledObjects, *edits: shown.EditShown
) -> shown.VerifiedRemedy:
    """Return edits as a remedy with what is scheduled after them."""
    targets = outcome.scheduled.targets
    moves, uses = _stopped(_present(objects), targets), goals.on_cluster(outcome, cluster) > 0
    return shown.VerifiedRemedy(edits, result=_targets(targets), moves=moves, uses_cluster=uses)


def _restarted(objects: ObjectSet, question: WhyNotQuestion) -> list[shown.VerifiedRemedy]:
    """Return that the scheduler of the binding has to run again, if it is down and that reaches the goal."""
    name = objects.bindings[objects.ref][1].spec.responsible_scheduler
    scheduler = objects.schedulers.of(name)
    if scheduler.status is not SchedulerStatus.DOWN:
        return []
    outcome = replace(objects, schedulers=Schedulers(), decisions=0).outcome(NO_EDITS)
    if outcome is None or not question.goal.holds(outcome):
        return []
    target, text = ObjectShown("Scheduler", "", name), f"{name} has to run again: {scheduler}"
    instead = f"Start {name}, or find out why it does not renew its Lease."
    edit = shown.EditShown(Side.CONFIGURATION, "startScheduler", target, text, instead=instead)
    return [_remedy_of(objects, question.cluster, outcome, edit)]


def _ranked(remedies: Sequence[shown.VerifiedRemedy]) -> tuple[shown.VerifiedRemedy, ...]:
    """Return remedies by harm, and number them."""
    found = sorted(remedies, key=lambda each: each.harm.degree)
    return tuple(replace(remedy, rank=number) for number, remedy in enumerate(found, 1))


def _remedy(
    objects: ObjectSet, cluster: str, root: ScheduledObjects, found: Answer, *, may_check: Callable[[], bool]
) -> shown.VerifiedRemedy:
    outcome = found.outcome
    return replace(
        _remedy_of(objects, cluster, outcome, *map(shown.edit_shown, found.edits)),
        apply=shown.patches_of(outcome.patched),
        touches=_touched(objects, found, may_check),
        verified=shown.Verified(1, len(found.edits)),
        harm=found.harm,
        caution=" ".join(
            filter(
                None,
                (
                    caution_of(found.edits, root, outcome, objects.gates),
                    _undispatched(objects, outcome),
                    *(f"{lazy_edit(each)}." for each in objects.lazy_policies if Side.POLICY in found.sides),
                ),
            )
        ),
    )


def _undispatched(objects: ObjectSet, outcome: ScheduledObjects) -> str:
    """Return that what starts does not arrive, if dispatching is suspended there; "" if it is not."""
    suspended, had = Suspended.of(objects.bindings[objects.ref][0]), dict(_present(objects))
    names = [
        target.name
        for target in outcome.scheduled.targets
        if suspended.concerns(target.name) and target.replicas > had.get(target.name, -1)
    ]
    return f"Dispatching to {', '.join(names)} is suspended: nothing new arrives there." if names else ""


def _ineffective(root: ScheduledObjects, tried: tuple[Edit, ScheduledObjects]) -> shown.Ineffective:
    edit, outcome = tried
    unchanged = are_same_targets(outcome.scheduled.targets, root.scheduled.targets)
    return shown.Ineffective((shown.edit_shown(edit),), _targets(outcome.scheduled.targets), unchanged)


def _stopped(before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> int:
    """Return the replicas that stop in one cluster (and may start in another)."""
    left = {target.name: target.replicas for target in after}
    return sum(max(0, target.replicas - left.get(target.name, 0)) for target in before)


def _touched(objects: ObjectSet, found: Answer, may_check: Callable[[], bool]) -> shown.Touched:
    """Return what else the edits concern.

    An edit of the policy concerns all its bindings. For an edit of a cluster, or of another binding, the other bindings
    are scheduled with and without it, if there are few enough and there is time.
    """
    mine = objects.bindings[objects.ref][1]
    claimed = 1
    if any(edit.target.is_policy or edit.side is Side.QUOTA for edit in found.edits):
        return shown.Touched(claimed, checked=False)
    if not objects.has_all_bindings:
        return shown.Touched(claimed, checked=not found.sides - {Side.TRIGGER, Side.WORKLOAD})
    if Side.POLICY in found.sides and any(_policy_of(mine)):
        claimed = sum(1 for _, each in objects.bindings.values() if _policy_of(each) == _policy_of(mine))
    if not found.sides & {Side.CLUSTER, Side.COMPETITOR, Side.PEER}:
        return shown.Touched(claimed, checked=True)
    others = [binding for _, binding in objects.bindings.values() if binding.key != objects.key]
    if len(others) > _MAX_CHECKED:
        return shown.Touched(claimed, checked=False)
    changed = 0
    for other in others:
        if not may_check():
            return shown.Touched(claimed + changed, checked=False)
        changed += objects.differs(other.key, found.edits)
    return shown.Touched(claimed + changed, checked=True)


def _policy_of(binding: Binding) -> tuple[str, str]:
    return binding.labels.get(POLICY_ID_LABEL, ""), binding.labels.get(CLUSTER_POLICY_ID_LABEL, "")
