"""Label selectors as kubectl takes them: ``app=web,tier in (a,b),!canary``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from karmada_advisor.fleet.errors import NoAnswerError

Labels = Mapping[str, str]
Selector = Callable[[Labels], bool]

_KEY: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE: Final = r"[-A-Za-z0-9_.]*"
_REQUIREMENT: Final = re.compile(
    rf"\s*(?:(?P<absent>!)?\s*(?P<key>{_KEY})\s*(?:(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|\s(?P<set>in|notin)\s*\((?P<values>\s*{_VALUE}\s*(?:,\s*{_VALUE}\s*)*)\))?)\s*(?:,|$)"
)


def selector_of(written: str) -> Selector:
    """Return what tells whether labels match a selector; an empty one matches all.

    Raises:
        NoAnswerError: It is no selector.

    Source: k8s.io/apimachinery v0.35.3 pkg/labels/selector.go, whose ``!=`` and ``notin`` match labels without the key.
    """
    found: list[Selector] = []
    position = 0
    while position < len(written):
        match = _REQUIREMENT.match(written, position)
        is_wrong = match is None or (match["absent"] and (match["operator"] or match["set"]))
        if match is None or is_wrong:
            raise NoAnswerError(
                f"--selector: {written!r} cannot be read from {written[position:]!r} on; "
                "expected app=web, app!=web, app in (a,b), app notin (a,b), app, !app"
            )
        found.append(_requirement(match))
        position = match.end()
    return lambda labels: all(each(labels) for each in found)


def _requirement(match: re.Match[str]) -> Selector:
    key = match["key"]
    if match["absent"]:
        return lambda labels: key not in labels
    if match["set"]:
        values = {each.strip() for each in match["values"].split(",")}
        if match["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: key not in labels or labels[key] not in values
    if match["operator"] == "!=":
        value = match["value"]
        return lambda labels: labels.get(key) != value
    if match["operator"]:
        value = match["value"]
        return lambda labels: labels.get(key) == value
    return lambda labels: key in labels
