"""Text that cannot control a terminal or forge lines, whatever names and messages contain."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeVar

_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""Control characters, line separators, characters without width, changes of the direction, and lone surrogates."""
_SPACES: Final = frozenset("\t\n\r")

T = TypeVar("T")


def printable(text: str) -> str:
    r"""Return a text with escapes such as ``\x1b`` instead of characters that are not shown; line breaks are spaces."""
    return _UNSAFE.sub(_escaped, text) if _UNSAFE.search(text) else text


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in _SPACES:
        return " "
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def with_printable_texts(value: T) -> T:
    """Return a value of the model in which every text, also of keys, is printable; the same one if all are."""
    return _printed(value)  # type: ignore[no-any-return]


def _printed(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if value is None or isinstance(value, bool | int | float | Enum):
        return value
    if isinstance(value, Mapping):
        changed = {_printed(key): _printed(each) for key, each in value.items()}
        return value if changed == value else changed
    if isinstance(value, tuple | list):
        items = [_printed(each) for each in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(items)
    if dataclasses.is_dataclass(value):
        found = {
            field.name: (getattr(value, field.name), _printed(getattr(value, field.name)))
            for field in dataclasses.fields(value)
        }
        changes = {name: new for name, (old, new) in found.items() if new is not old}
        return dataclasses.replace(value, **changes) if changes and not isinstance(value, type) else value
    return value
