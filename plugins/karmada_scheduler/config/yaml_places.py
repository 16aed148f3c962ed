"""What the reader of YAML returns, and where the values are in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """A key that an object has twice; the later one counts.

    Attributes:
        line: Of the later one, from 1.
        before: The line of the earlier one.
    """

    key: str
    line: int
    before: int


@dataclass(frozen=True, slots=True)
class YamlDocument:
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


@dataclass(slots=True)
class YamlPlaces:
    """Where the values of a document are, by their paths. A repeated key has its last place.

    Attributes:
        values: Of values.
        keys: Of the keys of objects.
    """

    values: dict[YamlPath, YamlPlace] = field(default_factory=dict)
    keys: dict[YamlPath, YamlPlace] = field(default_factory=dict)
