"""``karmada-pyscheduler why-not``: why a cluster has no replicas of a binding, and what would change that.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from karmada_advisor.cli.collection import collection_of_new_objects
from karmada_advisor.cli.output import NO_ANSWER, print_answer, print_error, style_of
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.causes import causes_of_binding, causes_of_cluster
from karmada_advisor.explain.explain import fleet_of
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause, Provenance, Stage, Tense
from karmada_advisor.explain.names import nearest
from karmada_advisor.explain.policies import TemplateHead
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_advisor.sources import capture, rules
from karmada_advisor.sources.configurations import alternatives
from karmada_advisor.sources.inputs import Explaining, explaining
from karmada_advisor.sources.objects import NoAnswerError, Objects, gather
from karmada_advisor.sources.remedies import editable
from karmada_advisor.state.reading import state_of
from karmada_advisor.views.fields import as_json, as_yaml, document_fields
from karmada_advisor.views.layout import Style
from karmada_advisor.views.printable import with_printable_texts
from karmada_advisor.views.why_not import why_not_cluster_text, why_not_text
from karmada_advisor.whynot.answer import WhyNotQuestion, answer, goal_shown, remedy_of_configuration
from karmada_advisor.whynot.blockers import BlockedStep, blocker_of
from karmada_advisor.whynot.goals import Goal, IsPlaced, OffCluster, OnCluster, is_placed
from karmada_advisor.whynot.model import Remedy, WhyNot
from karmada_advisor.whynot.objects import ObjectSet, ScheduledObjects
from karmada_advisor.whynot.reverse import WhyNotCluster, why_not_cluster
from karmada_advisor.whynot.search import SearchBounds
from karmada_advisor.whynot.unclaimed import answer_unclaimed
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding, BindingKey
from karmada_scheduler.framework.profile.factory import Registration

ANSWERED: Final = 0
NONE_FOUND: Final = 1

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
    return print_answer(lambda: _replayed(arguments, own) if arguments.replay else _answer(arguments, own))


def _replayed(arguments: argparse.Namespace, own: Sequence[Registration]) -> tuple[str, int]:
    with capture.replayed(arguments) as found:
        return _answer(found.arguments, own)


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> tuple[str, int]:
    """Return what to print, and the exit status.

    Raises:
        NoAnswerError: There is no answer.
    """
    _check_question(arguments)
    rules.parsed_gates(arguments)  # a mistake there is reported before anything is read
    objects = gather(arguments, arguments.name, all_bindings=True, others_needed=not arguments.name)
    for problem in [*objects.problems, *objects.unlisted]:
        print_error(problem)
    cluster = arguments.of_cluster or arguments.cluster
    _check_cluster(cluster, objects)
    template = objects.unclaimed_template()
    if template is not None:
        return _unclaimed(arguments, objects, template)
    with asking(arguments, objects, own) as session, collection_of_new_objects():
        if arguments.of_cluster:
            text, is_good = session.of_cluster()
        else:
            text, is_good = session.of_binding(objects.find().key)
    if objects.problems:
        return text, NO_ANSWER
    return text, ANSWERED if is_good else NONE_FOUND


def _unclaimed(arguments: argparse.Namespace, objects: Objects, template: TemplateHead) -> tuple[str, int]:
    """Return the answer about a workload without a binding, and the exit status."""
    policies = objects.policies or ()
    explanation = explain_unclaimed(
        template,
        policies,
        source=objects.source,
        priority_classes=objects.priority_classes,
        events=objects.warning_events(),
    )
    goal = goal_shown(_goal(arguments), as_new=arguments.as_new)
    found = answer_unclaimed(explanation, policies, template, goal, arguments.cluster)
    text = _written(
        arguments, document_fields(found), lambda style: why_not_text(with_printable_texts(found), style)
    )
    return text, NO_ANSWER if objects.problems else ANSWERED if found.remedies else NONE_FOUND


@contextmanager
def asking(arguments: argparse.Namespace, objects: Objects, own: Sequence[Registration]) -> Iterator[Session]:
    """Provide what answers questions about objects.

    Args:
        arguments: With all flags of the command.
        objects: What was read.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: The configuration or a plugin cannot be used.
    """
    with explaining(arguments, objects, own) as using:
        yield Session(arguments, using, own)


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


def _check_cluster(cluster: str, objects: Objects) -> None:
    names = [each.name for each in objects.clusters]
    if cluster and cluster not in names:
        near = nearest(cluster, names)
        raise NoAnswerError(f"cluster {cluster} does not exist" + (f". Nearest: {near}" if near else ""))


@dataclass(frozen=True)
class Session:
    """The objects and rules of one call of the command."""

    arguments: argparse.Namespace
    using: Explaining
    own: Sequence[Registration]

    def of_binding(self, key: BindingKey) -> tuple[str, bool]:
        """Return the answer about one binding, and whether it is good."""
        found = self.ask(key)
        text = _written(
            self.arguments,
            document_fields(found),
            lambda style: why_not_text(with_printable_texts(found), style),
        )
        return text, found.holds or bool(found.remedies)

    def ask(self, key: BindingKey) -> WhyNot:
        """Return the answer about one binding."""
        arguments = self.arguments
        edited = _editable(self.using, key)
        binding = edited.bindings[edited.ref][1]

        def causes(root: ScheduledObjects) -> list[Cause]:
            snapshot = edited.snapshot
            self.using.show(snapshot)
            inputs = self.using.inputs_of(binding, snapshot)
            situation = Situation(inputs, None if arguments.as_new else root.scheduled.decision)
            return _causes(
                situation,
                arguments.cluster,
                _goal(arguments),
                of_binding=arguments.off or not arguments.cluster,
            )

        inputs = self.using.inputs_of(binding, edited.snapshot)
        return answer(
            edited,
            WhyNotQuestion(arguments.cluster, _goal(arguments)),
            SearchBounds(arguments.timeout or _SEARCH_SECONDS, arguments.max_runs),
            state=state_of(binding, edited.manifests[edited.ref], inputs.facts),
            provenance=self._provenance(inputs),
            causes=causes,
            notes=self._notes(),
            more=lambda root: self._by_configuration(edited, root) if arguments.allow else (),
        )

    def _notes(self) -> list[str]:
        """Return what limits the answer.

        Raises:
            NoAnswerError: The decision reads other bindings, which may not be listed.
        """
        if not self.using.objects.unlisted:
            return []
        if self.using.dry_run.is_coupled:
            raise NoAnswerError(
                "without the permission to list bindings there is no answer: decisions read other bindings because "
                "of a feature gate or a plugin"
            )
        return ["Bindings may not be listed, so it is not known how many others the changes concern."]

    def _by_configuration(self, edited: ObjectSet, root: ScheduledObjects) -> list[Remedy]:
        """Return the single changes of the configuration that reach the goal, each decided by a scheduler with it."""
        arguments, found = self.arguments, []
        blocker = blocker_of(root, arguments.cluster) if arguments.cluster else None
        refusing = blocker.code if blocker is not None and blocker.step is BlockedStep.FILTER else ""
        for each in alternatives(arguments, edited.gates, refusing):
            changed = each.applied(arguments)
            try:
                with explaining(changed, self.using.objects, self.own, say=_ignored) as using:
                    outcome = _editable(using, edited.key).outcome(())
            except NoAnswerError:
                continue  # for example the last plugin cannot be disabled
            # A decision that fails leaves the placement, which may look like the goal.
            if outcome is not None and is_placed(outcome) and _goal(arguments).holds(outcome):
                found.append(
                    remedy_of_configuration(
                        edited, arguments.cluster, outcome, op=each.op, text=each.text, flags=each.flags
                    )
                )
        return found

    def of_cluster(self) -> tuple[str, bool]:
        """Return the answer about all bindings that a cluster does not have; it is always good."""
        found = self.ask_cluster()
        fields = document_fields(found)
        return _written(
            self.arguments, fields, lambda style: why_not_cluster_text(with_printable_texts(found), style)
        ), True

    def ask_cluster(self) -> WhyNotCluster:
        """Return which bindings a cluster does not have."""
        using = self.using
        using.show(using.snapshot)
        end = time.monotonic() + (self.arguments.timeout or _CLUSTER_SECONDS)
        return why_not_cluster(
            self.arguments.of_cluster,
            using.objects.bindings,
            lambda binding: Situation(using.inputs_of(binding)),
            causes_of_cluster,
            provenance=self._provenance(using.inputs_of(_NO_BINDING)),
            may_go_on=lambda: time.monotonic() < end,
        )

    def _provenance(self, inputs: ExplainInputs) -> Provenance:
        now = at(inputs.now) if inputs.now is not None else ""
        return Provenance(Tense.RECOMPUTED, self.using.objects.source, now, fleet_of(inputs))


def _editable(using: Explaining, key: BindingKey) -> ObjectSet:
    """Return all objects that were read, to be edited."""
    objects = using.objects
    return editable(
        objects,
        key,
        using.scheduler,
        bindings=objects.bindings,
        schedulers=objects.schedulers(using.process),
    )


def _causes(situation: Situation, cluster: str, goal: Goal, *, of_binding: bool) -> list[Cause]:
    """Return why the cluster has no replicas.

    If no cluster has any and this one passes the filters, what fails for all of them comes first.
    """
    if of_binding:
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


def _goal(arguments: argparse.Namespace) -> Goal:
    if arguments.placed:
        return IsPlaced()
    if arguments.off:
        return OffCluster(arguments.cluster)
    return OnCluster(arguments.cluster, arguments.replicas)


def _written(arguments: argparse.Namespace, fields: dict[str, Any], text: Callable[[Style], str]) -> str:
    match arguments.output:
        case "json":
            return as_json(fields)
        case "yaml":
            return as_yaml(fields)
    return text(style_of(arguments))


def _ignored(_warning: str) -> None:
    """Print nothing: the warning was printed for the given configuration."""
