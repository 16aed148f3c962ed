"""Compares answers with what is expected: headline, cause, remedy, exit status and JSON, each by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.commands import Ran
from tests.e2e.state.model import HEADLINES, PLACED, Also, Expected, Fields

_FIRST_WORDS = tuple(
    sorted(
        {text.format(placed=placed) for text in HEADLINES.values() for placed in PLACED.values()}
        | {"SUSPENDED", "GATED", "OTHER SCHEDULER"},
        key=len,
        reverse=True,
    )
)
_PASSING = re.compile(
    r"\d+ (s|min|h)( \d+ (s|min))? (ago|more)|\d+(?=/\d+ clusters| cluster)|(?<=/)\d+(?= clusters)"
)
"""Times and numbers of clusters, which differ between two answers."""


def headline_of(text: str) -> str:
    """Return the headline of a text output: the first line that begins with the words of a state; "" without one.

    The output has to be so wide that no line is broken.
    """
    for line in text.splitlines():
        if line.startswith(_FIRST_WORDS):
            return re.sub(r" {2,}", "   ", line.strip())
    return ""


def judged(
    expected: Expected, text: Ran, quiet: Ran | None, found: Ran, stored: Sequence[Any]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each aspect of the answers of ``explain``, with what is wrong.

    Args:
        expected: What has to be said.
        text: The text output.
        quiet: The output of ``-q``.
        found: The JSON output.
        stored: The clusters with replicas of the binding, as the API server has them.
    """
    fields = fields_of(found)
    yield "headline", [*_headline(expected, text, quiet, fields)]
    yield "cause", [*_cause(expected, text, fields)]
    yield "remedy", [*_remedy(expected, fields)]
    statuses = {answer.status for answer in (text, found, quiet) if answer is not None}
    wrong = statuses != {expected.exit_status}
    yield "exit status", [f"{sorted(statuses)}, expected {expected.exit_status}"] if wrong else []
    yield "json", [*_json(expected, found, fields, stored)]


def fields_of(answer: Ran) -> Fields:
    """Return the JSON output of a command; {} if it printed none."""
    try:
        found = json.loads(answer.out)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _headline(expected: Expected, text: Ran, quiet: Ran | None, fields: Fields) -> Iterator[str]:
    line = headline_of(text.out)
    if expected.exit_status == 2 and not text.out:  # an error instead of an answer
        if not re.search(expected.problem, text.err, re.DOTALL):
            yield f"{text.err!r} does not match {expected.problem!r}"
        return
    begins = next((words for words in _FIRST_WORDS if line.startswith(words)), "")
    if begins != expected.words:
        yield f"{line or text.out[:300] + text.err[:300]!r} does not begin with {expected.words!r}"
    rest = line.removeprefix(begins)
    if not re.search(expected.headline, rest, re.DOTALL):
        yield f"{line!r} does not match {expected.headline!r}"
    state = fields.get("state")
    if isinstance(state, Mapping):
        said = re.sub(r" {2,}", "   ", str(state.get("headline", "")).strip())
        if _PASSING.sub("", said) != _PASSING.sub("", line):
            yield f"the text says {line!r}, and state.headline {said!r}"
    if expected.would_be:
        shown = json.dumps(fields.get("wouldBe"))
        if not re.search(expected.would_be, shown):
            yield f"wouldBe is {shown}, which does not match {expected.would_be!r}"
    if quiet is not None and not re.search(expected.quiet, quiet.out, re.DOTALL):
        yield f"-q prints {quiet.out!r}, which does not match {expected.quiet!r}"


def _cause(expected: Expected, text: Ran, fields: Fields) -> Iterator[str]:
    causes: Sequence[Mapping[str, Any]] = fields.get("causes") or ()
    shown = [f"{each.get('code')}: {each.get('text')}" for each in causes]
    if not expected.cause:
        if shown:
            yield f"there is no cause to be named, and {shown[0]!r} is"
        return
    if not shown:
        if not re.search(expected.cause, ""):
            yield f"no cause, expected {expected.cause!r}"
        return
    if not causes[0].get("primary") or any(each.get("primary") for each in causes[1:]):
        yield "not the first cause alone is the primary one"
    if not re.search(expected.cause, shown[0], re.DOTALL):
        yield f"{shown[0]!r} does not match {expected.cause!r}"
    if f"{causes[0].get('code')}: " not in text.out:
        yield f"the text does not name the cause {causes[0].get('code')}"


def remedy_text(remedy: Mapping[str, Any]) -> str:
    """Return a remedy in one line: its edits with the sides and objects, and what speaks against it in parentheses."""
    parts = []
    for each in remedy.get("edits") or ():
        target = each.get("object") or {}
        parts.append(f"{each.get('side')} {target.get('kind')} {target.get('name')}: {each.get('text')}")
    caution = remedy.get("caution") or ""
    return " and ".join(parts) + (f" ({caution})" if caution else "")


def _remedy(expected: Expected, fields: Fields) -> Iterator[str]:
    shown = [remedy_text(each) for each in fields.get("remedies") or ()]
    if expected.never:
        for each in shown:
            if re.search(expected.never, each):
                yield f"{each!r} is no remedy"
    if not expected.remedy:
        if shown:
            yield f"there is no remedy, and {shown[0]!r} is given"
    elif not shown:
        if not re.search(expected.remedy, ""):
            yield f"no remedy, expected {expected.remedy!r}"
    elif not re.search(expected.remedy, shown[0], re.DOTALL):
        yield f"{shown[0]!r} does not match {expected.remedy!r}; all: {shown}"


def _json(expected: Expected, found: Ran, fields: Fields, stored: Sequence[Any]) -> Iterator[str]:
    if not fields:
        if expected.exit_status != 2:
            yield f"no JSON: {found.err[:300]!r}"
    else:
        state = fields.get("state")
        name, placed = (
            (state.get("name"), state.get("placed")) if isinstance(state, Mapping) else (state, None)
        )
        if name != expected.state:
            yield f"state.name is {name!r}, expected {expected.state!r}"
        if placed != expected.placed:
            yield f"state.placed is {placed!r}, expected {expected.placed!r}"
        if isinstance(state, Mapping):
            clusters = state.get("clusters")
            if sorted(_targets(clusters)) != sorted(_targets(stored)):
                yield f"state.clusters is {clusters}, and {stored} is stored"
    yield from unequal(expected.fields, fields)
    if expected.problem:
        if not re.search(expected.problem, found.err, re.DOTALL):
            yield f"standard error {found.err!r} does not match {expected.problem!r}"
    elif found.err:
        yield f"standard error: {found.err[:300]!r}"


def _targets(value: Any) -> Iterator[tuple[str, int]]:
    for each in value or ():
        yield each.get("name", ""), each.get("replicas", 0) or 0


def unequal(expected: Mapping[str, object], fields: Fields) -> Iterator[str]:
    """Yield the paths whose values differ; an expected pattern is searched in the value as JSON."""
    for path, wanted in expected.items():
        value = at(fields, path)
        if isinstance(wanted, re.Pattern):
            if not wanted.search(json.dumps(value)):
                yield f"{path} is {json.dumps(value)[:300]}, which does not match {wanted.pattern!r}"
        elif value != wanted:
            yield f"{path} is {json.dumps(value)[:300]}, expected {wanted!r}"


def at(fields: Any, path: str) -> Any:
    """Return the value at a path such as ``state.clusters.0.name``; None if there is none."""
    for part in path.split("."):
        if isinstance(fields, Mapping):
            fields = fields.get(part)
        elif isinstance(fields, Sequence) and not isinstance(fields, str) and part.isdigit():
            fields = fields[int(part)] if int(part) < len(fields) else None
        else:
            return None
    return fields


def judged_also(also: Also, text: Ran, fields: Fields, binding: str = "") -> Iterator[str]:
    """Yield what differs in the answer of another command.

    Args:
        also: What has to be said.
        text: The text output.
        fields: The JSON output; {} if it was not asked for.
        binding: ``namespace/name`` of the binding, for its effect in a plan.
    """
    if also.status is not None and text.status != also.status:
        yield f"exit status {text.status}, expected {also.status}: {(text.out + text.err)[:300]!r}"
    first = next(iter(text.out.splitlines()), "")
    if also.line and not re.search(also.line, first):
        yield f"{first!r} does not match {also.line!r}"
    if also.never and (said := re.search(also.never, text.out)):
        yield f"it says {said.group()!r}"
    if also.says and not re.search(also.says, text.out, re.DOTALL):
        yield f"{text.out[:600]!r} does not match {also.says!r}"
    yield from unequal(also.fields, fields)
    if also.effect and not re.search(also.effect, found := effect_of(fields, binding)):
        yield f"{binding} is {found!r}, expected {also.effect!r}"


def effect_of(plan: Fields, binding: str) -> str:
    """Return the effect of a plan on a binding; ``unchanged`` if the plan does not list it."""
    for each in plan.get("bindings") or ():
        if f"{each.get('namespace')}/{each.get('name')}" == binding:
            return str(each.get("effect"))
    return "unchanged" if plan else ""
