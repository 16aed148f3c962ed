"""Bugs around plugins, extenders, estimators and unreadable objects; see ``planted_bugs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core import schedule
from karmada_scheduler.estimator.shared_requests import SharedRequests
from karmada_scheduler.extenders.http_extender import HttpExtender
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.extender import ExtenderError, ExtenderFilterResult
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.binding_points import BindingPoints
from karmada_scheduler.framework.runtime.filtering import FilterRunner
from karmada_scheduler.framework.scheduling_points import FilterContext
from tools.simulation.planted_bugs import Patches, PlantedBug


def _refused_reserve_is_kept() -> Patches:
    original, unreserve = BindingPoints.reserve, BindingPoints.unreserve
    refused: list[Any] = []

    def reserve(self: BindingPoints, context: Any) -> None:
        refused.append(context)
        try:
            original(self, context)
        finally:
            refused.remove(context)

    def without_refused(self: BindingPoints, context: Any) -> None:
        if context not in refused:
            unreserve(self, context)

    yield BindingPoints, "reserve", reserve
    yield BindingPoints, "unreserve", without_refused


def _failed_extender_refuses_nothing() -> Patches:
    original = HttpExtender.filter

    async def filter_all(
        self: HttpExtender, cycle: Cycle, clusters: Sequence[Cluster]
    ) -> ExtenderFilterResult:
        try:
            return await original(self, cycle, clusters)
        except ExtenderError:
            return ExtenderFilterResult(frozenset(each.name for each in clusters), {})

    yield HttpExtender, "filter", filter_all


def _failed_filter_refuses() -> Patches:
    original = FilterRunner.__call__

    def call(self: FilterRunner, context: FilterContext) -> Result:
        try:
            return original(self, context)
        except Exception as error:  # noqa: BLE001
            return Result.unschedulable(str(type(error)))

    yield FilterRunner, "__call__", call


async def _probe_nothing(*_: Any) -> None:
    return


def _unresponsive_estimator_is_not_probed() -> Patches:
    yield SharedRequests, "_probe", _probe_nothing


def _unreadable_cluster_counts_as_gone() -> Patches:
    yield schedule, "_unknown_cluster", lambda *_: None


BREADTH_BUGS: Final = tuple(
    PlantedBug(name, frozenset(invariants), patches, profiles)
    for name, invariants, patches, profiles in (
        ("a refused Reserve stays reserved", ("balanced",), _refused_reserve_is_kept, ("plugins",)),
        ("a failed filter refuses the cluster", ("no harm",), _failed_filter_refuses, ("plugins",)),
        (
            "a failed extender refuses no cluster",
            ("no harm", "converged"),
            _failed_extender_refuses_nothing,
            ("extenders",),
        ),
        (
            "an unresponsive estimator is not asked again",
            ("balanced",),
            _unresponsive_estimator_is_not_probed,
            ("estimators",),
        ),
        (
            "an unreadable cluster counts as gone",
            ("no harm",),
            _unreadable_cluster_counts_as_gone,
            ("kinds", "plugins"),
        ),
    )
)
"""Bugs that the profiles of ``generate_breadth`` find."""
