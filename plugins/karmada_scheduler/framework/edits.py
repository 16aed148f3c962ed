"""Edits: changes of one field of one object that may end a refusal, and the context in which a plugin proposes them.

An edit is written as one RFC 6902 operation against the object as it was read. Edits of a set do not depend on each other:
fields are set first, then items are appended, and items are removed from the end of a list to its start, so every index is
that of the object as it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest, content_of
from karmada_scheduler.api.names import FleetValues
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.workload import WorkloadAccess
from karmada_scheduler.structs import Struct

PLACEMENT: Final = ("spec", "placement")
BECOME_READY: Final = "becomeReady"
"""The ``op`` of the repair of a cluster, of which the removal of taints is the effect."""


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


class Edit(Struct, frozen=True, dict=True):
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
        caution: The same as a sentence; "" if the placement afterwards says it. Of an edit that widens the affinity,
            the clusters are counted that are allowed then.
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

    @cached_property
    def identity(self) -> bytes:
        """The value as JSON, for comparisons."""
        return content_of(self.value)

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


_COST: Final = {
    Side.TRIGGER: 1.0,
    Side.POLICY: 2.0,
    Side.WORKLOAD: 2.0,
    Side.CLUSTER: 3.0,
    Side.COMPETITOR: 4.0,
    Side.PEER: 4.0,
    Side.QUOTA: 2.5,
}
_HARM_COST: Final = {Harm.NONE: 0.0, Harm.NARROWS: 1.5, Harm.WIDENS: 3.0, Harm.UNCHECKED: 6.0}


def found_at(manifest: Any, path: Path, default: Any = None) -> Any:
    """Return the value at a path of an object; the default if it has none."""
    current = manifest
    for part in path:
        if isinstance(part, int):
            exists = isinstance(current, list) and part < len(current)
        else:
            exists = isinstance(current, dict) and part in current
        if not exists:
            return default
        current = current[part]
    return current


class EditTarget(NamedTuple):
    """Makes edits of one object; ``extra`` adds to the cost of the side and of the harm, the rest are attributes of ``Edit``.

    Attributes:
        side: The part of the system.
        ref: The object.
        below: Where paths start.
        terms: The names of the affinity terms there; an edit in one of several names it.
    """

    side: Side
    ref: ObjectRef
    below: Path = ()
    terms: tuple[str, ...] = ()

    def set(self, op: str, path: Path, value: Any, text: str, **rest: Any) -> Edit:
        """Return the edit that sets a value; objects on the way to it are made."""
        return self._edit(op, PatchAction.SET, path, value=value, text=text, **rest)

    def append(self, op: str, path: Path, value: Any, text: str, **rest: Any) -> Edit:
        """Return the edit that appends an item to a list, which may be missing."""
        return self._edit(op, PatchAction.APPEND, path, value=value, text=text, **rest)

    def remove(self, op: str, path: Path, text: str, **rest: Any) -> Edit:
        """Return the edit that removes a value or an item."""
        return self._edit(op, PatchAction.REMOVE, path, text=text, **rest)

    def _edit(self, op: str, action: PatchAction, path: Path, *, extra: float = 0.0, **rest: Any) -> Edit:
        cost = _COST[self.side] + extra + _HARM_COST[rest.get("harm", Harm.NONE)]
        if (
            len(path) > 2
            and path[0] == "clusterAffinities"
            and isinstance(path[1], int)
            and path[1] < len(self.terms)
        ):
            term = f"affinity term {self.terms[path[1]]}"
            rest["text"] += "" if term in rest["text"] else f" in {term}"
        return Edit(self.side, op, self.ref, action, (*self.below, *path), cost=cost, **rest)


class EditContext(Struct, WorkloadAccess, frozen=True, dict=True):
    """A cluster that a plugin refuses, and the objects that edits may change.

    Attributes:
        cycle: The attempt.
        result: The refusal.
        manifest_of: Returns an object; its indexes are those of the object as it was read.
        others: The other bindings.
        values: What clusters have, for names and values that were meant.
        selected: The clusters that the attempt selected; empty if none passed.
        counts_sets: Whether sets of components are counted, and not replicas.
        is_wanted: Whether replicas are wanted on this cluster, and not anywhere: then it may be preferred to others.
    """

    cycle: Cycle
    cluster: Cluster
    result: Result
    manifest_of: Callable[[ObjectRef], Manifest]
    others: Sequence[Binding]
    values: FleetValues
    selected: Sequence[Candidate] = ()
    counts_sets: bool = False
    is_wanted: bool = False

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return self.cluster.name

    @property
    def binding_ref(self) -> ObjectRef:
        """The binding as an object."""
        return ObjectRef(*self.cycle.binding.key)

    @property
    def cluster_ref(self) -> ObjectRef:
        """The cluster as an object."""
        return ObjectRef(CLUSTER, "", self.cluster.name)

    def at(self, ref: ObjectRef, path: Path) -> Any:
        """Return the value at a path of an object, None if it has none."""
        return found_at(self.manifest_of(ref), path)

    def mine(self, *path: str | int) -> Any:
        """Return the value at a path of the binding, None if it has none."""
        return self.at(self.binding_ref, path)

    def items(self, *path: str | int) -> list[Any]:
        """Return the list at a path of the binding, empty if it has none."""
        found = self.mine(*path)
        return found if isinstance(found, list) else []

    def placement_items(self, name: str) -> list[Any]:
        """Return a list of the placement, empty if it has none."""
        return self.items(*PLACEMENT, name)

    def on(self, side: Side, ref: ObjectRef) -> EditTarget:
        """Return what makes edits of an object, for a side that is neither policy, workload nor cluster."""
        return EditTarget(side, ref)

    @property
    def on_policy(self) -> EditTarget:
        """What makes edits of the placement; paths start below it."""
        terms = (term.affinity_name for term in self.cycle.placement.cluster_affinities)
        return EditTarget(Side.POLICY, self.binding_ref, PLACEMENT, tuple(terms))

    @property
    def on_workload(self) -> EditTarget:
        """What makes edits of what the workload asks for, in the binding."""
        return EditTarget(Side.WORKLOAD, self.binding_ref)

    @property
    def on_cluster(self) -> EditTarget:
        """What makes edits of the cluster."""
        return EditTarget(Side.CLUSTER, self.cluster_ref)

    def affinity_paths(self) -> Iterator[tuple[Path, Any]]:
        """Yield the path of each affinity of the run, with its manifest; the single one may be missing (None)."""
        if self.cycle.placement.cluster_affinity is not None or not self.cycle.placement.cluster_affinities:
            yield ("clusterAffinity",), self.mine(*PLACEMENT, "clusterAffinity")
            return
        for index, term in enumerate(self.placement_items("clusterAffinities")):
            if not isinstance(term, dict) or term.get("affinityName") != self.cycle.affinity_name:
                continue
            yield ("clusterAffinities", index), term
            overflow = term.get("overflowAffinities")
            for number, tier in enumerate(overflow if isinstance(overflow, list) else []):
                yield ("clusterAffinities", index, "overflowAffinities", number), tier
            return


@runtime_checkable
class EditsPlugin(Plugin, Protocol):
    """A Filter plugin, or one with PreFilter, that knows which changes may let a cluster pass."""

    def edits(self, context: EditContext, /) -> Iterable[Edit]:
        """Return changes after which the plugin may accept the cluster, each for itself.

        ``why-not`` tries them, alone and together with others, and shows only those that it has verified by deciding
        again. If it raises, there are none.
        """
