"""Changes that would place a binding, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada_advisor.state.model import Target
from karmada_scheduler.structs import Struct


class ObjectShown(Struct, frozen=True):
    """A Cluster or binding; the namespace is "" for cluster-scoped ones."""

    kind: str
    namespace: str
    name: str


class RemedyEdit(Struct, frozen=True):
    """One change of one object.

    Attributes:
        side: The part of the system: trigger, policy, workload, cluster, competitor, peer.
        op: The kind of the change; stable.
        text: For people.
        instead: What a person does, if the patch only shows the effect of it; "" if the patch is what a person applies.
    """

    side: str
    op: str
    object: ObjectShown
    text: str
    instead: str = ""


class ObjectPatch(Struct, frozen=True):
    """An RFC 6902 patch of an object as it was read."""

    object: ObjectShown
    patch: tuple[Mapping[str, Any], ...]


class Remedy(Struct, frozen=True):
    """A change that places the binding, verified by deciding again; found by why-not.

    Attributes:
        side: The side of the first edit.
        subject: The object of the first edit, for people.
        change: What to change, in one line.
        result: The placement afterwards.
        edits: The edits, in the order in which they are applied; none of them can be left out.
        apply: The patches, in the same order, without those of taints that Karmada's controllers would set again.
        moves: Replicas that stop in one cluster.
        rank: Its place, from 1: less harm first, then less effort.
        harm: What speaks against it: none, narrows, widens, unchecked.
        caution: The same in sentences; "" if nothing does.
    """

    side: str
    subject: str
    change: str
    result: tuple[Target, ...]
    edits: tuple[RemedyEdit, ...] = ()
    apply: tuple[ObjectPatch, ...] = ()
    moves: int = 0
    rank: int = 1
    harm: str = "none"
    caution: str = ""


class RemedySearch(Struct, frozen=True):
    """How far the search for remedies went.

    Attributes:
        runs: Sets of changes that were tried.
        seconds: Time that it took.
        complete: Whether nothing was left to try.
        ended_by: The bound that ended it: ``timeout``, ``maxRuns``, or "".
        timeout_seconds: The bound of its time.
    """

    runs: int
    seconds: float
    complete: bool
    ended_by: str
    timeout_seconds: float
