"""The question of ``explain`` about one binding, what is read for it, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from karmada_advisor.cli.collection import no_collection
from karmada_advisor.cli.output import print_error, print_errors
from karmada_advisor.cli.questions import rules_by
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.causes_capacity import may_be_overcommitted
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.explaining import explaining, unclaimed_template
from karmada_advisor.explain.model import BindingHead, Explanation, Provenance, Tense
from karmada_advisor.explain.policies import names_priority_class
from karmada_advisor.fleet import capture
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_advisor.fleet.read import add_other_bindings, read_fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource, RunningScheduler
from karmada_advisor.state.curable import may_be_cured
from karmada_advisor.state.reading import unreadable
from karmada_scheduler.config import features
from karmada_scheduler.structs import Struct, asdict, replace


class ExplainQuestion(Struct, frozen=True, kw_only=True):
    """Why one binding is where it is.

    Attributes:
        source: Where the objects are.
        rules: By which decisions are made, unless ``process`` or a capture says it.
        name: The binding or workload, as a person names it; "" for that of a capture.
        process: The running scheduler whose rules and record are used; None for none.
        seconds: The time of the search for changes that place the binding.
        remedies: Whether to search.
        capture: The file for everything that the answer is made of; "" for none.
    """

    source: FleetSource
    rules: Rules
    name: str
    process: RunningScheduler | None = None
    seconds: float
    remedies: bool = True
    capture: str = ""


def explanation_of(question: ExplainQuestion) -> tuple[Explanation, Sequence[str]]:
    """Return the explanation, and what could not be read.

    Raises:
        NoAnswerError: There is no explanation.
    """
    with capture.replayed(question.source, question.rules, question.name) as found:
        if not found.name:
            raise NoAnswerError("name a binding")
        rules = rules_by(found.rules, question.process)
        asked = replace(question, source=found.source, rules=rules, name=found.name)
        return _of_objects(asked, found.view)


def _of_objects(question: ExplainQuestion, view: ProcessView | None) -> tuple[Explanation, Sequence[str]]:
    """Read the objects and explain.

    Args:
        question: With the rules of a process or a capture.
        view: What a process said; None if it has to be asked, or none is named.
    """
    objects = _read(question)
    print_errors((*objects.problems, *objects.warnings))
    now = objects.at or datetime.now(UTC)
    if (unknown := _unreadable(objects)) is not None:
        return unknown, objects.problems
    unclaimed = _unclaimed(objects)
    if view is None and question.process is not None and unclaimed is None:
        from karmada_advisor.fleet.process import read_process
        from karmada_advisor.fleet.process_http import address_of

        view = read_process(address_of(question.process), objects.find().key)
    if question.capture:
        _capture(question, objects, view, now)
    if unclaimed is not None:
        return unclaimed, objects.problems
    with explaining(objects, question.rules, question.source.plane) as using, no_collection():
        inputs = using.inputs_of(objects.find())
        inputs = replace(inputs, process=view, now=now)
        tense = Tense.RECOMPUTED if objects.at is None else Tense.REPLAYED
        explanation = explain(inputs, source=objects.source, tense=tense)
        manifest = objects.manifests[inputs.binding.key]
        if question.remedies and may_be_cured(explanation.state, inputs.binding, manifest):
            from karmada_advisor.whynot.remedies import with_remedies

            explanation = with_remedies(explanation, inputs, using, question.seconds)
        return explanation, objects.problems


def _read(question: ExplainQuestion) -> Fleet:
    """Read the objects, with the other bindings where they matter."""
    reads_all = _reads_peers(question.rules.feature_gates)
    objects = read_fleet(
        question.source, question.name, all_bindings=reads_all, names_priority_class=names_priority_class
    )
    if objects.is_live and not reads_all and objects.asked is not None:
        mine = [each for each in objects.bindings if each.key in objects.asked.keys]
        if any(may_be_overcommitted(each, objects.clusters) for each in mine):
            add_other_bindings(question.source.plane, objects)
    return objects


def _capture(question: ExplainQuestion, fleet: Fleet, view: ProcessView | None, now: datetime) -> None:
    """Write what the answer is made of into a file.

    Raises:
        NoAnswerError: It cannot be written.
    """
    asked = question.rules.asked
    fields = {
        "at": now.isoformat(),
        "asked": {"name": fleet.asked.name, "namespace": fleet.asked.namespace} if fleet.asked else {},
        "rules": capture.fields_of_rules(question.rules),
        "process": None if view is None else asdict(view),
        "processConfiguration": None if asked is None else {"url": asked.url, "state": asked.state},
        **capture.fields_of_fleet(fleet),
    }
    capture.write(question.capture, fields)
    print_error(
        f"wrote {counted(len(fleet.clusters), 'cluster')} and {counted(len(fleet.bindings), 'binding')} to "
        f"{question.capture}"
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
