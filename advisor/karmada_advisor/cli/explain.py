"""``karmada-pyscheduler explain``: why a binding is where it is, or nowhere.

Reads the objects of a control plane, or files as ``simulate`` reads them, and decides again by the same rules. Nothing is
written. What one flag or one format needs, and takes milliseconds to import, is imported where it is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from karmada_advisor.cli import explain_all
from karmada_advisor.cli.collection import no_collection
from karmada_advisor.cli.explain_watch import watched
from karmada_advisor.cli.output import (
    CommandAnswer,
    exit_status,
    print_answer,
    print_error,
    print_errors,
    style_of,
)
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.causes_capacity import may_be_overcommitted
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ProcessView
from karmada_advisor.explain.model import BindingHead, Explanation, Provenance, Tense
from karmada_advisor.explain.overview import ExplanationSummary
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_advisor.sources import capture
from karmada_advisor.sources.anonymous import anonymous
from karmada_advisor.sources.control_plane import reads_files
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.sources.inputs import explaining
from karmada_advisor.sources.objects import add_other_bindings, captured, gather
from karmada_advisor.state.curable import may_be_cured
from karmada_advisor.state.reading import unreadable
from karmada_advisor.views.kubectl import resource_name
from karmada_advisor.views.layout import wide, with_printable_texts
from karmada_advisor.views.overview_text import overview_text
from karmada_advisor.views.text import explanation_text
from karmada_scheduler.config import features
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import asdict, replace


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    return print_answer(arguments, lambda: _answer(arguments, own))


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    """Return what to print, and the exit status.

    Raises:
        NoAnswerError: There is no answer.
    """
    arguments.name = _name(arguments.name)
    if explain_all.is_asked(arguments):
        with capture.replayed(arguments) as found:
            return _of_all(found.arguments, own)
    if arguments.watch is not None:
        _watch(arguments, own)
    explanation, problems = _explanation(arguments, own)
    status = exit_status(is_good=explanation.is_good, problems=problems)
    return CommandAnswer(
        explanation,
        lambda style: explanation_text(with_printable_texts(explanation), style, quiet=arguments.quiet),
        status,
        others={
            "name": lambda: f"{resource_name(explanation.binding.kind, explanation.binding.name)}\n",
            "wide": lambda: explanation_text(with_printable_texts(explanation), wide(style_of(arguments))),
            "markdown": lambda: _document(explanation, "markdown", unfolded=arguments.all),
            "html": lambda: _document(explanation, "html", unfolded=arguments.all),
        },
    )


def _names(found: ExplanationSummary, *, in_one_namespace: bool) -> str:
    """Return the names of what waits for a person, as ``explain`` takes them again; without a namespace if all have one."""
    return "".join(
        f"{'' if in_one_namespace or not each.namespace else f'{each.namespace}/'}{resource_name(each.kind, each.name)}\n"
        for each in found.waiting
    )


def _document(explanation: Explanation, output: str, *, unfolded: bool) -> str:
    """Return an explanation as ``markdown`` or ``html``."""
    shown = with_printable_texts(explanation)
    if output == "markdown":
        from karmada_advisor.views.markdown import explanation_markdown

        return explanation_markdown(shown, unfolded=unfolded)
    from karmada_advisor.views.html import explanation_html

    return explanation_html(shown, unfolded=unfolded)


def _name(words: Sequence[str]) -> str:
    """Return the name of a binding or workload from ``NAME`` or ``KIND NAME``.

    Raises:
        NoAnswerError: There are more words.
    """
    if len(words) > 2:
        raise NoAnswerError(f"explain answers about one binding, got {' '.join(words)}")
    return "/".join(words)


def _of_all(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    """Return all bindings by state and cause, and the exit status.

    Raises:
        NoAnswerError: There is no answer.
    """
    if arguments.watch is not None or arguments.capture or arguments.output in {"markdown", "html"}:
        raise NoAnswerError("--watch, --capture, -o markdown and -o html are about one binding")
    if arguments.process:
        from karmada_advisor.sources.process import use_rules

        use_rules(arguments)
    found, problems, warnings = explain_all.summary(arguments, own)
    print_errors((*problems, *warnings))
    return CommandAnswer(
        found,
        lambda style: overview_text(with_printable_texts(found), style),
        exit_status(is_good=found.is_good, problems=problems),
        others={
            "name": lambda: _names(found, in_one_namespace=bool(arguments.namespace)),
            "wide": lambda: overview_text(with_printable_texts(found), wide(style_of(arguments))),
        },
    )


def _watch(arguments: argparse.Namespace, own: Sequence[Registration]) -> None:
    """Print each change of the state of a binding until it is placed.

    Raises:
        NoAnswerError: The binding cannot be read.
    """
    if reads_files(arguments):
        raise NoAnswerError("--watch needs a control plane: files and captures do not change")
    quiet = argparse.Namespace(**{**vars(arguments), "remedies": False, "capture": ""})
    watched(lambda: _explanation(quiet, own)[0], print_error, seconds=arguments.watch)


def _explanation(
    arguments: argparse.Namespace, own: Sequence[Registration]
) -> tuple[Explanation, Sequence[str]]:
    """Return the explanation, and what could not be read.

    Raises:
        NoAnswerError: There is no explanation.
    """
    with capture.replayed(arguments) as found:
        names = found.scheduler_names
        if not found.arguments.name:
            raise NoAnswerError("name a binding")
        if arguments.process and not arguments.replay:
            from karmada_advisor.sources.process import use_rules

            names = use_rules(arguments)
        return _of_objects(found.arguments, own, found.view, names)


def _of_objects(
    arguments: argparse.Namespace,
    own: Sequence[Registration],
    view: ProcessView | None,
    names: frozenset[str],
) -> tuple[Explanation, Sequence[str]]:
    """Read the objects and explain.

    Args:
        arguments: As parsed, with the rules of a process or a capture.
        own: The plugins of a main program of the user's own.
        view: What a process said; None if it has to be asked, or none is named.
        names: The scheduler names of the process.
    """
    objects = _read(arguments)
    print_errors((*objects.problems, *objects.warnings))
    now = objects.at or datetime.now(UTC)
    if (unknown := _unreadable(objects)) is not None:
        return unknown, objects.problems
    unclaimed = _unclaimed(objects)
    if view is None and arguments.process and unclaimed is None:
        from karmada_advisor.sources.process import read_process
        from karmada_advisor.sources.process_http import address_of

        view = read_process(address_of(arguments), objects.find().key)
    if arguments.capture:
        _capture(arguments, objects, view, names, now)
    if unclaimed is not None:
        return unclaimed, objects.problems
    with explaining(arguments, objects, own) as using, no_collection():
        inputs = using.inputs_of(objects.find())
        inputs = replace(inputs, process=view, scheduler_names=names or inputs.scheduler_names, now=now)
        tense = Tense.RECOMPUTED if objects.at is None else Tense.REPLAYED
        explanation = explain(inputs, source=objects.source, tense=tense)
        shows_remedies = arguments.remedies and not (arguments.quiet and arguments.output == "text")
        manifest = objects.manifests[inputs.binding.key]
        if shows_remedies and may_be_cured(explanation.state, inputs.binding, manifest):
            from karmada_advisor.sources.remedies import with_remedies

            explanation = with_remedies(explanation, inputs, using, arguments.timeout)
        return explanation, objects.problems


def _read(arguments: argparse.Namespace) -> Objects:
    """Read the objects, with the other bindings where they matter."""
    reads_all = _reads_peers(arguments.feature_gates)
    objects = gather(arguments, arguments.name, all_bindings=reads_all)
    if objects.is_live and not reads_all and objects.asked is not None:
        mine = [each for each in objects.bindings if each.key in objects.asked.keys]
        if any(may_be_overcommitted(each, objects.clusters) for each in mine):
            add_other_bindings(arguments, objects)
    return objects


def _capture(
    arguments: argparse.Namespace,
    objects: Objects,
    view: ProcessView | None,
    names: frozenset[str],
    now: datetime,
) -> None:
    """Write what the answer is made of into a file.

    Raises:
        NoAnswerError: It cannot be written.
    """
    fields = {
        "at": now.isoformat(),
        "asked": {"name": objects.asked.name, "namespace": objects.asked.namespace} if objects.asked else {},
        "rules": capture.rules_of(arguments) | {"scheduler_names": sorted(names)},
        "process": None if view is None else asdict(view),
        "processConfiguration": None if arguments.anonymise else capture.configuration_of(arguments),
        **captured(objects),
    }
    capture.write(arguments.capture, anonymous(fields) if arguments.anonymise else fields)
    print_error(
        f"wrote {counted(len(objects.clusters), 'cluster')} and {counted(len(objects.bindings), 'binding')} to "
        f"{arguments.capture}"
    )


def _reads_peers(gates: Sequence[str]) -> bool:
    """Return whether decisions read other bindings: those of the same workload groups."""
    try:
        return features.parse(gates).enabled("WorkloadAffinity")
    except ValueError:
        return False  # reported where the gates are used


def _unreadable(objects: Objects) -> Explanation | None:
    """Return that the state of the binding is unknown, because it cannot be read; None if it can."""
    for key in objects.asked.keys if objects.asked else ():
        if key in objects.unreadable:
            state = unreadable(f"the object cannot be read: {objects.unreadable[key]}")
            head = BindingHead(key.kind, key.namespace, key.name, 0, 0, {})
            return Explanation(head, state, Provenance(Tense.RECOMPUTED, objects.source))
    return None


def _unclaimed(objects: Objects) -> Explanation | None:
    """Return why a workload has no binding; None if it has one, or was not read.

    Raises:
        NoAnswerError: The policies cannot be read.
    """
    template = objects.unclaimed_template()
    if template is None:
        return None
    from karmada_advisor.sources.remedies import with_claiming_remedies

    explanation = explain_unclaimed(
        template,
        objects.policies or (),
        source=objects.source,
        priority_classes=objects.priority_classes,
        events=objects.warning_events(),
    )
    return with_claiming_remedies(explanation, template, objects.policies or ())
