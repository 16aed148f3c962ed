"""``karmada-pyscheduler why-not``: why a cluster has no replicas of a binding, and what would change that.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Final

from karmada_advisor.cli.collection import collection_of_new_objects
from karmada_advisor.cli.output import CommandAnswer, exit_status, print_answer, print_errors
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.causes import causes_of_binding, causes_of_cluster
from karmada_advisor.explain.explain import fleet_of
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause, Provenance, Stage, Tense
from karmada_advisor.explain.names import unknown
from karmada_advisor.explain.policies import TemplateHead
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_advisor.sources import capture, rules
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.sources.inputs import Explaining, explaining
from karmada_advisor.sources.objects import gather
from karmada_advisor.sources.remedies import editable
from karmada_advisor.sources.rules import alternatives
from karmada_advisor.state.reading import state_of
from karmada_advisor.views.layout import with_printable_texts
from karmada_advisor.views.why_not import why_not_cluster_text, why_not_text
from karmada_advisor.whynot.answer import WhyNotQuestion, answer, goal_shown, remedy_of_configuration
from karmada_advisor.whynot.found_edits import DEFAULT_BOUNDS, SearchBounds
from karmada_advisor.whynot.goals import BlockedStep, OffCluster, OnCluster, blocker_of, is_placed
from karmada_advisor.whynot.model import VerifiedRemedy, WhyNot
from karmada_advisor.whynot.objects import ObjectSet, ScheduledObjects
from karmada_advisor.whynot.reverse import WhyNotCluster, why_not_cluster
from karmada_advisor.whynot.unclaimed import answer_unclaimed
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding, BindingKey
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import replace

_SEARCH_SECONDS: Final = 2.0
_CLUSTER_SECONDS: Final = 30.0
_NO_BINDING: Final = Binding(BindingKey(RESOURCE_BINDING, "", ""))
"""Where only the clusters matter."""


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    return print_answer(arguments, lambda: _replayed(arguments, own))


def _replayed(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    with capture.replayed(arguments) as found:
        return _answer(found.arguments, own)


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    """Return what to print, and the exit status.

    Raises:
        NoAnswerError: There is no answer.
    """
    _check_question(arguments)
    rules.parsed_gates(arguments)  # a mistake there is reported before anything is read
    objects = gather(arguments, arguments.name, all_bindings=True, others_needed=not arguments.name)
    print_errors([*objects.problems, *objects.unlisted])
    cluster, names = arguments.of_cluster or arguments.cluster, [each.name for each in objects.clusters]
    if cluster and cluster not in names:
        raise NoAnswerError(unknown(f"cluster {cluster}", cluster, names))
    template = objects.unclaimed_template()
    if template is not None:
        return _about_binding(_unclaimed(arguments, objects, template), objects)
    with (
        explaining(arguments, objects, own, as_new=arguments.as_new) as using,
        collection_of_new_objects(),
    ):
        if arguments.of_cluster:
            groups = ask_cluster(using, cluster, arguments.timeout)
            status = exit_status(is_good=True, problems=objects.problems)
            return CommandAnswer(
                groups, lambda style: why_not_cluster_text(with_printable_texts(groups), style), status
            )
        more = _by_configuration(arguments, using, own) if arguments.allow else None
        bounds = search_bounds(arguments.timeout, arguments.max_runs)
        return _about_binding(ask(using, objects.find().key, _question(arguments), bounds, more), objects)


def _about_binding(found: WhyNot, objects: Objects) -> CommandAnswer:
    is_good = found.holds or bool(found.remedies)
    status = exit_status(is_good=is_good, problems=objects.problems)
    return CommandAnswer(found, lambda style: why_not_text(with_printable_texts(found), style), status)


def _unclaimed(arguments: argparse.Namespace, objects: Objects, template: TemplateHead) -> WhyNot:
    """Return the answer about a workload without a binding."""
    policies = objects.policies or ()
    explanation = explain_unclaimed(
        template,
        policies,
        source=objects.source,
        priority_classes=objects.priority_classes,
        events=objects.warning_events(),
    )
    goal = goal_shown(_question(arguments).goal, as_new=arguments.as_new)
    return answer_unclaimed(explanation, policies, template, goal, arguments.cluster)


def _question(given: argparse.Namespace) -> WhyNotQuestion:
    return WhyNotQuestion.of(given.cluster, placed=given.placed, off=given.off, replicas=given.replicas)


def search_bounds(seconds: float | None = None, max_runs: int = DEFAULT_BOUNDS.max_runs) -> SearchBounds:
    """Return the bounds of a search; of 2 s without others."""
    return SearchBounds(seconds or _SEARCH_SECONDS, max_runs)


def _check_question(arguments: argparse.Namespace) -> None:
    if arguments.of_cluster:
        if arguments.name:
            raise NoAnswerError(
                "--cluster asks about all bindings: give a binding and a cluster, or only --cluster"
            )
    elif not arguments.name:
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

    def causes(root: ScheduledObjects) -> list[Cause]:
        snapshot = edited.snapshot
        using.show(snapshot)
        decision = None if using.as_new else root.scheduled.decision
        return _causes(Situation(using.inputs_of(binding, snapshot), decision), question)

    inputs = using.inputs_of(binding, edited.snapshot)
    return answer(
        edited,
        question,
        bounds,
        state=state_of(binding, edited.manifests[edited.ref], inputs.facts),
        provenance=_provenance(using, inputs),
        causes=causes,
        notes=_notes(using),
        more=lambda root: () if more is None else more(edited, question, root),
    )


def _notes(using: Explaining) -> list[str]:
    """Return what limits the answer.

    Raises:
        NoAnswerError: The decision reads other bindings, which may not be listed.
    """
    if not using.objects.unlisted:
        return []
    if using.dry_run.is_coupled:
        raise NoAnswerError(
            "without the permission to list bindings there is no answer: decisions read other bindings because "
            "of a feature gate or a plugin"
        )
    return ["Bindings may not be listed, so it is not known how many others the changes concern."]


def _by_configuration(
    arguments: argparse.Namespace, using: Explaining, own: Sequence[Registration]
) -> MoreRemedies:
    """Return what finds the single changes of the configuration that reach a goal, each decided by a scheduler with it."""

    def more(edited: ObjectSet, question: WhyNotQuestion, root: ScheduledObjects) -> list[VerifiedRemedy]:
        cluster, found = question.cluster, []
        blocker = blocker_of(root, cluster) if cluster else None
        refusing = blocker.code if blocker is not None and blocker.step is BlockedStep.FILTER else ""
        for each in alternatives(arguments, edited.gates, refusing):
            changed = each.applied(arguments)
            try:
                with explaining(changed, using.objects, own, as_new=using.as_new, say=_ignored) as other:
                    outcome = editable(other, edited.key).outcome(())
            except NoAnswerError:
                continue  # for example the last plugin cannot be disabled
            # A decision that fails leaves the placement, which may look like the goal.
            if outcome is not None and is_placed(outcome) and question.goal.holds(outcome):
                flags = (each.flag,)
                found.append(
                    remedy_of_configuration(edited, cluster, outcome, op=each.op, text=each.text, flags=flags)
                )
        return found

    return more


def ask_cluster(using: Explaining, cluster: str, seconds: float | None = None) -> WhyNotCluster:
    """Return which bindings a cluster does not have, of those that can be looked at in time; 30 s without another."""
    using.show(using.snapshot)
    end = time.monotonic() + (seconds or _CLUSTER_SECONDS)
    return why_not_cluster(
        cluster,
        using.objects.bindings,
        lambda binding: Situation(using.inputs_of(binding)),
        causes_of_cluster,
        provenance=_provenance(using, using.inputs_of(_NO_BINDING)),
        may_go_on=lambda: time.monotonic() < end,
    )


def _provenance(using: Explaining, inputs: ExplainInputs) -> Provenance:
    now = at(inputs.now) if inputs.now is not None else ""
    return Provenance(Tense.RECOMPUTED, using.objects.source, now, fleet_of(inputs))


def _causes(situation: Situation, question: WhyNotQuestion) -> list[Cause]:
    """Return why the cluster has no replicas.

    If no cluster has any and this one passes the filters, what fails for all of them comes first.
    """
    cluster, goal = question.cluster, question.goal
    if isinstance(goal, OffCluster) or not cluster:
        return causes_of_binding(situation)
    found = causes_of_cluster(situation, cluster)
    is_refused = bool(found) and found[0].stage in {Stage.TRIGGER, Stage.POLICY, Stage.FILTER}
    if not is_refused and situation.is_decided and situation.now.decision.error is not None:
        found = [*causes_of_binding(situation), *found]
    by_code = {each.code: each for each in reversed(found)}
    ranked = [by_code[code] for code in dict.fromkeys(each.code for each in found)]
    if not ranked:
        replicas = situation.placement.get(cluster, 0)
        wanted = goal.replicas if isinstance(goal, OnCluster) else 1
        text = (
            f"{cluster} gets {replicas} of the {counted(situation.inputs.binding.spec.replicas, 'replica')}"
        )
        ranked = [Cause("FewerReplicas", Stage.DIVIDE, {"replicas": replicas, "wanted": wanted}, text)]
    return [replace(each, primary=index == 0) for index, each in enumerate(ranked)]


def _ignored(_warning: str) -> None:
    """Print nothing: the warning was printed for the given configuration."""
