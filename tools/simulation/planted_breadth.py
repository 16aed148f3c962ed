"""Bugs around plugins, extenders, estimators, workloads, unreadable objects, records and the page; see ``planted_bugs``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.watched import WatchedFleet
from karmada_advisor.web.watching import Watcher
from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.extenders.http_extender import HttpExtender
from karmada_pyscheduler.informer.workloads.metadata_store import MetadataStore
from karmada_pyscheduler.records.recorder import Recorder, RecordStore
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.core import schedule
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime import filtering, framework, keyed_results
from karmada_scheduler.framework.runtime.binding_points import BindingPoints
from karmada_scheduler.framework.runtime.extenders import ExtenderError, ExtenderFilterResult
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

BREADTH_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, BREADTH_BUGS)


@_bug("a refused Reserve stays reserved", "balanced", found_by=("1", "plugins"))
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


@_bug("a failed extender refuses no cluster", "converged", "no harm", found_by=("2", "extenders"))
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


@_bug("a failed filter refuses the cluster", "no harm", found_by=("56", "plugins"))
def _failed_filter_refuses() -> Patches:
    original = filtering.run_filters

    def run(filters: Any, caller: Any, cycle: Cycle, clusters: Sequence[Cluster], *skipped: Any) -> Any:
        try:
            return original(filters, caller, cycle, clusters, *skipped)
        except Exception as error:  # noqa: BLE001
            return [], {cluster.name: Result.unschedulable(str(type(error))) for cluster in clusters}

    yield framework, "run_filters", run
    yield keyed_results, "run_filters", run


async def _do_nothing(*_: Any) -> None:
    return


@_bug("an unresponsive estimator is not asked again", "balanced", found_by=("45", "estimators"))
def _unresponsive_estimator_is_not_probed() -> Patches:
    yield AccurateEstimator, "_probe", _do_nothing


@_bug(
    "an unreadable cluster counts as gone", "no harm", found_by=("1", "kinds"), profiles=("kinds", "plugins")
)
def _unreadable_cluster_counts_as_gone() -> Patches:
    yield schedule, "_unknown_cluster", lambda *_: None


@_bug("the page keeps what a list lacks", "shown", found_by=("15", "readers"))
def _page_keeps_what_a_list_lacks() -> Patches:
    yield WatchedFleet, "keep_only", lambda *_: None


async def _need_not_list(*_: Any) -> bool:
    return False


@_bug("the page does not see a restore", "shown", found_by=("55", "readers"))
def _page_does_not_see_a_restore() -> Patches:
    yield Watcher, "must_relist", _need_not_list


@_bug("the page does not count", "shown", found_by=("55", "readers"))
def _page_does_not_count() -> Patches:
    yield Watcher, "_compare_counts", _do_nothing


@_bug("a row of the page stays as it was", "shown", found_by=("1", "readers"))
def _index_keeps_the_first_row() -> Patches:
    original = BindingIndex.put

    def put(self: BindingIndex, row: Any) -> None:
        if row.key not in self.by_key:
            original(self, row)

    yield BindingIndex, "put", put


@_bug("rows of the page do not follow their clusters", "shown", found_by=("3", "readers"))
def _state_of_a_cluster_changes_no_rows() -> Patches:
    yield WatchedFleet, "_index_again_on", lambda *_: None


@_bug("each record repeats the last one", "recorded", found_by=("2", "readers"))
def _each_record_repeats_the_last() -> Patches:
    yield Recorder, "_is_repetition", lambda self, entry: self._store.get(entry.binding.key) is not None


@_bug("changes of workloads are dropped", "cached", found_by=("1", "workloads"))
def _changes_of_workloads_are_dropped() -> Patches:
    original = MetadataStore.put

    def put(self: MetadataStore, found: Workload) -> None:
        if not isinstance(self._states.get((found.namespace, found.name)), Workload):
            original(self, found)

    yield MetadataStore, "put", put


@_bug("deleted workloads stay", "cached", found_by=("2", "workloads"))
def _deleted_workloads_stay() -> Patches:
    yield MetadataStore, "deleted", lambda *_: None


@_bug("workloads that come are dropped", "cached", found_by=("3", "workloads"))
def _workloads_that_come_are_dropped() -> Patches:
    original = MetadataStore.put

    def put(self: MetadataStore, found: Workload) -> None:
        if isinstance(self._states.get((found.namespace, found.name)), Workload):
            original(self, found)

    yield MetadataStore, "put", put


@_bug("the first record of a binding stays", "recorded", found_by=("2", "readers"))
def _first_record_stays() -> Patches:
    original = RecordStore.put

    def put(self: RecordStore, key: Any, record: Any) -> int:
        return 0 if self.get(key) is not None else original(self, key, record)

    yield RecordStore, "put", put
