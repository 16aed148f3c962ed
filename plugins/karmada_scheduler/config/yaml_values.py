"""What the reader of YAML returns: values without quotes or with a tag as JSON has them, and their places in the text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from karmada_scheduler.structs import Struct, field

PREFIX: Final = "tag:yaml.org,2002:"
"""Of the tags that begin with ``!!`` in a document."""

_MIN_INTEGER: Final = -(2**63)
_MAX_INTEGER: Final = 2**64 - 1
_MAX_NUMBER_LENGTH: Final = 100

TEXT_TAGS: Final = frozenset({"!", f"{PREFIX}str"})
SCALAR_TAGS: Final = frozenset(
    {None, *TEXT_TAGS, *(f"{PREFIX}{name}" for name in ("int", "float", "bool", "null"))}
)
_WORDS: Final[Mapping[str, bool | None]] = {
    form: value
    for value, words in ((True, "y yes true on"), (False, "n no false off"), (None, "null"))
    for word in words.split()
    for form in (word, word.capitalize(), word.upper())
} | {"~": None, "": None}
_NUMBER_START: Final = frozenset("0123456789+-.")
_INTEGER: Final = re.compile(r"[-+]?(?:0([0-7]+)|0[oO][0-7]+|0[xX][0-9a-fA-F]+|0[bB][01]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class RepeatedKey(Struct, frozen=True):
    """A key that an object has twice; the later one counts.

    Attributes:
        line: Of the later one, from 1.
        before: The line of the earlier one.
    """

    key: str
    line: int
    before: int


class YamlDocument(Struct, frozen=True):
    """The content of a document.

    Attributes:
        value: Null, booleans, numbers, text, lists, and objects with text as keys.
        repeated: Keys that an object has more than once.
    """

    value: object
    repeated: tuple[RepeatedKey, ...] = ()


class YamlPlace(NamedTuple):
    """Where a value is in the text.

    Attributes:
        line: Of its first character, from 1.
        column: In that line, from 1.
        end_line: Of what follows its last character, from 1. A list or object without brackets ends before the next value.
        end_column: In that line, from 1.
        style: ``"``, ``'``, ``|`` or ``>``; "" for plain text, lists and objects.
        text: As written, without quotes; "" for lists and objects.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    style: str = ""
    text: str = ""


YamlPath = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


class YamlPlaces(Struct):
    """Where the values of a document are, by their paths. A repeated key has its last place.

    Attributes:
        values: Of values.
        keys: Of the keys of objects.
    """

    values: dict[YamlPath, YamlPlace] = field(default_factory=dict)
    keys: dict[YamlPath, YamlPlace] = field(default_factory=dict)


def tagged(text: str, tag: str) -> object:
    """Return a value with a tag out of ``SCALAR_TAGS``; ValueError if it is none of that kind."""
    if tag in TEXT_TAGS:
        return text
    value, wanted = plain(text), tag.removeprefix(PREFIX)
    taken = {"null": ["NoneType"], "float": ["float", "int"]}.get(wanted, [wanted])
    if type(value).__name__ not in taken:
        raise ValueError(f"the value is no {wanted}")
    return value


def plain(text: str) -> object:
    """Return what a value without quotes stands for; ValueError for a number that JSON cannot have.

    A float without a fraction is an integer, as it is once it was written as JSON.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _NO_NUMBER.fullmatch(text):
        raise ValueError("the value is no number that JSON has")
    digits = text if text[0] == "." else text.replace("_", "")
    found = _INTEGER.fullmatch(digits)
    if found and len(digits) <= _MAX_NUMBER_LENGTH:
        integer = int(digits, 8 if found[1] else 0)
        if _MIN_INTEGER <= integer <= _MAX_INTEGER:
            return integer
    number = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    if math.isinf(number):
        return text
    return int(number) if number.is_integer() and abs(number) < -_MIN_INTEGER else number


def key_of(value: object) -> str:
    """Return a value as the key of an object; ValueError for null and for what is no scalar."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise ValueError("a key must be text")  # noqa: TRY004 (the document is wrong)
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def tag_problem(tag: str) -> str:
    """Return that a tag is not supported; only the name of a tag of YAML is shown."""
    name = tag.removeprefix(PREFIX)
    known = name if name != tag and name.isalpha() and len(name) < len("timestamp") + 1 else ""
    return f"the tag {f'!!{known} ' if known else ''}is not supported"
