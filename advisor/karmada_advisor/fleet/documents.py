"""The YAML and JSON documents of a file: where they begin, what they hold, and how their values are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import orjson

from karmada_scheduler.config.yaml_document import YamlError, read_document
from karmada_scheduler.config.yaml_values import YamlPlaces, plain

_DOCUMENT_START: Final = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_JSON_START: Final = re.compile(r'\s*\{\s*"')


def documents(text: str) -> Iterator[tuple[int, str]]:
    """Split YAML at its document markers, so that one broken document does not hide the others.

    Yields the line before each document, and its text. A document without any content is none.
    """
    markers = [(match.start(), match.end()) for match in _DOCUMENT_START.finditer(text)]
    starts = [0, *(end for _, end in markers)]
    ends = [*(start for start, _ in markers), len(text)]
    line = counted = 0
    for start, end in zip(starts, ends, strict=True):
        line += text.count("\n", counted, start)
        counted = start
        document = text[start:end]
        if any(each.strip() and not each.lstrip().startswith("#") for each in document.splitlines()):
            yield line, document


class SourceDocument:
    """The text of a document, and its values without quotes, which are read if an object in it is unusable."""

    def __init__(self, text: str = "") -> None:
        """Take the text."""
        self._text = text

    @cached_property
    def unquoted(self) -> Mapping[str, str]:
        """The values without quotes as they are written, by paths such as ``.items[0].spec.replicas``."""
        places = YamlPlaces()
        if not _JSON_START.match(self._text):
            read_document(self._text, places=places)
        return {
            "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path): place.text
            for path, place in places.values.items()
            if place.text and not place.style
        }


def unquoted_value(source: Source, field: str) -> str:
    """Return what a value of a field is that has no quotes in its document; "" for another value."""
    document, path = source
    written = document.unquoted.get(f"{path}.{field}", "")
    value = plain(written) if written else None
    if value is None or isinstance(value, str):
        return ""
    what = f"the number {value}" if type(value) in {int, float} else str(value).lower()
    return f': {written} is {what}, "{written}" is text'


Source = tuple[SourceDocument, str]
"""A document, and the path of an object in it."""


def decoded(document: str, line: int) -> Any:
    """Return what a document holds.

    Args:
        document: Its text.
        line: The lines before it.

    Raises:
        YamlError: It is neither JSON nor YAML.
    """
    if document.lstrip().startswith("{"):
        try:
            return orjson.loads(document)
        except ValueError:
            pass  # a YAML flow mapping begins like JSON, and YAML's errors have a line
    return read_document(document, lines_before=line).value


def json_problem(document: str, line: int) -> str:
    """Return the error of a document that looks like JSON; "" for any other document."""
    if not _JSON_START.match(document):
        return ""
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError as problem:
        return f"line {line + problem.lineno}, column {problem.colno}: not JSON: {problem.msg}"
    return ""


def yaml_problem(problem: YamlError) -> str:
    """Return the error of a document that is no YAML, with its place."""
    place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    return f"{place}not YAML: {problem.what}"
