"""States of bindings, filters, shares of clusters, and rows of decisions."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.process_answers import record_of, state_of
from karmada_advisor.state.model import StateName
from karmada_advisor.state.reading import Facts
from karmada_advisor.web import pages
from karmada_advisor.web.decisions import of_objects, of_records
from karmada_advisor.web.fleet import ClusterState, cluster_shown, clusters_of, sorted_clusters
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.indexed_binding import Filter, IndexedBinding, indexed
from karmada_advisor.web.pages import Pages, sentence
from karmada_advisor.web.state import PageContents, Share, row_of
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster

FAILED = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "nothing fits"}
DONE = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "scheduled"}


def _one() -> BindingBuilder:
    return binding("web").replicas(3, cpu="1")


def _indexed(made: BindingBuilder) -> IndexedBinding:
    return indexed(made.build(), made.manifest(), Facts())


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (_one(), StateName.NOT_DECIDED_YET),
        (_one().condition(**FAILED), StateName.NOT_PLACED),
        (_one().on(m1=3).condition(**FAILED), StateName.STUCK),
        (_one().on(m1=3).condition(**DONE).observed_generation(1), StateName.PLACED),
        (_one().on(m1=3).condition(**DONE), StateName.OUT_OF_DATE),
        (_one().on(m1=3), StateName.PLACED),
        (_one().condition(**DONE).observed_generation(1), StateName.NOT_PLACED),
        (_one().on(m1=3).suspended(), StateName.HELD),
        (_one().placement(None), StateName.NO_PLACEMENT),
        (_one().on(m1=3).deleting(), StateName.BEING_DELETED),
    ],
    ids=lambda value: value.value if isinstance(value, StateName) else "",
)
def test_the_state_is_what_the_object_shows(made: BindingBuilder, state: StateName) -> None:
    assert row_of(made.build()).state.name is state


def test_rows_are_filtered_by_every_property() -> None:
    made = (
        _one()
        .on(m1=3)
        .condition(**DONE)
        .observed_generation(1)
        .annotation("propagationpolicy.karmada.io/name", "gold")
    )
    row = _indexed(made.annotation("propagationpolicy.karmada.io/namespace", "shop"))
    for wanted in ({"text": "WEB"}, {"namespace": "default"}, {"policy": "gold"}, {"policy": "shop/gold"}):
        assert Filter(**wanted).holds(row), wanted
    for wanted in ({"state": "placed"}, {"reason": "Success"}, {"cluster": "m1"}):
        assert Filter(**wanted).holds(row), wanted
    for wanted in ({"text": "x"}, {"namespace": "x"}, {"policy": "x"}, {"state": "stuck"}, {"cluster": "m2"}):
        assert not Filter(**wanted).holds(row), wanted


def test_the_worst_bindings_come_first() -> None:
    made = _one().on(m1=3), binding("lost").replicas(3).condition(**FAILED)
    index = BindingIndex(map(_indexed, made))
    assert [each.state for each in index.rows] == [StateName.NOT_PLACED, StateName.PLACED]


def test_replicas_that_are_applied_and_ready_are_parts_of_what_is_wanted() -> None:
    made = _one().on(m1=2, m2=1).observed_generation(1).condition(**DONE)
    assert (row_of(made.build()).running, row_of(made.build()).ready) == (None, None)
    manifest = made.manifest()
    manifest["status"]["aggregatedStatus"] = [
        {"clusterName": "m1", "applied": True, "status": {"replicas": 2, "readyReplicas": 2}},
        {"clusterName": "m2", "applied": False, "appliedMessage": "refused"},
    ]
    row = row_of(made.build(), manifest)
    assert (row.running, row.ready) == (Share(1, 2), Share(2, 3))
    assert (Share(2, 3).is_whole, Share(3, 3).is_whole) == (False, True)
    found = row.on("m2")
    assert found is not None
    assert (found.wanted, found.reason) == (1, "NotApplied")


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (cluster("m").condition("Ready", "False").taint("a:NoSchedule"), ClusterState.NOT_READY),
        (cluster("m").condition("Ready", "Unknown"), ClusterState.NOT_READY),
        (cluster("m").condition("Ready").deleting().taint("a:NoSchedule"), ClusterState.BEING_DELETED),
        (cluster("m").condition("Ready").taint("a:NoSchedule"), ClusterState.TAINTED),
        (cluster("m").condition("Ready"), ClusterState.READY),
    ],
)
def test_the_state_of_a_cluster_is_the_worst_one(made: ClusterBuilder, state: ClusterState) -> None:
    built = made.build()
    assert cluster_shown(PageContents(Fleet("", clusters=[built])), built).state is state


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no cluster fits", "No cluster fits"),
        ("clusterNames: m1 does not exist", "clusterNames: m1 does not exist"),
        ("spec.suspension is true", "spec.suspension is true"),
        ("m1 has none", "m1 has none"),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_letter_unless_with_a_name(text: str, shown: str) -> None:
    assert sentence(text) == shown


def test_decisions_of_objects_are_those_that_were_scheduled_the_newest_first() -> None:
    def at(name: str, moment: str) -> BindingBuilder:
        return binding(name).replicas(1).on(m1=1).condition(**DONE).last_scheduled(moment)

    made = at("a", "2026-11-22T10:00:00Z"), at("b", "2026-11-22T11:00:00Z"), _one()
    index = BindingIndex(map(_indexed, made))
    assert [each.name for each in index.newest(1)] == ["b-deployment"]
    assert [(each.name, each.is_good) for each in of_objects(index.newest(9))] == [
        ("b-deployment", True),
        ("a-deployment", True),
    ]


def test_the_share_of_a_cluster_is_its_dominant_one() -> None:
    made = cluster("m1").allocatable({"cpu": "10", "memory": "100Gi", "pods": 100})
    made.allocated({"cpu": "2", "memory": "50Gi", "pods": 10}).allocating({"memory": "25Gi"})
    found = cluster_shown(PageContents(Fleet("", clusters=[made.build()])), made.build())
    assert (found.share, found.dominant, found.level) == (0.75, "memory", 7)
    assert [each.free for each in found.resources] == ["8", "25Gi", "90"]


def test_a_cluster_without_a_summary_has_no_share() -> None:
    made = cluster("m1").without_summary().build()
    found = cluster_shown(PageContents(Fleet("", clusters=[made])), made)
    assert (found.share, found.level) == (None, -1)


def test_clusters_count_what_is_on_them_and_are_sorted() -> None:
    made = [cluster("m1").build(), cluster("m2").build()]
    contents = PageContents(Fleet("", clusters=made, bindings=[binding("a").replicas(5).on(m2=5).build()]))
    rows = clusters_of(contents)
    assert [(each.replicas, each.bindings) for each in rows] == [(0, 0), (5, 1)]
    assert [each.name for each in sorted_clusters(rows, "replicas")] == ["m2", "m1"]
    assert [each.name for each in sorted_clusters(rows, "name")] == ["m1", "m2"]


def test_rows_are_kept_until_their_binding_changes_and_not_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, contents, shown = _one(), PageContents(Fleet("")), Pages()
    [before] = shown.binding_rows(contents, [_indexed(made)])
    assert shown.binding_rows(contents, [_indexed(made)])[0] is before
    [here] = shown.binding_rows(contents, [_indexed(made)], here="m1")
    assert here != before

    [after] = shown.binding_rows(contents, [_indexed(made.on(m1=3).condition(**DONE))])
    assert ("m1" in before, "m1" in after) == (False, True)

    monkeypatch.setattr(pages, "KEPT_ROWS", 2)
    shown.binding_rows(contents, [_indexed(binding(name)) for name in ("a", "b", "c")])
    assert len(contents.rendered_rows) == 2


RECORD: dict[str, Any] = {
    "key": "shop/web",
    "kind": "ResourceBinding",
    "at": "2026-11-22T14:02:11.482Z",
    "tookMicros": 812,
    "trigger": {"event": "BindingAdd", "class": "First"},
    "attempts": [
        {
            "stages": {"all": 8, "filtered": 5, "selected": 3, "placed": 3},
            "refused": [{"by": "X", "count": 3}],
        }
    ],
    "targets": {"m1": 2},
    "error": None,
    "ending": "written",
}


def test_records_become_rows_the_newest_first() -> None:
    failed = RECORD | {"targets": None, "error": {"reason": "NoClusterFit", "message": "nothing"}}
    rows = of_records([record_of(RECORD), record_of(failed)])
    assert [(each.reason, each.is_good, each.placement is None) for each in rows] == [
        ("NoClusterFit", False, True),
        ("Success", True, False),
    ]
    assert (rows[1].stages["filtered"], rows[1].refused_by, rows[1].micros) == (5, {"X": 3}, 812)


def test_the_state_of_a_process_needs_no_field() -> None:
    assert state_of({}).due == 0
    assert state_of({"queue": {"due": 3}, "leading": True}).due == 3
