"""Rewrites the ``clusters`` of expectations that do not hold, in the text of their file."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile
from karmada_advisor.whatif.placement_tests.model import ExpectationFailure, FilePlace, FileResult
from karmada_scheduler.config.yaml_values import YamlPath, YamlPlace, plain


def updated(file: FileResult) -> str:
    """Rewrite a file; return the difference, "" if nothing changes.

    A value that depends on the uid becomes the names without replicas. What is not placed, or is on other clusters with
    another uid, stays as it is.

    Raises:
        NoAnswerError: The file cannot be written.
    """
    located = LocatedFile(file.path)
    text = located.text
    replacements = {
        (located.offset(extent.line, extent.column), located.offset(extent.end_line, extent.end_column), new)
        for case in file.cases
        for failure in case.failures
        if failure.key == "clusters" and failure.table
        for extent, new in _replacements(located, failure)
    }
    for start, end, new in sorted(replacements, reverse=True):
        text = text[:start] + new + text[end:]
    if text == located.text:
        return ""
    try:
        Path(file.path).write_bytes(text.encode())
    except OSError as error:
        raise NoAnswerError(f"--update: {file.path}: {error.strerror or error}") from error
    before, after = (lines.splitlines(keepends=True) for lines in (located.text, text))
    return "".join(difflib.unified_diff(before, after, file.path, file.path, n=1))


def _replacements(located: LocatedFile, failure: ExpectationFailure) -> Iterable[tuple[YamlPlace, str]]:
    """Yield the parts of a text that change, and what they become."""
    path = located.path_at(FilePlace(failure.line, failure.column), "clusters")
    wanted = _wanted(failure)
    if path is None or wanted is None:
        return
    before = failure.expected
    if isinstance(wanted, Mapping) and isinstance(before, Mapping) and wanted.keys() == before.keys():
        for name, replicas in wanted.items():
            extent = located.extent((*path, name))
            if replicas != before[name] and extent is not None:
                yield extent, str(replicas)
        return
    extent = located.extent(path)
    if extent is None:
        return
    is_flow = located.line(extent.line)[extent.column - 1 : extent.column] in {"{", "["}
    if not is_flow:
        extent = _without_what_follows(located, path, extent)
    indent = " " * (extent.column - 1)
    yield extent, _written(wanted, is_flow=is_flow, indent=indent)


def _wanted(failure: ExpectationFailure) -> Mapping[str, int] | Sequence[str] | None:
    """Return the value that would hold; None if there is none of this key."""
    got: Any = failure.got
    placements = got if isinstance(got, list) else [got]
    if any(not placement or placement.keys() != placements[0].keys() for placement in placements):
        return None
    if isinstance(failure.expected, Mapping) and len(placements) == 1:
        found: Mapping[str, int] = placements[0]
        return found
    return sorted(placements[0])


def _without_what_follows(located: LocatedFile, path: YamlPath, extent: YamlPlace) -> YamlPlace:
    """Return the extent of a value without brackets up to the end of its last item, without comments behind it."""
    items = [other for other in located.extents_below(path) if other.end_line >= extent.line]
    last = max(items, key=lambda each: (each.end_line, each.end_column))
    return extent._replace(end_line=last.end_line, end_column=last.end_column)


def _written(value: Mapping[str, int] | Sequence[str], *, is_flow: bool, indent: str) -> str:
    if isinstance(value, Mapping):
        fields = [f"{_name(name)}: {replicas}" for name, replicas in value.items()]
        return f"{{{', '.join(fields)}}}" if is_flow else f"\n{indent}".join(fields)
    names = [_name(entry) for entry in value]
    return f"[{', '.join(names)}]" if is_flow else f"\n{indent}".join(f"- {name}" for name in names)


def _name(name: str) -> str:
    """Return a name as YAML reads it as text."""
    return name if isinstance(plain(name), str) else json.dumps(name)
