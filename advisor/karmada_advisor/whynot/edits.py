"""Edits: changes of one field of one object, written as one RFC 6902 operation against the object as it was read.

Edits of a set do not depend on each other: fields are set first, then items are appended, and items are removed from the
end of a list to its start, so every index is that of the object as it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from karmada_advisor.state.stored import content_of
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.structs import Struct


class Side(Enum):
    """The part of the system that an edit changes; remedies of different sides are preferred."""

    TRIGGER = "trigger"
    POLICY = "policy"
    WORKLOAD = "workload"
    CLUSTER = "cluster"
    COMPETITOR = "competitor"
    PEER = "peer"
    QUOTA = "quota"
    CONFIGURATION = "configuration"


class Harm(Enum):
    """What speaks against an edit, the least first; edits of less harm come first."""

    NONE = "none"
    NARROWS = "narrows"
    """It takes away clusters that the owner allows, or capacity that others use."""

    WIDENS = "widens"
    """It admits what an owner has kept out, or gives up what an owner asked for."""

    UNCHECKED = "unchecked"
    """It turns a check off: what the check has found stays true."""

    @property
    def degree(self) -> int:
        """Its place in this order."""
        return list(Harm).index(self)


class ObjectRef(NamedTuple):
    """An object that can be edited: a Cluster or a binding; the namespace is "" for cluster-scoped ones."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Manifest) -> ObjectRef:
        """Return an object as the target of edits."""
        metadata = manifest.get("metadata") or {}
        return cls(
            str(manifest.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
        )

    @property
    def is_policy(self) -> bool:
        """Whether it is a PropagationPolicy or a ClusterPropagationPolicy."""
        return self.kind in ID_LABELS


class PatchAction(Enum):
    """What an edit does with the value at its path; edits are applied in this order."""

    SET = "set"
    APPEND = "append"
    REMOVE = "remove"


_ORDER: Final = {PatchAction.SET: 0, PatchAction.APPEND: 1, PatchAction.REMOVE: 2}

Path = tuple[str | int, ...]


class EditQuantity(Struct, frozen=True):
    """An amount of an edit that may be larger than necessary.

    Attributes:
        at: The amount of this edit.
        base: The amount without the edit.
        make: Returns the edit with another amount.
        unit: The unit of ``at`` for people; "" for a number.
    """

    at: int
    base: int
    make: Any
    unit: str = ""


class Minimum(Struct, frozen=True):
    """The boundary of an amount.

    Attributes:
        at: The least amount that reaches the goal.
        fails_at: The next smaller step, which does not.
        unit: Of both numbers; "" for a count.
        monotone: ``sampled`` if smaller amounts were tried and none reached it, ``unchecked`` if the time was over.
    """

    at: int
    fails_at: int
    unit: str
    monotone: str


class Edit(Struct, frozen=True):
    """A change of one field of one object.

    Attributes:
        side: The part of the system that it changes.
        op: What it is called in the output: ``removeTaint``.
        target: The object.
        action: What happens with the value at the path.
        path: Keys and indexes from the root of the object; an append's is that of the list.
        value: The new value or item; None for a removal.
        text: For people, without the object.
        cost: Effort of the change, with its harm; edits of low cost are tried first.
        harm: What speaks against it.
        caution: The same as a sentence; "" if the placement afterwards says it.
        instead: What a person does, of which the change is the effect: status is no patch of a person's. "" if the patch
            is what a person applies.
        quantity: Its amount, None without one.
        minimal: The boundary of its amount, None if it has none or is not known.
    """

    side: Side
    op: str
    target: ObjectRef
    action: PatchAction
    path: Path
    value: Any = None
    text: str = ""
    cost: float = 0.0
    harm: Harm = Harm.NONE
    caution: str = ""
    instead: str = ""
    quantity: EditQuantity | None = None
    minimal: Minimum | None = None
    identity: bytes = b""
    """The value as JSON, for comparisons; set by ``edit``."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edit) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[object, ...]:
        return self.side, self.op, self.target, self.action, self.path, self.identity

    @property
    def slot(self) -> tuple[ObjectRef, Path]:
        """The place that it changes; two edits of one place exclude each other, except for appended items."""
        return self.target, (*self.path, "-") if self.action is PatchAction.APPEND else self.path


def edit(
    side: Side, op: str, target: ObjectRef, action: PatchAction, path: Sequence[str | int], **rest: Any
) -> Edit:
    """Return an edit; the other arguments are the attributes of ``Edit``."""
    return Edit(side, op, target, action, tuple(path), identity=content_of(rest.get("value")), **rest)


def compatible(one: Edit, other: Edit) -> bool:
    """Return whether two edits can be in one set: neither changes what the other one is based on."""
    (first, path), (second, other_path) = one.slot, other.slot
    if first != second:
        return True
    if path == other_path:
        return one.action is other.action is PatchAction.APPEND and one.identity != other.identity
    shorter, longer = sorted((path, other_path), key=len)
    return longer[: len(shorter)] != shorter


def ordered(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits in the order in which they are applied."""

    def key(each: Edit) -> tuple[Any, ...]:
        indexes = tuple(-part if isinstance(part, int) else 0 for part in each.path)
        names = tuple(str(part) for part in each.path if not isinstance(part, int))
        return _ORDER[each.action], each.target, -len(each.path), names, indexes, each.identity

    return sorted(edits, key=key)
