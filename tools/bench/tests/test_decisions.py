"""The benchmark measures what its report describes: fleets, bindings, medians, comparisons."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from karmada_scheduler.testing import framework
from tools.bench.cores import Batch, Bill, Go, Ours, OwnRule
from tools.bench.decisions import MIXED, Row, Scenario, markdown, scenarios
from tools.bench.fleet import PLACEMENTS, SHAPES, Bindings, Fleet
from tools.oracle import program

PLACES = tuple(PLACEMENTS)


def bill(cpu: float, *results: list[tuple[str, int]] | None) -> Bill:
    return Bill(cpu, 2 * cpu, results)


def test_a_fleet_and_its_bindings_are_always_the_same() -> None:
    one, other = Fleet(5, models=True), Fleet(5, models=True)
    assert one.clusters == other.clusters
    assert one.reports(200) == other.reports(200)
    assert one.clusters == other.clusters
    assert Bindings(PLACES).draw() == Bindings(PLACES).draw()


@pytest.mark.parametrize(("size", "reports"), [(100, 1), (1000, 10), (5000, 50)])
def test_clusters_report_every_ten_seconds_while_a_hundred_decisions_are_taken_each(
    size: int, reports: int
) -> None:
    per_decision = Fleet(size).reports(10)
    assert sum(map(len, per_decision)) == reports
    assert max(map(len, per_decision)) == -(-reports // 10)


def test_a_changed_cluster_has_another_capacity_and_a_newer_version() -> None:
    fleet = Fleet(6)
    before = dict(fleet.clusters)
    (after,) = fleet.changes(1)
    old = before[after["metadata"]["name"]]
    assert int(after["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    assert after["status"]["resourceSummary"] != old["status"]["resourceSummary"]
    assert after["spec"] == old["spec"]


def test_a_third_of_the_clusters_has_models() -> None:
    modelled = [each for each in Fleet(30, models=True).clusters.values() if "resourceModels" in each["spec"]]
    assert len(modelled) == 10
    assert not any("resourceModels" in each["spec"] for each in Fleet(30).clusters.values())


def test_bindings_share_requests_or_have_one_of_their_own() -> None:
    for unlike, expected in ((False, SHAPES), (True, 500)):
        bindings = Bindings(PLACES, unlike=unlike)
        requests = [bindings.draw()["spec"]["replicaRequirements"]["resourceRequest"] for _ in range(500)]
        assert len({tuple(request.items()) for request in requests}) == expected


def test_a_scaled_binding_keeps_its_clusters_and_wants_other_replicas() -> None:
    bindings = Bindings(PLACES)
    spec = bindings.scaled(lambda manifest: [("m1", manifest["spec"]["replicas"])])["spec"]
    assert spec["clusters"][0]["name"] == "m1"
    assert spec["clusters"][0]["replicas"] != spec["replicas"]


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    rounds = [(bill(8.0, [], []), bill(mine, [], [], [], [])) for mine in (1.0, 4.0, 2.0)]
    row = Row.of(5, False, "x", rounds)
    assert (row.ratio, row.least, row.most) == (0.125, 0.0625, 0.25)
    assert (row.go_cpu_ms, row.ours_cpu_ms) == (4000, 500)
    assert (row.go_wall_ms, row.decisions, row.compared) == (8000, 12, 6)


def test_decisions_of_both_cores_are_compared() -> None:
    go, ours = bill(1.0, [("m1", 1)], None), bill(1.0, [("m1", 2)], None, [("m1", 1)])
    row = Row.of(5, False, "x", [(go, ours)])
    assert (row.compared, row.different) == (2, 1)


def test_each_placement_is_measured_for_new_and_scaled_bindings_on_still_and_changing_fleets() -> None:
    labels = [scenario.label for scenario in scenarios(models=False)]
    assert len(set(labels)) == len(labels)
    for placement, bindings, fleet in itertools.product(PLACES, ("new", "scaled"), ("still", "moves")):
        assert f"{placement}, {bindings}, {fleet}" in labels
    assert Scenario(MIXED).label in labels
    assert "by region, new, first ever" in labels
    assert "by region, new, moves, own rule" in labels


def test_a_page_has_a_line_per_scenario_and_a_column_per_size() -> None:
    rows = [
        Row.of(size, False, name, [(bill(2.0, []), bill(0.1, []))]) for size in (10, 2000) for name in "xy"
    ]
    assert markdown(rows).splitlines() == [
        "| placement, bindings, fleet | 10 clusters | 2,000 clusters |",
        "|---|---|---|",
        "| x | 2000.0 → 100.00: **1/20** | 2000.0 → 100.00: **1/20** |",
        "| y | 2000.0 → 100.00: **1/20** | 2000.0 → 100.00: **1/20** |",
    ]


@pytest.fixture
def both() -> Iterator[tuple[Go, Ours, Fleet]]:
    fleet = Fleet(9, models=True)
    clusters = list(fleet.clusters.values())
    with Go(program.ensure()) as go:
        go.load(clusters)
        ours = Ours(clusters)
        yield go, ours, fleet
        ours.close()


@pytest.mark.e2e  # runs the real Go core
def test_both_cores_receive_cluster_reports_and_decide_alike(both: tuple[Go, Ours, Fleet]) -> None:
    go, ours, fleet = both
    bindings = Bindings(PLACES)
    batch = Batch([bindings.draw() for _ in range(12)], [fleet.changes(2) for _ in range(12)])
    theirs = go.run(batch, seconds=0)
    assert theirs.decisions == 12
    assert theirs.cpu > 0
    assert list(theirs.results) == list(ours.run(batch).results)


@pytest.mark.e2e
def test_both_cores_decide_alike_with_a_rule_of_ones_own() -> None:
    clusters = list(Fleet(40).clusters.values())
    bindings = Bindings(PLACES)
    batch = Batch([bindings.draw() for _ in range(24)])
    with Go(program.ensure()) as go:
        results = []
        for own_rule in (False, True):
            go.load(clusters, own_rule=own_rule)
            ours = Ours(clusters, framework(OwnRule) if own_rule else None)
            results.append(list(ours.run(batch).results))
            ours.close()
            assert list(go.run(batch, seconds=0).results) == results[-1]
    without, with_rule = results
    assert without != with_rule


@pytest.mark.e2e
def test_reports_after_the_time_is_over_are_not_lost(both: tuple[Go, Ours, Fleet]) -> None:
    go, ours, fleet = both
    bindings = Bindings(PLACES)
    batch = Batch([bindings.draw() for _ in range(12)], [fleet.changes(3) for _ in range(12)])
    assert go.run(batch, seconds=1e-9).decisions == 1
    ours.run(batch)
    again = Batch([bindings.draw() for _ in range(6)])
    assert list(go.run(again, seconds=0).results) == list(ours.run(again).results)
