"""The objects after a change, and how its parts are shown; the base of all changes."""

from __future__ import annotations

from collections.abc import Iterable

from karmada_advisor.plan.change_model import ChangeShown, FieldChange
from karmada_advisor.plan.objects import Manifest, PlanObjects, part, text_of


class ChangedObjects:
    """The objects after a change, built from those before it.

    Attributes:
        before: The objects as they are.
        after: The objects so far.
        shown: The parts of the change, in their order.
        written: The policies of the change as they were given.
        notes: What was left out, and why.
    """

    def __init__(self, before: PlanObjects) -> None:
        """Start with the objects as they are."""
        self.before = before
        self.after = before.copy()
        self.shown: list[ChangeShown] = []
        self.written: list[Manifest] = []
        self.notes: list[str] = []

    def show(self, sign: str, manifest: Manifest, text: str = "", fields: Iterable[FieldChange] = ()) -> None:
        """Add a part of the change: ``+``, ``~``, ``-``, or ``=`` for an object that stays as it is."""
        metadata = part(manifest, "metadata")
        name = "/".join(str(each) for each in (metadata.get("namespace"), metadata.get("name")) if each)
        self.shown.append(ChangeShown(sign, f"{text_of(manifest, 'kind')}/{name}", text, tuple(fields)))
