"""Conditions that a former leader has left, and that its successor does not write, as karmada-scheduler.

A leader that ends between its two patches leaves a binding without replicas, which fitted no cluster, without a condition
(docs/decisions/0015-results-before-statuses.md). Its last failure may arrive after its successor found that there is
nothing to write. A status enqueues nothing. In both cases the placement and the observed generation are right.

A binding that never fitted has no observed generation. If a successor knows the condition that it fits nowhere, and decides
so again, it writes nothing either, and another failure of a former leader may arrive later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core.condition import NO_CLUSTER_FIT
from tools.apiserver_model import Write

_Id = tuple[BindingKey, str]
"""A binding and its uid."""


class _LastWrite(NamedTuple):
    """The last write of a binding that changed its clusters, its applied placement or its condition.

    The result of a new binding that fits nowhere is its applied placement alone.

    Attributes:
        identity: The process that wrote it.
        subresource: ``status`` or "".
    """

    identity: str
    subresource: str


class _Known(NamedTuple):
    """What a process knew of a binding when it got the Lease."""

    condition: Mapping[str, Any] | None
    generation: int


class FormerLeaders:
    """The last writers of bindings, and the conditions that each leader had in its cache when it got the Lease."""

    def __init__(self) -> None:
        """Start without writes."""
        self._writes: dict[_Id, _LastWrite] = {}
        self._known: dict[str, Mapping[_Id, _Known]] = {}

    def on_write(self, write: Write, identity: str) -> None:
        """Note a write of a scheduler to a binding."""
        if write.before is None or write.after is None:
            return
        try:
            before, after = (Binding.from_manifest(orjson.loads(raw)) for raw in (write.before, write.after))
        except ManifestError:
            return
        if _result(before) != _result(after) or _condition(before) != _condition(after):
            self._writes[_id(after)] = _LastWrite(identity, write.subresource)

    def on_lead(self, identity: str, bindings: Iterable[Binding]) -> None:
        """Note what a process had in its cache when it got the Lease for the first time."""
        if identity not in self._known:
            self._known[identity] = {
                _id(each): _Known(_condition(each), each.generation) for each in bindings
            }

    def is_left(self, binding: Binding, leader: str) -> bool:
        """Return whether the condition of a binding, or that it has none, is left by a process before ``leader``."""
        last, known = self._writes.get(_id(binding)), self._known.get(leader)
        if last is None or known is None or last.identity == leader:
            return False
        is_observed = binding.status.scheduler_observed_generation == binding.generation
        condition, before = _condition(binding), known.get(_id(binding))
        if condition is None:
            is_empty = not binding.spec.clusters and not binding.spec.replicas
            return is_observed and not last.subresource and is_empty
        is_late = before is None or before.condition != condition
        if not is_late or last.subresource != "status" or condition.get("status") != "False":
            return False
        return is_observed or self.knew_it_fits_nowhere(binding, leader)

    def knew_it_fits_nowhere(self, binding: Binding, leader: str) -> bool:
        """Return whether ``leader`` got the Lease with the condition that this generation fits nowhere."""
        known = self._known.get(leader, {}).get(_id(binding))
        if known is None or known.condition is None:
            return False
        return known.condition.get("reason") == NO_CLUSTER_FIT and known.generation == binding.generation


def _id(binding: Binding) -> _Id:
    return binding.key, binding.uid


def _result(binding: Binding) -> tuple[object, ...]:
    return binding.spec.clusters, binding.applied_placement_json


def _condition(binding: Binding) -> Mapping[str, Any] | None:
    return binding.status.condition(SCHEDULED_CONDITION)
