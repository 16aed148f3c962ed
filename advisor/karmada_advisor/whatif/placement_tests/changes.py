"""The words of ``given`` and ``then``: each is an edit of ``plan.change.Draft``, as the flags of ``plan`` are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from karmada_advisor.whatif.placement_tests.model import ScenarioChange
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.stored import ChangeError, object_name

_WORDS: Final[Mapping[str, Callable[[Draft, ScenarioChange], None]]] = {
    "apply": lambda draft, each: draft.put(each.value),
    "edit": lambda draft, each: draft.edit(*object_name(each.subject, "edit"), each.value),
    "delete": lambda draft, each: draft.delete(*object_name(each.subject, "delete")),
    "add": lambda draft, each: draft.add(each.subject, each.value),
    "without": lambda draft, each: draft.without(each.subject),
    "cordon": lambda draft, each: draft.cordon(each.subject),
    "uncordon": lambda draft, each: draft.uncordon(each.subject),
    "ready": lambda draft, each: draft.ready(each.subject, is_ready=each.value),
    "taint": lambda draft, each: draft.taint(each.subject, each.value),
    "label": lambda draft, each: draft.label(each.subject, each.value),
    "room": lambda draft, each: draft.room(each.subject, each.value),
    "scale": lambda draft, each: draft.scale(each.subject, each.value),
    "rebalance": lambda draft, each: draft.rebalance(each.subject),
    "at": lambda _draft, _each: None,
}
"""By word, the edit. ``at`` sets the clock of the state."""


def make_change(draft: Draft, change: ScenarioChange) -> None:
    """Make one change.

    Raises:
        ChangeError: It cannot be made.
    """
    try:
        _WORDS[change.word](draft, change)
    except ChangeError as problem:
        raise ChangeError(str(problem).removeprefix("--").replace(" (--", " (")) from problem


def make_changes(draft: Draft, changes: Iterable[ScenarioChange]) -> None:
    """Make changes in their order.

    Raises:
        ChangeError: One cannot be made.
    """
    for each in changes:
        make_change(draft, each)
