"""The benchmark's arithmetic; it is never timed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tools.bench import page, plane, plane_meters, report, scenarios
from tools.bench.bare_client import at_a_rate, at_once
from tools.bench.plane_observer import Stopwatch
from tools.bench.plane_run import latencies
from tools.bench.scenarios import BARE, DEFAULT, LIFTED, OURS
from tools.report import picture


def test_a_percentile_is_a_value_that_occurred() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [plane_meters.percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert plane_meters.percentile([7.0], 0.5) == 7
    assert math.isnan(plane_meters.percentile([], 0.5))


METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",group="work.karmada.io",resource="resourcebindings",scope="resource",subresource="",verb="PATCH",version="v1alpha2"} 2000
apiserver_request_total{code="409",component="apiserver",group="work.karmada.io",resource="resourcebindings",scope="resource",subresource="",verb="PATCH",version="v1alpha2"} 3
apiserver_request_total{code="200",component="apiserver",group="work.karmada.io",resource="resourcebindings",scope="resource",subresource="status",verb="PATCH",version="v1alpha2"} 2001
apiserver_request_total{code="201",component="apiserver",group="work.karmada.io",resource="resourcebindings",scope="resource",subresource="",verb="POST",version="v1alpha2"} 1e+06
apiserver_request_total{code="201",component="apiserver",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",group="",resource="pods",scope="resource",subresource="",verb="PATCH",version="v1"} 9
apiserver_request_duration_seconds_sum{resource="events",subresource="",verb="POST"} 5
"""


def test_writes_are_counted_by_kind_of_object_without_creations() -> None:
    counts = plane_meters.counted_requests(METRICS)
    assert counts["PATCH resourcebindings/status 200"] == 2001
    assert counts["POST resourcebindings 201"] == 1_000_000
    assert "PATCH pods 200" not in counts
    assert plane_meters.writes(counts) == {
        "resourcebindings": 2003,
        "resourcebindings/status": 2001,
        "events": 5,
        "leases": 0,
    }


def test_the_cpu_and_memory_of_children_count() -> None:
    work = "sum(range(3_000_000)); b = bytearray(30 << 20)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{work}']); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert plane_meters.cpu_seconds(process.pid) > 0
        assert 1 < plane_meters.peak_mib(process.pid) < 30  # the child has ended
        process.communicate("\n")


def _shown(name: str, *clusters: str, generation: int = 1, observed: int = 0) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "generation": generation},
        "spec": {"clusters": [{"name": cluster} for cluster in clusters]},
        "status": {"schedulerObservedGeneration": observed},
    }


def test_the_stopwatch_keeps_first_times_and_ignores_the_warm_up() -> None:
    stopwatch = Stopwatch(2)
    reported = [
        stopwatch.note(_shown("warm-0", "m1"), 0.5),
        stopwatch.note(_shown("work-0"), 1.0),
        stopwatch.note(_shown("work-0", "m1", "m2", generation=2), 2.0),
        stopwatch.note(_shown("work-0", "m1", "m2", generation=2, observed=2), 2.5),
        stopwatch.note(_shown("work-1", "m1"), 3.0),
    ]
    assert reported == [None, None, "first", None, "all"]
    assert stopwatch.results() == {
        "seen": {"work-0": 1.0, "work-1": 3.0},
        "placed": {"work-0": 2.0, "work-1": 3.0},
        "settled": {"work-0": 2.5},
        "targets": 1.5,
    }


def test_a_binding_that_was_never_placed_counts_with_the_time_it_waited() -> None:
    created = {"work-0": [1.0, 1.01], "work-1": [2.0, 2.01]}
    found = {"seen": {"work-0": 1.005, "work-1": 2.005}, "placed": {"work-0": 1.03}}
    result = latencies(created, found, 9.0)
    assert result["answered"]["p50"] == pytest.approx(20)
    assert result["sent"]["p50"] == pytest.approx(30)
    assert result["seen"]["max"] == pytest.approx(6995)


async def test_a_stream_is_paced_by_the_clock_and_not_by_the_answers() -> None:
    now, begun = [0.0], []

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    async def handle(number: int) -> None:
        begun.append(number)

    late = await at_a_rate(5, 4, handle, clock=lambda: now[0], sleep=sleep)
    assert now == [1.0]
    assert begun == [0, 1, 2, 3, 4]
    assert late == 0


async def test_every_number_is_handled_once_by_as_many_workers_as_there_are() -> None:
    handled = []

    async def handle(number: int) -> None:
        handled.append(number)

    await at_once(10, 3, handle)
    assert sorted(handled) == list(range(10))


def test_clusters_and_bindings_are_spread_over_regions_and_requests() -> None:
    members = scenarios.fleet(100, 900)
    assert members[0].name == "m100"
    assert len({member.region for member in members}) == scenarios.REGIONS
    requests = {
        json.dumps(scenarios.binding("space", "work", number, "dynamic", "me")["spec"]["replicaRequirements"])
        for number in range(2000)
    }
    assert len(requests) == scenarios.REQUESTS


@pytest.mark.parametrize("placement", sorted(scenarios.PLACEMENTS))
def test_the_bare_client_writes_different_clusters_that_exist(placement: str) -> None:
    targets = scenarios.result_patch(1999, placement, 100)["spec"]["clusters"]
    names = {target["name"] for target in targets}
    assert len(names) == len(targets)
    assert names <= {member.name for member in scenarios.fleet(0, 100)}


def test_compared_schedulers_are_measured_together_and_the_limited_one_with_fewer_bindings() -> None:
    arguments = plane.parse(["--rates", "20", "--stream-seconds", "30", "--in-flight", "16", "32"])
    groups = plane.cases(arguments, 100)
    assert [(group[0].placement, group[0].rate) for group in groups] == [
        ("dynamic", None),
        ("duplicated", None),
        ("region", None),
        ("dynamic", 20.0),
    ]
    assert [(case.scheduler, case.bindings, case.in_flight) for case in groups[0]] == [
        (BARE, 2000, 16),
        (BARE, 2000, 32),
        (DEFAULT, 300, 16),
        (LIFTED, 2000, 16),
        (OURS, 2000, 16),
    ]
    assert DEFAULT not in {case.scheduler for case in groups[1]}
    assert {case.bindings for case in groups[3]} == {600}


def _entry(scheduler: str, rate: float, *, stream: float | None = None, cpu: float = 4.0) -> dict[str, Any]:
    case = {"scheduler": scheduler, "clusters": 100, "placement": "dynamic", "bindings": 100,
            "rate": stream, "in_flight": 32, "window": 60.0}  # fmt: skip
    result = {
        "load": 0.5, "idle_cores": 0.01, "placed": 100, "unsettled": 0, "rate": rate, "status_rate": rate / 2,
        "first_seconds": 1.0, "total_seconds": 11.0, "latency": {"answered": {"p50": 5.0, "p90": 6.0, "p99": rate, "max": 20.0}},
        "scheduler_cpu": cpu, "servers_cpu": {"kube-apiserver": 7.0, "etcd": 1.0, "webhook": 2.0},
        "writes": {"resourcebindings": 1.0, "resourcebindings/status": 1.0, "events": 2.0, "leases": 0.0},
        "peak_mib": 80.0, "targets": 5.0, "late_ms": None,
    }  # fmt: skip
    return {"round": 1, "case": case, "result": result}


def _document() -> dict[str, Any]:
    machine = {"cores": 2, "cpu": "some", "memory_gib": 8, "kernel": "6", "python": "3.11", "commit": "abc",
               "load_before": 0.1, "versions": {"karmada": "v1"}}  # fmt: skip
    runs = [
        _entry(BARE, 200),
        _entry(LIFTED, 80, cpu=8),
        _entry(OURS, 170),
        _entry(OURS, 190),
        _entry(OURS, 180),
    ]
    runs += [_entry(LIFTED, 20, stream=20.0), _entry(OURS, 10, stream=20.0)]
    return {"date": "today", "machine": machine, "runs": runs}


def test_tables_hold_medians_over_rounds_and_ratios_within_a_run() -> None:
    backlog, stream, ratios = report.tables(_document())
    ours = ["100", "dynamic", "ours", "180 (170 to 190)", "90%", "2.25x", "90.0", "90%", "11.0"]
    assert backlog.rows[-1][:9] == ours
    assert [row[2] for row in stream.rows] == [LIFTED, OURS]
    assert ratios.rows[0][3:8] == ["90%", "2.25x", "90%", "-", "0.50x"]
    assert ratios.rows[1][6] == "0.50x"


def test_the_report_has_a_table_for_each_file_of_figures() -> None:
    lines = page.tables().splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert headings == ["## throughput", "## rounds", "## streams", "## ceiling", "## storms"]
    after_storms = lines[lines.index("## storms") :]
    assert any(line.startswith("| deleted | ours |") for line in after_storms)


def test_the_plot_is_an_image_with_a_bar_for_each_scheduler() -> None:
    drawn = ET.fromstring(picture(page.throughput_panels(_document()), page.COLOURS))
    texts = [element.text or "" for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "Backlog, dynamic, 100 clusters: bindings/s" in texts
    assert texts.count("ours") == 4
    bars = list(drawn.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(bars) == 1 + 3 * 3 + 2
