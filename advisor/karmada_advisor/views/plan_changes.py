"""The parts of a change, field by field: before -> after. A long value is cut around the difference, never before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.plan.change_model import ChangeShown, FieldChange, value_text
from karmada_advisor.views.layout import Style, printable

LONGEST: Final = 120
"""Characters of a value that are shown."""

_FIELDS: Final = 8
_KEPT: Final = 24
"""Characters that both values have before the difference."""

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}
_SIGNS: Final = {"+": "is new", "-": "is deleted", "=": "is as it was"}


def change_lines(change: ChangeShown, style: Style) -> Iterator[str]:
    """Yield the lines of one changed object."""
    text = "" if change.fields else change.text or _SIGNS.get(change.sign, "")
    line = printable(f"  {change.sign} {change.object}   {text}".rstrip())
    first, *rest = style.wrap(line, indent="      ")
    yield first[:2] + style.paint(first[2:3], _COLOURS.get(change.sign, "faint")) + first[3:]
    yield from rest
    shown = change.fields if style.unfolded else change.fields[:_FIELDS]
    for each in shown:
        yield from _field_lines(each, style)
    if len(change.fields) > len(shown):
        yield f"      and {len(change.fields) - len(shown)} more fields (--all)"


def _field_lines(field: FieldChange, style: Style) -> Iterator[str]:
    path, before, after = field_texts(field, 0 if style.unfolded else LONGEST)
    lead = f"      {path}: "
    if before and after and len(lead) + len(before) + len(after) + 4 <= style.width:
        yield f"{lead}{style.paint(before, 'red')} -> {style.paint(after, 'green')}"
        return
    if before and after:
        yield lead.rstrip()
        yield from _value_lines("        - ", before, style, "red")
        yield from _value_lines("        + ", after, style, "green")
        return
    sign, value = ("+", after) if after else ("-", before)
    yield from _value_lines(f"    {sign} {path}: ", value, style, _COLOURS[sign])


def _value_lines(lead: str, value: str, style: Style, colour: str) -> Iterator[str]:
    indent = " " * (len(lead) - len(lead.lstrip()) + 4)
    for line in style.wrap(lead + value, indent=indent):
        yield style.paint(line, colour)


def field_texts(field: FieldChange, longest: int = LONGEST) -> tuple[str, str, str]:
    """Return the path, and both values; "" for one that there is not.

    Args:
        field: The field.
        longest: Characters of a value that are shown; 0 for all.
    """
    before = "" if field.before is None else printable(value_text(field.before))
    after = "" if field.after is None else printable(value_text(field.after))
    return printable(field.path), *around_difference(before, after, longest)


def around_difference(one: str, other: str, longest: int) -> tuple[str, str]:
    """Return two texts; if one is too long, both without what they begin with alike, and cut after the difference."""
    if not longest or max(len(one), len(other)) <= longest:
        return one, other
    same = next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    start = max(0, same - _KEPT)
    return _window(one, start, longest), _window(other, start, longest)


def _window(text: str, start: int, longest: int) -> str:
    begin = "..." if start else ""
    cut = text[start:]
    return begin + (cut if len(cut) <= longest else f"{cut[: longest - 3]}...")


def field_line(field: FieldChange) -> str:
    """Return a changed field in one line."""
    path, before, after = field_texts(field)
    if not before or not after:
        return f"{'+' if after else '-'} {path}: {before or after}"
    return f"{path}: {before} -> {after}"
