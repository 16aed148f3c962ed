"""The parts of a change, field by field: before -> after. A long value is cut around the difference, never before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.views.document import Line, TextBlock
from karmada_advisor.views.text import Style, printable
from karmada_advisor.whatif.plan.objects import ChangeShown, FieldChange, value_text

LONGEST: Final = 120
"""Characters of a value that are shown."""

_FIELDS: Final = 8
_KEPT: Final = 24
"""Characters that both values have before the difference."""

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}
_SIGNS: Final = {"+": "is new", "-": "is deleted", "=": "is as it was"}


def change_lines(change: ChangeShown, style: Style) -> Iterator[TextBlock]:
    """Yield the lines of one changed object."""
    what = "" if change.fields else change.text or _SIGNS.get(change.sign, "")
    sign = (change.sign, _COLOURS.get(change.sign, "faint"))
    yield Line([("  ", ""), sign, (f" {change.object}   {what}", "")], hang=6)
    shown = style.first(change.fields, _FIELDS)
    for field in shown:
        yield from _field_lines(field, style)
    if len(change.fields) > len(shown):
        yield f"      and {len(change.fields) - len(shown)} more fields (--all)"


def _field_lines(field: FieldChange, style: Style) -> Iterator[TextBlock]:
    path, before, after = field_texts(field, 0 if style.unfolded else LONGEST)
    lead = f"      {path}: "
    if not before or not after:
        sign, value = ("+", after) if after else ("-", before)
        yield Line(f"    {sign} {path}: {value}", _COLOURS[sign], hang=8)
    elif len(lead) + len(before) + len(after) + 4 <= style.width:
        yield Line([(lead, ""), (before, "red"), (" -> ", ""), (after, "green")])
    else:
        yield lead
        yield Line(f"        - {before}", "red", hang=12)
        yield Line(f"        + {after}", "green", hang=12)


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
    pairs = enumerate(zip(one, other, strict=False))
    same = next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))
    start = max(0, same - _KEPT)
    return _window(one, start, longest), _window(other, start, longest)


def _window(text: str, start: int, longest: int) -> str:
    begin = "..." if start else ""
    cut = text[start:]
    return begin + (cut if len(cut) <= longest else f"{cut[: longest - 3]}...")
