"""A change as data: the objects that differ, and their fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from karmada_advisor.whatif.plan.objects import Manifest, PlanObjects, UnversionedTemplateKey, named
from karmada_scheduler.structs import Struct


class FieldChange(Struct, frozen=True):
    """A field that differs between two versions of an object.

    Attributes:
        path: ``spec.resourceSelectors[0].name``; an item of a list stands by its name, ``spreadConstraints[region]``, or by
            its index in the list where it is: the new one, or the old one if it was removed.
        before: The value before; None if there was none.
        after: The value after; None if there is none.
    """

    path: str
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        if self.before is None:
            return f"+ {self.path}: {value_text(self.after)}"
        if self.after is None:
            return f"- {self.path}: {value_text(self.before)}"
        return f"{self.path}: {value_text(self.before)} -> {value_text(self.after)}"


def value_text(value: Any) -> str:
    """Return a value of a field as people write it: a requirement as ``region NotIn [a]``, a taint, else JSON."""
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, Mapping) and {"key", "operator"} == value.keys() - {"values"}:
        listed = value.get("values")
        values = f" [{', '.join(map(str, listed))}]" if isinstance(listed, list) and listed else ""
        return f"{value['key']} {value['operator']}{values}"
    if isinstance(value, Mapping) and {"key", "effect"} == value.keys() - {"value"}:
        worth = f"={value['value']}" if value.get("value") else ""
        return f"{value['key']}{worth}:{value['effect']}"
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    except ValueError:
        return "..."


class ChangeShown(Struct, frozen=True):
    """One part of the change.

    Attributes:
        sign: ``+`` for an object that is new, ``-`` for one that is gone, ``~`` for a changed one, ``=`` for one that is
            equal to what there is.
        object: Kind and name: ``PropagationPolicy/shop/checkout``.
        text: What changes in it, in one line; "" if that is the sign alone.
        fields: The fields that change, for an object of a file.
    """

    sign: str
    object: str
    text: str = ""
    fields: tuple[FieldChange, ...] = ()


class ChangedObjects:
    """The objects after a change, built from those before it.

    Attributes:
        before: The objects as they are.
        after: The objects so far.
        shown: The parts of the change, in their order.
        written: The policies of the change, and its override policies, as they were given.
        notes: What was left out, and why.
        autoscaled: The workloads whose replicas an autoscaler of the change sets.
    """

    def __init__(self, before: PlanObjects) -> None:
        """Start with the objects as they are."""
        self.before = before
        self.after = before.copy()
        self.shown: list[ChangeShown] = []
        self.written: list[Manifest] = []
        self.notes: list[str] = []
        self.autoscaled: set[UnversionedTemplateKey] = set()

    def show(self, sign: str, manifest: Manifest, text: str = "", fields: Iterable[FieldChange] = ()) -> None:
        """Add a part of the change: ``+``, ``~``, ``-``, or ``=`` for an object that stays as it is."""
        self.shown.append(ChangeShown(sign, "/".join(named(manifest)), text, tuple(fields)))
