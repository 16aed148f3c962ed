"""The one reader of YAML: a document of JSON's types, as the API server accepts it, from a text that nobody has to trust.

libyaml gives events, and the values are built from them without recursion. The tree that PyYAML's own loaders build first
(6.0, yaml/_yaml.pyx) has no bounds. Here, what is bounded is checked before it is built.

Values and keys are what sigs.k8s.io/yaml v1.6.0 makes of them, as the API server then gets them: ``on`` is true, and as a
key ``"true"``. A float as a key has eight digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from karmada_scheduler.config.yaml_values import (
    PREFIX,
    SCALAR_TAGS,
    RepeatedKey,
    YamlDocument,
    YamlPath,
    YamlPlace,
    YamlPlaces,
    key_of,
    plain,
    tag_problem,
    tagged,
)
from karmada_scheduler.structs import Struct

MAX_DEPTH: Final = 200
"""Lists and objects inside of each other, as in ``client.json_body``. Nothing that is read here has more than 20."""

MAX_REPEATED: Final = 1_000_000
"""What all aliases of a document stand for: characters of text, and 10 for each value."""

_VALUE_SIZE: Final = 10
_PARSER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRUCTURES: Final = frozenset({None, "!", f"{PREFIX}map", f"{PREFIX}seq"})
_MERGE: Final = "<<"
_QUOTED: Final = re.compile(r"""(['"]).*\1""")


class YamlError(ValueError):
    """A text that is no document of YAML.

    Attributes:
        line: Where, from 1; 0 if that is not known.
        column: In the line, from 1.
        what: What is wrong, without any text of the document, which may be a secret.
    """

    def __init__(self, line: int, column: int, what: str) -> None:
        super().__init__(f"line {line}, column {column}: {what}" if line else what)
        self.line = line
        self.column = column
        self.what = what


def read_document(text: str, *, lines_before: int = 0, places: YamlPlaces | None = None) -> YamlDocument:
    """Read one document.

    Args:
        text: The document; an empty one is null.
        lines_before: Lines of the file before it, for the places of errors.
        places: Receives the place of each value.

    Raises:
        YamlError: It is no YAML, it has tags of its own, more than ``MAX_DEPTH`` levels, aliases for more than
            ``MAX_REPEATED``, or a number that JSON cannot have.
    """
    try:
        return _DocumentBuilder(lines_before, places).build(text)
    except YamlError:
        raise
    except yaml.reader.ReaderError as error:
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        at = 0 if found is None else found.start()
        raise _of_character(text, lines_before, at) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = _QUOTED.sub("'...'", ", ".join(part for part in (error.context, error.problem) if part))
        if mark is None:
            raise YamlError(0, 0, what) from error
        line, column = mark.line, mark.column
        if line > text.count("\n"):  # the end; libyaml names the line after it
            line, column = line - 1, len(text) - text.rfind("\n") - 1
        raise YamlError(lines_before + line + 1, column + 1, what) from error
    except UnicodeEncodeError as error:
        raise _of_character(text, lines_before, error.start) from error
    except yaml.YAMLError as error:
        raise YamlError(0, 0, " ".join(str(error).split())) from error


def _of_character(text: str, lines_before: int, at: int) -> YamlError:
    line = lines_before + text.count("\n", 0, at) + 1
    return YamlError(
        line, at - text.rfind("\n", 0, at), f"the character #x{ord(text[at]):04x} is not permitted"
    )


class _Open(Struct):
    """A list or an object that is being read.

    Attributes:
        items: The values so far; None for an object.
        fields: The fields so far; None for a list.
        key: The key whose value comes next; None if a key comes next.
        merged: What the merge keys of an object name.
        lines: The lines of keys.
        anchor: The name by which aliases repeat it.
        size: Of everything before it.
    """

    items: list[Any] | None
    fields: dict[str, Any] | None
    anchor: str | None
    size: int
    lines: dict[str, int]
    key: str | None = None
    is_merge: bool = False
    merged: list[dict[str, Any]] | None = None


class _DocumentBuilder:
    """Builds the value of a document from the events of its parser."""

    def __init__(self, lines_before: int, places: YamlPlaces | None = None) -> None:
        self._lines_before = lines_before
        self._places = places
        self._open: list[_Open] = []
        self._open_anchors: set[str] = set()
        self._anchored: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._repeated_size = 0
        self._repeated_keys: list[RepeatedKey] = []
        self._found: Any = None

    def build(self, text: str) -> YamlDocument:
        """Return the document of a text."""
        documents = 0
        for event in _events(text):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._add_scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._begin(event, is_object=kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end(event)
            elif kind is yaml.AliasEvent:
                self._add_alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise self._error(event, "expected a single document")
        return YamlDocument(self._found, tuple(self._repeated_keys))

    def _error(self, event: Any, what: str) -> YamlError:
        mark = event.start_mark
        return YamlError(self._lines_before + mark.line + 1, mark.column + 1, what)

    def _path(self) -> YamlPath:
        """Return the path of the value that begins now."""
        return tuple(len(level.items) if level.items is not None else level.key or "" for level in self._open)

    def _place(self, event: Any) -> YamlPlace:
        start, end = event.start_mark, event.end_mark
        lines = self._lines_before + 1
        style, text = (getattr(event, name, None) or "" for name in ("style", "value"))
        return YamlPlace(start.line + lines, start.column + 1, end.line + lines, end.column + 1, style, text)

    def _add_scalar(self, event: Any) -> None:
        text: str = event.value
        tag: str | None = event.tag
        if tag is not None and tag not in SCALAR_TAGS:
            raise self._error(event, tag_problem(tag))
        self._size += _VALUE_SIZE + len(text)
        value: object = text
        try:
            if tag is not None:
                value = tagged(text, tag)
            elif event.implicit[0]:
                value = plain(text)
        except ValueError as error:
            raise self._error(event, str(error)) from None
        if event.anchor:
            self._anchored[event.anchor] = (value, _VALUE_SIZE + len(text))
        top = self._open[-1] if self._open else None
        if top is not None and top.fields is not None and top.key is None:
            self._begin_field(top, event, self._key(event, value))
            if self._places is not None:
                self._places.keys[self._path()] = self._place(event)
            return
        if self._places is not None:
            self._places.values[self._path()] = self._place(event)
        self._add(event, value)

    def _key(self, event: Any, value: object) -> str:
        try:
            return key_of(value)
        except ValueError as error:
            raise self._error(event, str(error)) from None

    def _begin_field(self, top: _Open, event: Any, key: str) -> None:
        top.key = key
        top.is_merge = key == _MERGE and event.implicit[0]
        if top.is_merge:
            return
        line = self._lines_before + event.start_mark.line + 1
        if (before := top.lines.get(key)) is not None:
            self._repeated_keys.append(RepeatedKey(key, line, before))
        top.lines[key] = line

    def _begin(self, event: Any, *, is_object: bool) -> None:
        if event.tag not in _STRUCTURES:
            raise self._error(event, tag_problem(event.tag))
        if len(self._open) >= MAX_DEPTH:
            raise self._error(event, f"it is nested too deeply: more than {MAX_DEPTH} levels")
        if self._open and self._open[-1].fields is not None and self._open[-1].key is None:
            raise self._error(event, "a key must be text")
        if self._places is not None:
            self._places.values[self._path()] = self._place(event)
        if event.anchor:
            self._open_anchors.add(event.anchor)
        size, self._size = self._size, self._size + _VALUE_SIZE
        self._open.append(_Open(None if is_object else [], {} if is_object else None, event.anchor, size, {}))

    def _end(self, event: Any) -> None:
        ended = self._open.pop()
        if self._places is not None:
            path, end = self._path(), self._place(event)
            begun = self._places.values[path]
            self._places.values[path] = begun._replace(end_line=end.end_line, end_column=end.end_column)
        value: Any = ended.items if ended.fields is None else ended.fields
        if ended.merged:
            value = {}
            for mapping in reversed(ended.merged):
                value.update(mapping)
            value.update(ended.fields)
        if ended.anchor:
            self._open_anchors.discard(ended.anchor)
            self._anchored[ended.anchor] = (value, self._size - ended.size)
        self._add(event, value)

    def _add_alias(self, event: Any) -> None:
        if event.anchor in self._open_anchors:
            raise self._error(event, "an alias names a value that it is a part of")
        if event.anchor not in self._anchored:
            raise self._error(event, "an alias names no anchor before it")
        value, size = self._anchored[event.anchor]
        self._size += size
        self._repeated_size += size
        if self._repeated_size > MAX_REPEATED:
            raise self._error(event, f"the aliases stand for more than {MAX_REPEATED:,} characters")
        top = self._open[-1] if self._open else None
        if top is not None and top.fields is not None and top.key is None:
            top.key = self._key(event, value)
            return
        if self._places is not None:
            self._places.values[self._path()] = self._place(event)
        self._add(event, value)

    def _add(self, event: Any, value: Any) -> None:
        """Put a value where it belongs: into what is open, or it is the document."""
        if not self._open:
            self._found = value
            return
        top = self._open[-1]
        if top.items is not None:
            top.items.append(value)
            return
        assert top.fields is not None
        assert top.key is not None  # the parser pairs keys and values
        if top.is_merge:
            objects = value if isinstance(value, list) else [value]
            if not all(isinstance(part, dict) for part in objects):
                raise self._error(event, "a merge key (<<) needs an object or a list of objects")
            top.merged = [*(top.merged or ()), *objects]
        else:
            top.fields[top.key] = value
        top.key, top.is_merge = None, False


def _events(text: str) -> Iterator[Any]:
    parser = _PARSER(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    finally:
        parser.dispose()
