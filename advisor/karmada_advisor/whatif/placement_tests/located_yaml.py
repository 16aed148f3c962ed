"""A file of YAML whose values have their places; problems are collected, so that all of a file are shown at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, Final

from karmada_advisor.fleet.files import documents
from karmada_advisor.fleet.source import DEFAULT_NAMESPACE
from karmada_advisor.state.stored import mapping, with_namespace
from karmada_advisor.whatif.placement_tests.model import FilePlace, FileProblem
from karmada_scheduler.config.file_content import FileContentError, read_text_file
from karmada_scheduler.config.yaml_document import YamlError, read_document
from karmada_scheduler.config.yaml_values import YamlPath, YamlPlace, YamlPlaces

MAX_FILE_BYTES: Final = 64 * 2**20

_TYPES: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "an integer",
    str: "text",
    dict: "a mapping",
    list: "a list",
}
_STEP: Final = re.compile(r"([A-Za-z]\w*)|\[(\d+)\]")
_QUOTED: Final = '. A CEL expression that starts with \' or !, or has ": " or " #", needs quotes'


class LocatedFile:
    """A file with one document.

    Attributes:
        path: As it was named.
        text: Its text.
        value: The document; None if it cannot be read.
        problems: What is wrong so far.
    """

    def __init__(self, path: str) -> None:
        """Read a file; what cannot be read is a problem."""
        self.path = path
        self.text = ""
        self.value: Any = None
        self.problems: list[FileProblem] = []
        self._places = YamlPlaces()
        try:
            self.text = read_text_file(path, limit=MAX_FILE_BYTES)
            document = read_document(self.text, places=self._places)
        except FileContentError as problem:
            self.problems.append(FileProblem(path, 0, 0, str(problem)))
        except YamlError as problem:
            hint = _QUOTED if _is_of_expression(self.text, problem.line) else ""
            text = f"not YAML: {problem.what}{hint}"
            self.problems.append(FileProblem(path, problem.line, problem.column, text))
        else:
            self.value = document.value
            for repeated in document.repeated:
                places = (place for key, place in self._places.keys.items() if key[-1] == repeated.key)
                column = next((place.column for place in places if place.line == repeated.line), 0)
                text = f"{repeated.key} is there twice (first in line {repeated.before})"
                self.problems.append(FileProblem(path, repeated.line, column, text))

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to."""
        return Path(self.path).parent

    def written(self, path: YamlPath) -> Any:
        """Return the value at a path, whether or not it fits."""
        return reduce(getitem, path, self.value)

    def place(self, path: YamlPath, *, of_key: bool = False) -> FilePlace:
        """Return where a value is, or its key."""
        found = self._places.keys.get(path) if of_key else self._places.values.get(path)
        found = found or self._places.values.get(path) or self._places.keys.get(path)
        return FilePlace() if found is None else FilePlace(found.line, found.column)

    def extent(self, path: YamlPath) -> YamlPlace | None:
        """Return where a value begins and ends."""
        return self._places.values.get(path)

    def problem(self, path: YamlPath, text: str, *, of_key: bool = False) -> None:
        """Note a problem with a value, or with its key."""
        self.problems.append(FileProblem(self.path, *self.place(path, of_key=of_key), text))

    def extents_below(self, path: YamlPath) -> list[YamlPlace]:
        """Return where the values within a list or object are."""
        below = (extent for extent in self._places.values if len(extent) > len(path))
        return [self._places.values[key] for key in below if key[: len(path)] == path]

    def path_at(self, place: FilePlace, key: str) -> YamlPath | None:
        """Return the path of the value of a key that begins at a place; None if there is none."""
        for path, found in self._places.values.items():
            if path and path[-1] == key and (found.line, found.column) == place:
                return path
        return None

    def offset(self, line: int, column: int) -> int:
        """Return how many characters of the text come before a place."""
        lines = self.text.splitlines(keepends=True)
        return sum(map(len, lines[: line - 1])) + column - 1

    def line(self, number: int) -> str:
        """Return a line of the text, from 1."""
        lines = self.text.splitlines()
        return lines[number - 1] if number <= len(lines) else ""

    def typed(self, path: YamlPath, value: Any, type_: type, what: str = "") -> bool:
        """Return whether a value has a type; another type is a problem."""
        if type(value) is type_:
            return True
        if type_ is str and type(value) is bool and path and isinstance(path[-1], int):
            place = self.extent(path)
            written = place.text if place is not None and place.text else str(value).lower()
            self.problem(path, f'{str(value).lower()} is no name; write "{written}", in quotes')
            return False
        shown = what or (str(path[-1]) if path else "the file")
        self.problem(path, f"{shown}: expected {_TYPES[type_]}, got {_named(value)}")
        return False


def place_in_file(path: str, manifest: Mapping[str, Any], field: str) -> FilePlace:
    """Return where a field of an object is in the file that has it; the nearest field above it that is written there.

    Args:
        path: The file.
        manifest: The object, by its kind and metadata.
        field: Such as ``spec.placement.spreadConstraints[0]``.
    """
    for lines, document in documents(read_text_file(path)):
        places = YamlPlaces()
        try:
            value = read_document(document, lines_before=lines, places=places).value
        except YamlError:
            continue
        if not isinstance(value, dict):
            continue
        if identity_of(with_namespace(value, DEFAULT_NAMESPACE)) != identity_of(manifest):
            continue
        steps = tuple(int(index) if index else name for name, index in _STEP.findall(field))
        for length in range(len(steps), 0, -1):
            found = places.keys.get(steps[:length]) or places.values.get(steps[:length])
            if found is not None:
                return FilePlace(found.line, found.column)
    return FilePlace()


def identity_of(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return kind, namespace and name of an object; "" for what it does not name."""
    metadata = mapping(manifest.get("metadata"))
    names = manifest.get("kind"), metadata.get("namespace"), metadata.get("name")
    return tuple(str(name or "") for name in names)


def _named(value: Any) -> str:
    if value is None:
        return "nothing"
    return _TYPES.get(type(value), type(value).__name__)


def _is_of_expression(text: str, line: int) -> bool:
    """Return whether a line, or one shortly before it, may be that of an expression."""
    lines: Sequence[str] = text.splitlines()[max(0, line - 8) : line]
    return any("that:" in each for each in lines)
