"""Invalid values, and valid documents with some invalid values in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Path = tuple[str | int, ...]


class Raw:
    """Text that stands in a JSON document as it is, such as a number that no encoder writes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Raw({self.text[:40]!r})"

    def __deepcopy__(self, _: object) -> Raw:
        return self


def deep(levels: int, opening: str = '{"a":', closing: str = "}") -> Raw:
    """Return JSON with so many levels."""
    return Raw(opening * levels + "1" + closing * levels)


LONG: Final = "x" * 100_000
TEXTS: Final = (
    "",
    " ",
    "a",
    "m1",
    "ours",
    "Divided",
    "Duplicated",
    "Aggregated",
    "NoSuchValue",
    "1e20000",
    "-1e20000",
    "NaN",
    "-1",
    "9" * 400,
    "1" + "0" * 5000,
    "1.5Gi",
    "0.0000000001",
    "2026-13-45T99:99:99Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "\u0662\u0660\u0662\u0666-\u0660\u0661-\u0660\u0661T\u0660\u0660:\u0660\u0660:\u0660\u0660Z",  # digits
    "\x00",
    "a\nb",
    "\ud800",
    "\udfff\ud800",
    "\u2028\u202e",
    "é" * 300,
    "\U0001d7d9\U0001d7da",  # digits
    "../../..",
    "%s%n{0}",
    "<script>",
    LONG,
)
NUMBERS: Final = (
    0, -1, 1, 2, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63), 2**64, 10**400,
    0.5, 1.0, -0.0, 1e308, Raw("1e20000"), Raw("-1e20000"), Raw("NaN"), Raw("-Infinity"), Raw("1" + "0" * 5000),
)  # fmt: skip
STRUCTURES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
    {"\ud800": "\ud800"},
    {"name": None},
    {LONG: LONG},
    [1, "1", None, {}],
    [{"name": "m1"}, {"name": "m1"}],
    ["m1"] * 5000,
    deep(300),
    deep(1500),
    deep(300, "[", "]"),
    deep(20_000, "[", "]"),
)

anything: SearchStrategy[Any] = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.sampled_from(STRUCTURES),
    st.text(max_size=20),
    st.integers(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
)
"""A value that may be wrong anywhere."""


def places(document: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value in a document, its own one excluded."""
    entries: Sequence[tuple[str | int, Any]] = ()
    if isinstance(document, dict):
        entries = list(document.items())
    elif isinstance(document, list):
        entries = list(enumerate(document))
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(document: Any, path: Path) -> Any:
    """Return the value at a path."""
    for key in path:
        document = document[key]
    return document


def _replace(draw: DrawFn, parent: Any, key: Any, values: SearchStrategy[Any]) -> str:
    parent[key] = copy.deepcopy(draw(values))
    return f"= {_shown(parent[key])}"


def _remove(_: DrawFn, parent: Any, key: Any, __: SearchStrategy[Any]) -> str:
    del parent[key]
    return "removed"


def _repeat(draw: DrawFn, parent: Any, key: Any, _: SearchStrategy[Any]) -> str:
    times = draw(st.sampled_from([1, 1, 1, 1000]))
    value = parent[key]
    if isinstance(parent, list):
        parent.extend(copy.deepcopy(value) for _ in range(times))
    elif isinstance(value, list):
        parent[key] = value * (times + 1)
    else:
        parent[key] = [value] * (times + 1)
    return f"repeated {times} times"


def _wrap(draw: DrawFn, parent: Any, key: Any, _: SearchStrategy[Any]) -> str:
    parent[key] = draw(st.sampled_from([[parent[key]], {"value": parent[key]}]))
    return f"wrapped: {_shown(parent[key])}"


def _add(draw: DrawFn, parent: Any, key: Any, values: SearchStrategy[Any]) -> str:
    value = copy.deepcopy(draw(values))
    if isinstance(parent, list):
        parent.insert(key, value)
        return f"inserted before: {_shown(value)}"
    name = draw(st.sampled_from(["unknown", f"{key} ", str(key).upper(), "\ud800", "name"]))
    parent[name] = value
    return f"added {name!r}: {_shown(value)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:150]}... ({len(text)} characters)"


_CHANGES: Final[tuple[Callable[..., str], ...]] = (
    _replace,
    _replace,
    _replace,
    _remove,
    _repeat,
    _wrap,
    _add,
)


class Changed:
    """A document with changes; its ``repr`` has the changes only.

    Attributes:
        document: The changed document.
        changes: What was changed.
    """

    def __init__(self, document: Any, changes: Sequence[str]) -> None:
        self.document = document
        self.changes = changes

    def __repr__(self) -> str:
        return f"<{'; '.join(self.changes)}>"

    @property
    def json(self) -> str:
        """The document as JSON."""
        return encode(self.document)


@st.composite
def mutated(
    draw: DrawFn, document: Any, *, most: int = 3, values: SearchStrategy[Any] = anything, inside: Path = ()
) -> Changed:
    """Return a copy of a document with one to ``most`` changes.

    Args:
        draw: Given by Hypothesis.
        document: A valid document of objects and lists.
        most: The largest number of changes.
        values: The values that replace others.
        inside: The part of the document to change.
    """
    changed, changes = copy.deepcopy(document), []
    for _ in range(draw(st.integers(1, most))):
        choices = [(*inside, *path) for path in places(at(changed, inside))]
        if not choices:
            break
        *above, key = draw(st.sampled_from(choices))
        change = draw(st.sampled_from(_CHANGES))(draw, at(changed, tuple(above)), key, values)
        changes.append(f"{'.'.join(map(str, (*above, key)))} {change}")
    return Changed(changed, changes)


def encode(value: Any) -> str:
    """Return JSON with the texts of ``Raw``; lone surrogates and large numbers are written as they are."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(key))}:{encode(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(encode, value)) + "]"
    return json.dumps(value)


@st.composite
def damaged(draw: DrawFn, text: SearchStrategy[bytes]) -> bytes:
    """Return bytes, mostly with a part cut out, repeated or overwritten."""
    found = draw(text)
    kind = draw(st.sampled_from(["whole", "whole", "cut", "overwrite", "insert", "end", "noise"]))
    start = draw(st.integers(0, len(found)))
    end = draw(st.integers(start, min(len(found), start + 40)))
    match kind:
        case "cut":
            return found[:start] + found[end:]
        case "overwrite":
            return found[:start] + draw(st.binary(max_size=8)) + found[end:]
        case "insert":
            return found[:end] + found[start:]
        case "end":
            return found[:start]
        case "noise":
            return draw(st.binary(max_size=60))
    return found
