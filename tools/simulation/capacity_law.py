"""The law ``no overcommit``: with overcommit protection, placements that no member reports yet count as taken.

A binding whose replicas are divided by capacity gets no replicas on a cluster beyond what is left there of the most CPUs
that the cluster has ever reported, after what the same process has placed there a moment before. That includes what it
had placed before a later write failed. Only placements that are divided by capacity count, so it does not matter which of
two was decided first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from karmada_scheduler.api.quantity import parse
from tests.fake_apiserver.objects import DUPLICATED
from tools.apiserver_model import Key, Write
from tools.manifests import targets_of
from tools.simulation.actions import STATIC
from tools.simulation.network import Sent

Object = Mapping[str, Any]

_SURE_SECONDS: Final = 15.0
"""A placement counts for so much less than it is assumed, because it was assumed before its write was sent."""
_WAITS_SECONDS: Final = 5.0
"""A response that takes longer may find that its request was given up."""
_UNDIVIDED: Final = (DUPLICATED, STATIC)


@dataclass(frozen=True, slots=True)
class _Placed:
    manifest: Object
    sent: float
    uid: str


class CapacityLaw:
    """Judges writes of clusters by earlier ones, in runs with the gate SchedulingOvercommitProtection."""

    def __init__(self, assumption_ttl: float, add: Callable[[str, str], None]) -> None:
        """Start without placements.

        Args:
            assumption_ttl: How long a placement is assumed, in seconds.
            add: Records a violation of an invariant, with a text.
        """
        self._ttl = assumption_ttl - _SURE_SECONDS
        self._add = add
        self._identity = ""
        self._placed: dict[Key, _Placed] = {}
        self._most: dict[str, int] = {}

    def on_cluster(self, write: Write) -> None:
        """Note a change of a cluster. One of its spec may let bindings move, which are then not certainly assumed."""
        before, after = (None if raw is None else orjson.loads(raw) for raw in (write.before, write.after))
        if after is not None:
            cpu = _milli(after["status"]["resourceSummary"]["allocatable"]["cpu"])
            self._most[write.key[1]] = max(cpu, self._most.get(write.key[1], 0))
        if before is None or after is None or _decisive(before) != _decisive(after):
            self._placed.clear()

    def on_restore(self) -> None:
        """Forget all placements."""
        self._placed.clear()

    def on_foreign_write(self, write: Write) -> None:
        """Forget a placement that is reported, or changes for another reason than more replicas."""
        found = self._placed.get(write.key)
        if found is None:
            return
        after = None if write.after is None else orjson.loads(write.after)
        if after is None or after["metadata"]["uid"] != found.uid or not _only_grows(found.manifest, after):
            del self._placed[write.key]

    def on_response(self, sent: Sent, at: float, manifest: Object) -> None:
        """Note a placement whose process knows that it is stored."""
        if at - sent.at <= _WAITS_SECONDS and _is_divided(manifest):
            self._of(sent.identity)
            metadata = manifest["metadata"]
            key = (metadata["namespace"], metadata["name"])
            self._placed[key] = _Placed(manifest, sent.at, metadata["uid"])

    def check(self, write: Write, sent: Sent) -> None:
        """Judge a write of clusters by a scheduler."""
        self._of(sent.identity)
        assert write.before is not None  # schedulers patch
        assert write.after is not None
        before, after = orjson.loads(write.before), orjson.loads(write.after)
        if not _is_divided(after) or not _cpu(after):
            return
        had = targets_of(before)
        for name, count in targets_of(after).items():
            gained = (count - had.get(name, 0)) * _cpu(after)
            taken = self._taken(name, write.key, sent.at)
            if gained > 0 and taken and gained + taken > self._most.get(name, 0):
                text = f"{write.key} gets {gained}m more CPUs on {name}, where {taken}m of {self._most.get(name)}m are placed"
                self._add("no overcommit", text)

    def _taken(self, cluster: str, but: Key, sent: float) -> int:
        return sum(
            targets_of(each.manifest).get(cluster, 0) * _cpu(each.manifest)
            for key, each in self._placed.items()
            if key != but and sent - self._ttl <= each.sent <= sent
        )

    def _of(self, identity: str) -> None:
        """A process knows nothing of what others have placed."""
        if identity != self._identity:
            self._placed.clear()
            self._identity = identity


def _decisive(cluster: Object) -> tuple[object, ...]:
    return cluster["spec"], cluster["metadata"].get("deletionTimestamp")


def _is_divided(manifest: Object) -> bool:
    """Return whether replicas of a binding, which takes capacity, are divided by capacity."""
    is_namespaced = manifest["kind"] == "ResourceBinding"
    return is_namespaced and manifest["spec"]["placement"].get("replicaScheduling") not in _UNDIVIDED


def _only_grows(before: Object, after: Object) -> bool:
    """Return whether a placement that is not reported has changed in its number of replicas only, which is not lower.

    A binding that no policy claims any more, as its labels say, is not the scheduler's, so nothing is assumed of it.
    """
    old, new = before["spec"], after["spec"]
    if before["metadata"].get("labels") != after["metadata"].get("labels"):
        return False
    is_reported = bool((after.get("status") or {}).get("aggregatedStatus"))
    if is_reported or {**old, "replicas": 0} != {**new, "replicas": 0}:
        return False
    return isinstance(new["replicas"], int) and bool(new["replicas"] >= old["replicas"])


def _cpu(manifest: Object) -> int:
    """Return the thousandths of a CPU that a replica needs."""
    request = (manifest["spec"].get("replicaRequirements") or {}).get("resourceRequest") or {}
    return _milli(request.get("cpu", "0"))


def _milli(quantity: str) -> int:
    """Return the thousandths of a quantity; many for one that cannot be read."""
    try:
        return parse(quantity).milli_value
    except ValueError:
        return 1 << 62
