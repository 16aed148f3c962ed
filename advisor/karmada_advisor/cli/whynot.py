"""``karmada-pyscheduler why-not``: why a cluster has no replicas of a binding, and what would change that.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from karmada_advisor.cli.output import CommandAnswer, exit_status, print_errors
from karmada_advisor.cli.questions import rules_of, source_of
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.causes import causes_of_binding, causes_of_cluster, ranked
from karmada_advisor.explain.explain import fleet_of
from karmada_advisor.explain.inputs import Explaining, ExplainInputs, explaining
from karmada_advisor.explain.model import Cause, Provenance, Stage, Tense
from karmada_advisor.explain.policies import names_priority_class
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.unclaimed import unclaimed_template
from karmada_advisor.fleet import capture
from karmada_advisor.fleet.capture import Replayed
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.read import read_fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.model import HeldBy
from karmada_advisor.state.quota import NOT_READ, grows, not_sure
from karmada_advisor.state.reading import state_of
from karmada_advisor.state.stored import Manifest, mappings, text_of, value_at
from karmada_advisor.views.why_not import why_not_cluster_text, why_not_clusters_text, why_not_text
from karmada_advisor.whynot import answer as whynot_answer
from karmada_advisor.whynot.answer import WhyNotQuestion, alternatives, goal_shown, remedy_of_configuration
from karmada_advisor.whynot.clusters import (
    WhyNotCluster,
    WhyNotClusters,
    answer_clusters,
    clusters_with,
    why_not_cluster,
)
from karmada_advisor.whynot.found_edits import DEFAULT_BOUNDS, SearchBounds
from karmada_advisor.whynot.goals import BlockedStep, OffCluster, OnCluster, blocker_of, is_placed
from karmada_advisor.whynot.model import VerifiedRemedy, WhyNot
from karmada_advisor.whynot.objects import NO_EDITS, ObjectSet, ScheduledObjects
from karmada_advisor.whynot.remedies import answer_unclaimed, editable
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding, BindingKey
from karmada_scheduler.core.condition import QUOTA_EXCEEDED
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process.memory import collection_of_new_objects
from karmada_scheduler.structs import replace

_SEARCH_SECONDS: Final = 2.0
_CLUSTER_SECONDS: Final = 30.0
_NO_BINDING: Final = Binding(BindingKey(RESOURCE_BINDING, "", ""))
"""Where only the clusters matter."""


def answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    """Return what to print, and the exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: There is no answer.
    """
    with capture.replayed(source_of(arguments), rules_of(arguments, own), arguments.name) as found:
        return _answer(arguments, found)


def _answer(arguments: argparse.Namespace, asked: Replayed) -> CommandAnswer:
    """Return what to print, and the exit status.

    Raises:
        NoAnswerError: There is no answer.
    """
    rules, plane = asked.rules, asked.source.plane
    _check_question(arguments, asked.name)
    _ = rules.gates  # a mistake there is reported before anything is read
    objects = read_fleet(
        asked.source,
        asked.name,
        all_bindings=True,
        others_needed=not asked.name,
        names_priority_class=names_priority_class,
    )
    print_errors([*objects.problems, *objects.unlisted])
    cluster, names = arguments.of_cluster or arguments.cluster, [known.name for known in objects.clusters]
    several = _several(arguments, cluster, objects) if cluster and cluster not in names else []
    if (unclaimed := unclaimed_template(objects)) is not None:
        template, explanation = unclaimed
        goal = goal_shown(_question(arguments).goal, as_new=arguments.as_new)
        found = answer_unclaimed(explanation, objects.policies or (), template, goal, [*several, cluster][0])
        if several:
            same = dict.fromkeys(several, found.causes[0])
            return _about_clusters(answer_clusters(cluster, same, (), lambda *_: found, 0.0), objects)
        return _about_binding(found, objects)
    with (
        explaining(objects, rules, plane, as_new=arguments.as_new) as using,
        collection_of_new_objects(),
    ):
        if arguments.of_cluster:
            groups = ask_cluster(using, cluster, arguments.timeout)
            status = exit_status(is_good=True, problems=objects.problems)
            return CommandAnswer(groups, partial(why_not_cluster_text, groups), status)
        more = _by_rules(rules, plane, using) if arguments.allow else None
        bounds, key = search_bounds(arguments.timeout, arguments.max_runs), objects.find().key
        if several:
            return _about_clusters(ask_clusters(using, key, cluster, several, bounds, more=more), objects)
        return _about_binding(ask(using, key, _question(arguments), bounds, more), objects)


def _about_binding(found: WhyNot, objects: Fleet) -> CommandAnswer:
    is_good = found.holds or bool(found.remedies)
    status = exit_status(is_good=is_good, problems=objects.problems)
    return CommandAnswer(found, partial(why_not_text, found), status)


def _about_clusters(found: WhyNotClusters, objects: Fleet) -> CommandAnswer:
    status = _about_binding(found.answer, objects).status
    return CommandAnswer(found, partial(why_not_clusters_text, found), status)


def _several(given: argparse.Namespace, where: str, objects: Fleet) -> list[str]:
    """Return the clusters that have what the question names instead of one cluster.

    Raises:
        NoAnswerError: No cluster has it, or it is the name of a cluster that does not exist.
    """
    if "=" in where and (given.of_cluster or given.placed or given.off or given.replicas > 1):
        flags = "--cluster, --placed, --off and --replicas"
        raise NoAnswerError(f"{flags} ask about one cluster, not about {where}")
    return clusters_with(where, objects.clusters, given.name or "NAME")


def _on(cluster: str) -> WhyNotQuestion:
    return WhyNotQuestion(cluster, OnCluster(cluster))


def _question(given: argparse.Namespace) -> WhyNotQuestion:
    return WhyNotQuestion.of(given.cluster, placed=given.placed, off=given.off, replicas=given.replicas)


def search_bounds(seconds: float | None = None, max_runs: int = DEFAULT_BOUNDS.max_runs) -> SearchBounds:
    """Return the bounds of a search; of 2 s without others."""
    return SearchBounds(seconds or _SEARCH_SECONDS, max_runs)


def _check_question(arguments: argparse.Namespace, name: str) -> None:
    if arguments.of_cluster:
        if name:
            raise NoAnswerError(
                "--cluster asks about all bindings: give a binding and a cluster, or only --cluster"
            )
    elif not name:
        raise NoAnswerError("name a binding and a cluster, or use --cluster")
    elif not arguments.cluster and not arguments.placed:
        raise NoAnswerError("name a cluster, or use --placed")


MoreRemedies = Callable[[ObjectSet, WhyNotQuestion, ScheduledObjects], list[VerifiedRemedy]]
"""Remedies besides changes of objects, for a question and what is scheduled without a change."""


def ask(
    using: Explaining,
    key: BindingKey,
    question: WhyNotQuestion,
    bounds: SearchBounds,
    more: MoreRemedies | None = None,
) -> WhyNot:
    """Return the answer about one binding.

    Raises:
        NoAnswerError: The decision reads other bindings, which may not be listed.
    """
    edited = editable(using, key)
    binding = edited.bindings[edited.ref][1]
    inputs, notes = using.inputs_of(binding, edited.snapshot), _notes(using)
    found = whynot_answer.answer(
        edited,
        question,
        bounds,
        state=state_of(binding, edited.manifests[edited.ref], inputs.facts),
        provenance=_provenance(using, inputs),
        causes=lambda root: _causes(_situation(using, edited, root), question),
        notes=notes,
        more=lambda root: () if more is None or inputs.not_known else more(edited, question, root),
    )
    static = [*_static_quotas(found, using.fleet.quotas or ())]
    return replace(found, notes=(*found.notes, *static, *_of_quotas(found, inputs)))


def ask_clusters(
    using: Explaining,
    key: BindingKey,
    where: str,
    clusters: Sequence[str],
    bounds: SearchBounds,
    *,
    more: MoreRemedies | None = None,
) -> WhyNotClusters:
    """Return the answer about one binding and the clusters that ``where`` names, of which there is one at least.

    Raises:
        NoAnswerError: The decision reads other bindings, which may not be listed.
    """

    def ask_one(name: str, seconds: float) -> WhyNot:
        return ask(using, key, _on(name), replace(bounds, seconds=seconds), more)

    edited = editable(using, key)
    root = edited.outcome(NO_EDITS)
    assert root is not None  # the objects were read before
    situation, questions = _situation(using, edited, root), {name: _on(name) for name in clusters}
    causes = {
        name: None if asked.goal.holds(root) else _causes(situation, asked)[0]
        for name, asked in questions.items()
    }
    stored = () if using.as_new else {target.name for target in root.binding.spec.clusters}
    return answer_clusters(where, causes, stored, ask_one, bounds.seconds)


def _situation(using: Explaining, edited: ObjectSet, root: ScheduledObjects) -> Situation:
    binding, snapshot = edited.bindings[edited.ref][1], edited.snapshot
    inputs = using.inputs_of(binding, snapshot)
    if inputs.not_known:
        return Situation(inputs)
    using.show(snapshot)
    return Situation(using.inputs_of(binding, snapshot), None if using.as_new else root.scheduled.decision)


def _of_quotas(found: WhyNot, inputs: ExplainInputs) -> Iterator[str]:
    """Yield what is not known about quotas, where more would be charged than is, or one has refused the binding."""
    results = (found.next.result, *(remedy.result for remedy in found.remedies))
    more = any(grows(inputs.binding.spec, found.present, result) for result in results)
    if found.state.held_by is HeldBy.QUOTA and inputs.quotas is None:
        yield "A quota has refused it, and quotas were not read (--quotas): it may refuse it again."
    elif inputs.quotas is None and more:
        yield NOT_READ
    elif (more or found.next.reason == QUOTA_EXCEEDED) and (unsure := not_sure(inputs.quotas or {})):
        yield unsure


def _static_quotas(found: WhyNot, quotas: Iterable[Manifest]) -> Iterator[str]:
    """Yield which quotas of the namespace member clusters enforce, if something would start there."""
    clusters = {each.name for remedy in found.remedies for each in remedy.result if each not in found.present}
    for quota in quotas:
        assigned = mappings(value_at(quota, "spec", "staticAssignments"))
        names = sorted(clusters & {str(part.get("clusterName")) for part in assigned})
        if names and text_of(quota, "metadata", "namespace") == found.binding.namespace:
            name = text_of(quota, "metadata", "name")
            yield f"Not judged: the quota {name} assigns amounts to {', '.join(names)}, which members enforce."


def _notes(using: Explaining) -> list[str]:
    """Return what limits the answer.

    Raises:
        NoAnswerError: The decision reads other bindings, which may not be listed.
    """
    if not using.fleet.unlisted:
        return []
    if using.dry_run.is_coupled:
        raise NoAnswerError(
            "without all bindings there is no answer: decisions read other bindings because "
            "of a feature gate or a plugin"
        )
    return ["Not all bindings were read, so it is not known how many others the changes concern."]


def _by_rules(rules: Rules, plane: ControlPlane, using: Explaining) -> MoreRemedies:
    """Return what finds the single changes of the rules that reach a goal, each decided by a scheduler with it."""

    def more(edited: ObjectSet, question: WhyNotQuestion, root: ScheduledObjects) -> list[VerifiedRemedy]:
        cluster, found = question.cluster, []
        blocker = blocker_of(root, cluster) if cluster else None
        refusing = blocker.code if blocker is not None and blocker.step is BlockedStep.FILTER else ""
        for rule in alternatives(rules, edited.gates, refusing):
            changed = rule.applied(rules)
            try:
                with explaining(using.fleet, changed, plane, as_new=using.as_new, say=_ignored) as other:
                    outcome = editable(other, edited.key).outcome(())
            except NoAnswerError:
                continue  # for example the last plugin cannot be disabled
            # A decision that fails leaves the placement, which may look like the goal.
            if outcome is not None and is_placed(outcome) and question.goal.holds(outcome):
                flags = (rule.flag,)
                found.append(
                    remedy_of_configuration(edited, cluster, outcome, op=rule.op, text=rule.text, flags=flags)
                )
        return found

    return more


def ask_cluster(using: Explaining, cluster: str, seconds: float | None = None) -> WhyNotCluster:
    """Return which bindings a cluster does not have, of those that can be looked at in time; 30 s without another."""
    provenance = _provenance(using, using.inputs_of(_NO_BINDING))
    return why_not_cluster(using, cluster, provenance, seconds or _CLUSTER_SECONDS)


def _provenance(using: Explaining, inputs: ExplainInputs) -> Provenance:
    return Provenance(Tense.RECOMPUTED, using.fleet.source, inputs.facts.at, fleet_of(inputs))


def _causes(situation: Situation, question: WhyNotQuestion) -> list[Cause]:
    """Return why the cluster has no replicas.

    If no cluster has any and this one passes the filters, what fails for all of them comes first.
    """
    cluster, goal = question.cluster, question.goal
    if situation.inputs.not_known or isinstance(goal, OffCluster) or not cluster:
        return causes_of_binding(situation)
    found = causes_of_cluster(situation, cluster)
    is_refused = bool(found) and found[0].stage in {Stage.TRIGGER, Stage.POLICY, Stage.FILTER}
    if not is_refused and situation.is_decided and situation.now.decision.error is not None:
        found = [*causes_of_binding(situation), *found]
    if not found:
        replicas = situation.placement.get(cluster, 0)
        wanted = goal.replicas if isinstance(goal, OnCluster) else 1
        text = f"{cluster} gets {replicas} of the {counted(situation.spec.replicas, 'replica')}"
        found = [Cause("FewerReplicas", Stage.DIVIDE, {"replicas": replicas, "wanted": wanted}, text)]
    return ranked(found)


def _ignored(_warning: str) -> None:
    """Print nothing: the warning was printed for the given configuration."""
