"""The question of ``explain`` about many bindings, what is read for it, and the answer."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from karmada_advisor.cli.explain import write_capture
from karmada_advisor.cli.output import CommandAnswer, exit_status, print_errors
from karmada_advisor.cli.questions import check_namespace, of_policy, process_of, rules_by
from karmada_advisor.explain.amounts import at
from karmada_advisor.explain.inputs import explaining
from karmada_advisor.explain.model import Cause, Provenance, Tense
from karmada_advisor.explain.overview import (
    BindingName,
    causes_of_state,
    find_causes,
    grouped,
    summary_of,
)
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.unclaimed import TEMPLATES, explain_template, list_templates, without_binding
from karmada_advisor.fleet.capture import Replayed
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.named_binding import selector_of
from karmada_advisor.fleet.read import read_fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource
from karmada_advisor.state.model import ReplicaCounts
from karmada_advisor.state.reading import state_of, unreadable
from karmada_advisor.state.stored import others_on
from karmada_advisor.views.explanation_text import overview_text
from karmada_advisor.views.kubectl import resource_name
from karmada_advisor.views.state import headline
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding, BindingKey
from karmada_scheduler.api.names import unknown
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import replace

_CAUSES_SECONDS: Final = 30.0
"""CPU time for the causes of an overview; what is not decided then is counted."""


def overview(arguments: argparse.Namespace, asked: Replayed) -> CommandAnswer:
    """Return all bindings by state and cause, and the exit status.

    Args:
        arguments: Which bindings are looked at.
        asked: Where the objects are; its namespace is that of the bindings, unless one of the others is set.

    Raises:
        NoAnswerError: Nothing can be read, or a name is unknown.
    """
    if arguments.watch is not None or arguments.output in {"markdown", "html"}:
        raise NoAnswerError("--watch, -o markdown and -o html are about one binding")
    if arguments.capture and not arguments.all_namespaces:
        raise NoAnswerError("--capture is about one binding, or with -A about all")
    source, rules = asked.source, rules_by(asked.rules, process_of(arguments))
    selects = selector_of(arguments.selector)
    objects = read_fleet(source, all_bindings=True)
    if arguments.capture:
        _capture(arguments.capture, source, objects, rules)
    chosen, templates, scope = _chosen(arguments, source, objects)
    is_narrow = bool(arguments.on or arguments.policy or arguments.selector)
    was_read = objects.is_live or objects.workloads is not None
    knows_templates = is_narrow or (was_read and TEMPLATES not in objects.coverage.refused)
    if arguments.selector:
        chosen = [binding for binding in chosen if selects(binding.labels)]
        scope = " ".join(part for part in (scope, f"with the labels {arguments.selector}") if part)
    with explaining(objects, rules, source.plane) as using:
        bindings = {binding.key: binding for binding in sorted(chosen, key=lambda each: each.key)}
        manifests, facts = objects.manifests, using.facts
        states = {key: state_of(each, manifests.get(key) or {}, facts) for key, each in bindings.items()}
        replicas = sum((state.replicas for state in states.values()), ReplicaCounts())
        unclaimed = dict(explain_template(objects, template) for template in templates)
        if not scope:
            states |= {key: unreadable(text) for key, text in objects.unreadable.items()}
        counts = Counter(state.name for state in states.values())
        states |= {key: template.state for key, template in unclaimed.items()}

        def cause_of(key: BindingKey) -> Cause | None:
            if key in unclaimed:
                return next(iter(unclaimed[key].causes), None)
            if key in objects.unreadable:
                return None
            try:
                return next(iter(causes_of_state(Situation(using.inputs_of(bindings[key])))), None)
            except SchedulingError:
                return None

        from karmada_advisor.whatif.plan.fleet_rules import progress_of_bindings

        groups = grouped(states)
        causes = find_causes(groups, cause_of, seconds=_CAUSES_SECONDS, progress=progress_of_bindings())
        tense = Tense.RECOMPUTED if objects.is_live or objects.at is None else Tense.REPLAYED
        moment = at(objects.at or datetime.now(UTC))
        provenance = Provenance(tense, objects.source, moment, rules=str(using.rules))
        found = summary_of(
            groups,
            counts,
            causes,
            state_of=states.__getitem__,
            headline=headline,
            scope=scope,
            clusters=len(objects.clusters),
            provenance=provenance,
            templates=len(unclaimed) if knows_templates else None,
            replicas=replicas,
        )
    rows = [BindingName(*key, headline(state)) for key, state in states.items()]
    print_errors((*objects.problems, *objects.warnings))
    # The names of what waits for a person, as kubectl and ``explain`` take them with the namespace in ``-n``.
    names = "".join(f"{resource_name(binding.kind, binding.name)}\n" for binding in found.not_good)
    return CommandAnswer(
        found,
        partial(overview_text, found, rows),
        exit_status(is_good=found.is_good, problems=objects.problems),
        others={"name": lambda _: names},
    )


def _capture(path: str, source: FleetSource, objects: Fleet, rules: Rules) -> None:
    """Read what the other commands need as well, and write all of it into a file.

    Raises:
        NoAnswerError: It cannot be written, or the control plane does not answer any more.
    """
    whole = objects
    if objects.is_live:
        from karmada_advisor.fleet import live
        from karmada_pyscheduler.client.karmada import FEDERATED_RESOURCE_QUOTAS

        for name, resource in (
            ("quotas", FEDERATED_RESOURCE_QUOTAS),
            ("taint_policies", live.TAINT_POLICIES),
        ):
            found, problems = live.read_all(source.plane, resource)
            setattr(objects, name, found)
            objects.warnings += problems
        templates = _templates(source, objects)
        is_known = TEMPLATES not in objects.coverage.refused
        whole = replace(objects, workloads=[*templates] if is_known else None)
    write_capture(path, whole, rules, None, objects.at or datetime.now(UTC))


def _chosen(
    arguments: argparse.Namespace, source: FleetSource, objects: Fleet
) -> tuple[list[Binding], list[Workload], str]:
    """Return the bindings that the flags name, the templates without a binding, and which these are for people.

    Raises:
        NoAnswerError: A name is unknown.
    """
    chosen = list(objects.bindings)
    if cluster := arguments.on:
        names = [known.name for known in objects.clusters]
        if cluster not in names:
            raise NoAnswerError(unknown(f"cluster {cluster}", cluster, names))
        manifests = objects.manifests
        on = [
            binding
            for binding in chosen
            if cluster in (*binding.spec.target_names, *others_on(manifests.get(binding.key) or {}))
        ]
        return on, [], f"with {cluster}"
    if arguments.policy:
        return of_policy(arguments.policy, objects), [], f"of the policy {arguments.policy}"
    templates = (
        [] if arguments.selector else without_binding(objects, _templates(source, objects, only_unbound=True))
    )
    namespace = source.namespace or (source.plane.default_namespace() if objects.is_live else "")
    if arguments.all_namespaces or not namespace:
        return chosen, templates, ""
    chosen = [each for each in chosen if (each.key.kind, each.key.namespace) == (RESOURCE_BINDING, namespace)]
    templates = [template for template in templates if template.namespace == namespace]
    if not (chosen or templates):
        check_namespace(source.plane, namespace, objects)
    return chosen, templates, f"in the namespace {namespace}"


def _templates(source: FleetSource, objects: Fleet, *, only_unbound: bool = False) -> Sequence[Workload]:
    """Return the templates that were given, or the metadata of those of a control plane that run Pods."""
    if objects.is_live and objects.workloads is None:
        return list_templates(source.plane, objects, only_unbound=only_unbound)
    return objects.workloads or ()
