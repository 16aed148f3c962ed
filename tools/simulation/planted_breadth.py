"""Bugs around plugins, extenders, estimators, workloads, unreadable objects, records and the page; see ``planted_bugs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from karmada_advisor.cli.web.watched import WatchedFleet
from karmada_advisor.cli.web.watching import Watcher
from karmada_advisor.web.index import BindingIndex
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.core import schedule
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.extenders.http_extender import HttpExtender
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.extender import ExtenderError, ExtenderFilterResult
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.binding_points import BindingPoints
from karmada_scheduler.framework.runtime.filtering import FilterRunner
from karmada_scheduler.framework.scheduling_points import FilterContext
from karmada_scheduler.informer.workloads.metadata_store import MetadataStore
from karmada_scheduler.records.record_store import RecordStore
from karmada_scheduler.records.recorder import Recorder
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


async def _do_nothing(*_: Any) -> None:
    return


def _unresponsive_estimator_is_not_probed() -> Patches:
    yield AccurateEstimator, "_probe", _do_nothing


def _unreadable_cluster_counts_as_gone() -> Patches:
    yield schedule, "_unknown_cluster", lambda *_: None


def _page_keeps_what_a_list_lacks() -> Patches:
    yield WatchedFleet, "keep_only", lambda *_: None


async def _need_not_list(*_: Any) -> bool:
    return False


def _page_does_not_see_a_restore() -> Patches:
    yield Watcher, "must_relist", _need_not_list


def _page_does_not_count() -> Patches:
    yield Watcher, "_compare_counts", _do_nothing


def _index_keeps_the_first_row() -> Patches:
    original = BindingIndex.put

    def put(self: BindingIndex, row: Any) -> None:
        if row.key not in self._by_key:
            original(self, row)

    yield BindingIndex, "put", put


def _state_of_a_cluster_changes_no_rows() -> Patches:
    yield WatchedFleet, "_index_again_on", lambda *_: None


def _each_record_repeats_the_last() -> Patches:
    yield Recorder, "_is_repetition", lambda self, entry: self._store.get(entry.binding.key) is not None


def _changes_of_workloads_are_dropped() -> Patches:
    original = MetadataStore.put

    def put(self: MetadataStore, found: Workload) -> None:
        if not isinstance(self._states.get((found.namespace, found.name)), Workload):
            original(self, found)

    yield MetadataStore, "put", put


def _deleted_workloads_stay() -> Patches:
    yield MetadataStore, "deleted", lambda *_: None


def _workloads_that_come_are_dropped() -> Patches:
    original = MetadataStore.put

    def put(self: MetadataStore, found: Workload) -> None:
        if isinstance(self._states.get((found.namespace, found.name)), Workload):
            original(self, found)

    yield MetadataStore, "put", put


def _first_record_stays() -> Patches:
    original = RecordStore.put

    def put(self: RecordStore, key: Any, record: Any, *, reserved: int = 0) -> int:
        return 0 if self.get(key) is not None else original(self, key, record, reserved=reserved)

    yield RecordStore, "put", put


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
        *(
            (name, (invariant,), patches, ("readers",))
            for name, invariant, patches in (
                ("the page keeps what a list lacks", "shown", _page_keeps_what_a_list_lacks),
                ("the page does not see a restore", "shown", _page_does_not_see_a_restore),
                ("the page does not count", "shown", _page_does_not_count),
                ("a row of the page stays as it was", "shown", _index_keeps_the_first_row),
                (
                    "rows of the page do not follow their clusters",
                    "shown",
                    _state_of_a_cluster_changes_no_rows,
                ),
                ("each record repeats the last one", "recorded", _each_record_repeats_the_last),
                ("the first record of a binding stays", "recorded", _first_record_stays),
            )
        ),
        ("changes of workloads are dropped", ("cached",), _changes_of_workloads_are_dropped, ("workloads",)),
        ("deleted workloads stay", ("cached",), _deleted_workloads_stay, ("workloads",)),
        ("workloads that come are dropped", ("cached",), _workloads_that_come_are_dropped, ("workloads",)),
    )
)
"""Bugs that the profiles of ``generate_breadth`` find."""
