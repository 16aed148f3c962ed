"""Tests on older versions of Karmada: the marks ``versions`` and ``needs``."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

_RULE = re.compile(r"R\d+\b")


def skip_what_is_newer(items: Iterable[pytest.Item], version: str) -> None:
    """Skip the tests with ``needs("1.18", reason="R12: ...")`` on a version before that; none if it is empty.

    Raises:
        UsageError: A reason names no rule of docs/karmada-versions.md.
    """
    for item in items:
        for mark in item.iter_markers("needs"):
            reason = str(mark.kwargs.get("reason", ""))
            if not _RULE.match(reason):
                raise pytest.UsageError(
                    f"{item.nodeid}: needs: the reason has to begin with a rule, such as R12"
                )
            if version and _numbers(version.removeprefix("v")) < _numbers(mark.args[0]):
                item.add_marker(pytest.mark.skip(reason=f"Karmada {mark.args[0]} is needed, {reason}"))


def _numbers(version: str) -> list[int]:
    return [int(each) for each in version.split(".")]
