"""``karmada-pyscheduler explain``: why a binding is where it is, or nowhere.

Reads the objects of a control plane, or files as ``simulate`` reads them, and decides again by the same rules. Nothing is
written. What one flag or one format needs, and takes milliseconds to import, is imported where it is used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from karmada_advisor.cli.output import CommandAnswer, exit_status, print_error, print_errors
from karmada_advisor.cli.questions import process_of, rules_by, rules_of, source_of
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.causes_capacity import may_be_overcommitted
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import explaining
from karmada_advisor.explain.model import BindingHead, Explanation, Provenance, Tense
from karmada_advisor.explain.policies import names_priority_class
from karmada_advisor.explain.unclaimed import unclaimed_template
from karmada_advisor.fleet import capture
from karmada_advisor.fleet.capture import Replayed
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_advisor.fleet.read import add_other_bindings, read_fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource
from karmada_advisor.state.reading import may_be_cured, unreadable
from karmada_advisor.views.explanation_text import explanation_document, explanation_text
from karmada_advisor.views.kubectl import resource_name
from karmada_advisor.views.state import headline
from karmada_advisor.views.text import Style
from karmada_scheduler.config import features
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process.memory import no_collection
from karmada_scheduler.structs import replace

_MARKDOWN_ROWS: Final = 20
_HTML_ROWS: Final = 50


def explanation_of(
    arguments: argparse.Namespace, asked: Replayed, *, is_last: bool = True
) -> tuple[Explanation, Sequence[str]]:
    """Return the explanation of a binding, and what could not be read.

    Args:
        arguments: As parsed.
        asked: The binding.
        is_last: Whether this is the answer; one on the way to it is not captured, and no changes are searched for.

    Raises:
        NoAnswerError: There is no explanation.
    """
    process, plane, view = process_of(arguments), asked.source.plane, asked.view
    rules = rules_by(asked.rules, process)
    objects = _read(asked.source, asked.name, rules)
    print_errors((*objects.problems, *objects.warnings))
    now = objects.at or datetime.now(UTC)
    if (unknown := _unreadable(objects)) is not None:
        return unknown, objects.problems
    unclaimed = _unclaimed(objects)
    if view is None and process is not None and unclaimed is None:
        from karmada_advisor.fleet.process import read_process
        from karmada_advisor.fleet.process_http import address_of

        view = read_process(address_of(process), objects.find().key)
    if arguments.capture and is_last:
        write_capture(arguments.capture, objects, rules, view, now)
    if unclaimed is not None:
        return unclaimed, objects.problems
    with explaining(objects, rules, plane) as using, no_collection():
        inputs = using.inputs_of(objects.find())
        inputs = replace(inputs, process=view, facts=replace(inputs.facts, now=now))
        tense = Tense.RECOMPUTED if objects.is_live or objects.at is None else Tense.REPLAYED
        explanation = explain(inputs, source=objects.source, tense=tense)
        explanation = replace(explanation, notes=(*explanation.notes, *objects.unread_notes))
        manifest = objects.manifests[inputs.binding.key]
        searches = is_last and arguments.remedies and not _is_quiet(arguments)
        if searches and may_be_cured(explanation.state, inputs.binding, manifest):
            from karmada_advisor.whynot.remedies import with_remedies

            explanation = with_remedies(explanation, inputs, using, arguments.timeout)
        return explanation, objects.problems


def _read(source: FleetSource, name: str, rules: Rules) -> Fleet:
    """Read the objects, with the other bindings where they matter."""
    reads_all = _reads_peers(rules.feature_gates)
    objects = read_fleet(source, name, all_bindings=reads_all, names_priority_class=names_priority_class)
    if objects.is_live and not reads_all and objects.asked is not None:
        mine = [binding for binding in objects.bindings if binding.key in objects.asked.keys]
        if any(may_be_overcommitted(binding, objects.clusters) for binding in mine):
            add_other_bindings(source.plane, objects)
    return objects


def write_capture(path: str, fleet: Fleet, rules: Rules, view: ProcessView | None, now: datetime) -> None:
    """Write what the answer is made of into a file, and print how much that is.

    Raises:
        NoAnswerError: It cannot be written.
    """
    capture.write(path, fleet, rules, view, now)
    print_error(
        f"wrote {counted(len(fleet.clusters), 'cluster')} and {counted(len(fleet.bindings), 'binding')} to "
        f"{path}"
    )


def _reads_peers(gates: Sequence[str]) -> bool:
    """Return whether decisions read other bindings: those of the same workload groups."""
    try:
        return features.parse(gates).enabled("WorkloadAffinity")
    except ValueError:
        return False  # reported where the gates are used


def _unreadable(objects: Fleet) -> Explanation | None:
    """Return that the state of the binding is unknown, because it cannot be read; None if it can."""
    for key in objects.asked.keys if objects.asked else ():
        if key in objects.unreadable:
            state = unreadable(f"the object cannot be read: {objects.unreadable[key]}")
            head = BindingHead(key.kind, key.namespace, key.name, 0, 0, {})
            return Explanation(head, state, Provenance(Tense.RECOMPUTED, objects.source))
    return None


def _unclaimed(fleet: Fleet) -> Explanation | None:
    """Return why a workload has no binding; None if it has one, or was not read.

    Raises:
        NoAnswerError: The policies cannot be read.
    """
    found = unclaimed_template(fleet)
    if found is None:
        return None
    from karmada_advisor.whynot.remedies import with_claiming_remedies

    template, explanation = found
    return with_claiming_remedies(explanation, template, fleet.policies or ())


def answer(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> CommandAnswer:
    """Return what to print, and the exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: There is no answer.
    """
    name = _name(arguments.name)
    is_overview = _is_overview(arguments, name)
    with capture.replayed(source_of(arguments), rules_of(arguments, own), name) as asked:
        if is_overview or (arguments.replay and not asked.name):
            from karmada_advisor.cli.overview_question import overview  # one binding is faster without it

            return overview(arguments, asked)
        if not asked.name:
            raise NoAnswerError("name a binding")
        if arguments.watch is not None:
            _watch(arguments, asked)
        explanation, problems = explanation_of(arguments, asked)
    status = exit_status(is_good=explanation.is_good, problems=problems)
    return CommandAnswer(
        explanation,
        partial(explanation_text, explanation, quiet=_is_quiet(arguments)),
        status,
        others={
            "name": lambda _: f"{resource_name(explanation.binding.kind, explanation.binding.name)}\n",
            "markdown": partial(_markdown, explanation),
            "html": partial(_html, explanation),
        },
    )


def _is_quiet(arguments: argparse.Namespace) -> bool:
    return bool(arguments.quiet) and arguments.output == "text"


# Only what is printed is imported.
def _markdown(explanation: Explanation, style: Style) -> str:
    from karmada_advisor.views.markup import fitting, markdown

    if style.unfolded:
        return markdown(explanation_document(explanation, 0, unfolded=True))
    return fitting(partial(explanation_document, explanation), _MARKDOWN_ROWS)


def _html(explanation: Explanation, style: Style) -> str:
    from karmada_advisor.views.markup import html

    return html(explanation_document(explanation, _HTML_ROWS, unfolded=style.unfolded))


def _name(words: Sequence[str]) -> str:
    """Return the name of a binding or workload from ``NAME`` or ``KIND NAME``.

    Raises:
        NoAnswerError: There are more words.
    """
    if len(words) > 2:
        raise NoAnswerError(f"explain answers about one binding, got {' '.join(words)}")
    return "/".join(words)


def _is_overview(arguments: argparse.Namespace, name: str) -> bool:
    """Return whether the flags name many bindings; a namespace alone does, too."""
    many = bool(arguments.all_namespaces or arguments.policy or arguments.on or arguments.selector)
    if many and name:
        raise NoAnswerError("give the name of one binding, or -A, -l, --policy or --on, not both")
    return many or bool(arguments.namespace and not name and not arguments.replay)


def _watch(arguments: argparse.Namespace, asked: Replayed) -> None:
    """Print each change of the state of a binding until it is placed.

    Raises:
        NoAnswerError: The binding cannot be read.
    """
    if not asked.source.is_control_plane:
        raise NoAnswerError("--watch needs a control plane: files and captures do not change")
    read = partial(explanation_of, arguments, asked, is_last=False)
    watched(lambda: read()[0], print_error, seconds=arguments.watch)


PAUSE_SECONDS: Final = 2.0
"""Time between two readings; each lists the clusters."""


def watched(
    read: Callable[[], Explanation],
    show: Callable[[str], object],
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Read until the state is good, and show each state that differs from the one before.

    Args:
        read: Returns the explanation of the binding as it is.
        show: Gets one line for each change.
        seconds: After this time the watching ends, too.
        clock: For this time.
        now: For the lines.
        sleep: Waits between two readings.
    """
    end = clock() + seconds
    shown = ""
    while True:
        found = read()
        line = headline(found.state)
        if line != shown:
            show(f"{now().strftime('%H:%M:%S')}  {line}")
            shown = line
        if found.is_good or clock() >= end:
            return
        sleep(min(PAUSE_SECONDS, max(0.0, end - clock())))
