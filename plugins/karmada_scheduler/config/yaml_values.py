"""The values of YAML without quotes or with a tag, as JSON has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

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
    for value, words in ((True, "yes true on"), (False, "no false off"), (None, "null"))
    for word in words.split()
    for form in (word, word.capitalize(), word.upper())
} | {"~": None, "": None}
_NUMBER_START: Final = frozenset("0123456789+-.")
_INTEGER: Final = re.compile(r"([-+]?)(?:0b([01_]+)|0x([0-9a-fA-F_]+)|0([0-7_]+)|(0|[1-9][0-9_]*))")
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


def tagged(text: str, tag: str) -> object:
    """Return a value with a tag out of ``SCALAR_TAGS``; ValueError if it is none of that kind."""
    if tag in TEXT_TAGS:
        return text
    value, wanted = plain(text), tag.removeprefix(PREFIX)
    if wanted == "float" and type(value) is int:
        return float(value)
    if type(value).__name__ != {"null": "NoneType"}.get(wanted, wanted):
        raise ValueError(f"the value is no {wanted}")
    return value


def plain(text: str) -> object:
    """Return what a value without quotes stands for; ValueError for a number that JSON cannot have."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if found := _INTEGER.fullmatch(text):
        return _integer(*found.groups())
    if _FLOAT.fullmatch(text):
        value = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
        if value - value != 0:
            raise ValueError("the value is no number that JSON has")
        return value
    return text


def _integer(sign: str, binary: str, hexadecimal: str, octal: str, decimal: str) -> int:
    digits, base = next(
        (digits.replace("_", ""), base)
        for digits, base in ((binary, 2), (hexadecimal, 16), (octal, 8), (decimal, 10))
        if digits is not None
    )
    if not digits:
        raise ValueError("the value is no int")
    value = int(digits, base) if len(digits) <= _MAX_NUMBER_LENGTH else _MAX_INTEGER + 1
    if sign == "-":
        value = -value
    if not _MIN_INTEGER <= value <= _MAX_INTEGER:
        raise ValueError("the integer has more than 64 bits")
    return value


def tag_problem(tag: str) -> str:
    """Return that a tag is not supported; only the name of a tag of YAML is shown."""
    name = tag.removeprefix(PREFIX)
    known = name if name != tag and name.isalpha() and len(name) < len("timestamp") + 1 else ""
    return f"the tag {f'!!{known} ' if known else ''}is not supported"
