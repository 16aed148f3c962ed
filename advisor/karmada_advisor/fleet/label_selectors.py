"""Label selectors as kubectl takes them: ``app=web,tier in (a,b),!canary,cpus>3``.

Source: k8s.io/apimachinery v0.35.3 pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_scheduler.api.matching import EXISTS, IN, Requirement, Test, conjunction

_WORD: Final = r"[^\s=!(),<>]+"
_REQUIREMENT: Final = re.compile(
    rf"\s*(?:!\s*(?P<absent>{_WORD})|(?P<key>{_WORD})\s*(?:(?P<operator>==|=|!=|>|<)\s*(?P<value>(?:{_WORD})?)"
    rf"|(?<=\s)(?P<set>in|notin)\s*\((?P<values>[^=!()<>]*)\))?)\s*(?:,(?=\s*\S)|$)"
)
_OPERATORS: Final[Mapping[str | None, str]] = {
    None: EXISTS, "=": IN, "==": IN, "in": IN, "!=": "NotIn", "notin": "NotIn", ">": "Gt", "<": "Lt"
}  # fmt: skip


def selector_of(written: str) -> Test:
    """Return what tells whether labels match a selector; an empty one matches all.

    Raises:
        NoAnswerError: It is no selector.
    """
    found: list[Test] = []
    position = 0
    while position < len(written.rstrip()):
        match = _REQUIREMENT.match(written, position)
        test = None if match is None else _requirement(match).compile()
        if match is None or test is None:
            raise NoAnswerError(
                f"--selector: {written!r} cannot be read from {written[position:]!r} on; "
                "expected app=web, app!=web, app in (a,b), app notin (a,b), app, !app, cpus>3, cpus<3"
            )
        found.append(test)
        position = match.end()
    return conjunction(found)


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent"], "DoesNotExist")
    operator = match["operator"] or match["set"]
    values = (match["value"] or match["values"] or "").split(",") if operator else ()
    return Requirement(match["key"], _OPERATORS[operator], tuple(each.strip() for each in values))
