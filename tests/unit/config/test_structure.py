"""Plain data becomes typed values, strictly, and every problem is reported with its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, Literal, Optional

import pytest

from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.structure import structure
from karmada_scheduler.structs import Struct


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(Struct):
    size: int
    tags: tuple[str, ...] = ()


@dataclass
class Everything:
    flag: bool = False
    number: float = 0
    text: str = ""
    maybe: int | None = 1
    perhaps: Optional[str] = None  # noqa: UP045 (authors write both)
    either: int | str = 0
    anything: Any = None
    pause: timedelta = timedelta()
    secret: bytes = b""
    colour: Colour = Colour.RED
    mode: Literal["a", "b"] = "a"
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    names: Sequence[str] = ()
    unique: frozenset[str] = frozenset()
    by_name: Mapping[str, float] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("key", "given", "read"),
    [
        ("flag", True, True),
        ("number", 3, 3.0),
        ("maybe", None, None),
        ("maybe", 4, 4),
        ("perhaps", "x", "x"),
        ("either", "x", "x"),
        ("either", 2, 2),
        ("anything", [{"a": 1}], [{"a": 1}]),
        ("pause", "1m30s", timedelta(seconds=90)),
        ("secret", "aGVsbG8=\n", b"hello"),
        ("colour", "blue", Colour.BLUE),
        ("mode", "b", "b"),
        ("inner", {"size": 1}, Inner(1)),
        ("inners", [{"size": 1, "tags": ["x"]}], (Inner(1, ("x",)),)),
        ("names", ["a"], ("a",)),
        ("unique", ["a", "a"], frozenset({"a"})),
        ("byName", {"a": 1}, {"a": 1.0}),
    ],
)
def test_values_have_the_type_of_their_field(key: str, given: object, read: object) -> None:
    assert structure({key: given}, Everything) == Everything(**{{"byName": "by_name"}.get(key, key): read})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "given", "text"),
    [
        ("flag", "yes", 'flag: expected true or false, got "yes"'),
        ("flag", 1, "flag: expected true or false, got 1"),
        ("number", True, "number: expected a number, got true"),
        ("text", 3, "text: expected text, got 3"),
        ("pause", "1d", 'pause: expected a duration such as 5s or 1m30s, got "1d"'),
        ("pause", "5", 'pause: expected a duration such as 5s or 1m30s, got "5"'),
        ("secret", "?", "secret: expected base64"),
        ("colour", "green", 'colour: expected one of "red", "blue", got "green"'),
        ("mode", None, None),
        ("inner", [], "inner: expected a mapping, got a list"),
        ("inners", {"size": 1}, "inners: expected a list, got a mapping"),
        ("inners", [{"size": 1}, {"size": None}], "inners[1].size: is required"),
        ("names", "abc", 'names: expected a list, got "abc"'),
        ("names", [None], "names[0]: expected text, got nothing"),
        ("byName", {"a": "1"}, 'byName[a]: expected a number, got "1"'),
        ("by_name", {}, ("by_name: unknown field; known: flag, number, text, maybe, perhaps, either, anything, "
         "pause, secret, colour, mode, inner, inners, names, unique, byName")),
        (3, {}, ("3: unknown field; known: flag, number, text, maybe, perhaps, either, anything, "
         "pause, secret, colour, mode, inner, inners, names, unique, byName")),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_an_error(key: object, given: object, text: str | None) -> None:
    if text is None:  # an empty value counts as missing
        assert structure({key: given}, Everything) == Everything()
        return
    with pytest.raises(ConfigError) as refused:
        structure({key: given}, Everything)
    assert str(refused.value) == text


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(ConfigError) as refused:
        structure({"inners": [{"size": "1"}, {"tags": [1, "a", 2]}], "flag": 0}, Everything)
    assert [str(problem) for problem in refused.value.problems] == [
        'inners[0].size: expected an integer, got "1"',
        "inners[1].tags[0]: expected text, got 1",
        "inners[1].tags[2]: expected text, got 2",
        "inners[1].size: is required",
        "flag: expected true or false, got 0",
    ]


def test_an_unsupported_type_is_named() -> None:
    @dataclass
    class Odd:
        callback: Everything | Inner | None = None

    with pytest.raises(ConfigError):
        structure({"callback": {"x": 1}}, Odd)
