"""What counts as running after a loss: what survivors report, and never what cannot start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests import commands
from tests.unit.plan.fleet import write
from tests.unit.rebalance.proposing import settled

Manifest = dict[str, Any]


def _report(name: str, ready: int, *, applied: bool = True) -> Manifest:
    status = {"replicas": max(ready, 1), "readyReplicas": ready} if applied else {}
    failed = {} if applied else {"appliedMessage": "already exists in the cluster"}
    health = "Healthy" if ready else "Unhealthy"
    return {"clusterName": name, "applied": applied, "health": health, "status": status, **failed}


def _duplicated(*reports: Manifest) -> BindingBuilder:
    made = settled(binding("web").replicas(4, cpu="1").on(a=4, b=4))
    made.manifest()["status"]["aggregatedStatus"] = list(reports)
    return made


def _divided(**suspension: object) -> BindingBuilder:
    made = settled(binding("web").replicas(4, cpu="1").dynamic_weight().names("a", "b").on(a=4))
    made.manifest()["spec"]["suspension"] = suspension
    return made


@pytest.fixture
def lost(tmp_path: Path) -> Callable[..., tuple[dict[str, Any], Manifest]]:
    """Lose the cluster a of a, b; return what happens, and the answer."""

    def ask(made: BindingBuilder, other: str = "ready") -> tuple[dict[str, Any], Manifest]:
        b = cluster("b")
        if other == "not ready":
            b.condition("Ready", "False")
        elif other == "cordoned":
            b.taint("cluster.karmada.io/unschedulable:NoSchedule")
        files = write(tmp_path, clusters=[cluster("a").manifest(), b.manifest()], bindings=[made.manifest()])
        fields = commands.run("survive", "a", *files, "-o=json", "--all", "--no-remedies").fields
        [found] = fields["bindings"][0]["losses"]
        return {name: found[name] for name in ("dark", "interrupted", "missing")}, fields

    return ask


NOTHING_RUNS = {"dark": True, "interrupted": True, "missing": 4}
ALL_RUNS = {"dark": False, "interrupted": False, "missing": 0}


def test_copies_on_a_cluster_that_is_not_ready_do_not_count_as_running(lost: Any) -> None:
    found, fields = lost(_duplicated(), "not ready")
    assert found == NOTHING_RUNS
    assert "only what runs, or can start, counts: b is not ready" in fields["notes"]


def test_copies_on_a_cordoned_cluster_run_on_and_new_ones_do_not_count(lost: Any) -> None:
    assert lost(_duplicated(), "cordoned")[0] == ALL_RUNS
    growing = settled(binding("web").replicas(4, cpu="1").dynamic_weight().on(a=2, b=2))
    assert lost(growing, "cordoned")[0] == {"dark": False, "interrupted": False, "missing": 2}


@pytest.mark.parametrize("survivor", [_report("b", 0), _report("b", 0, applied=False)])
def test_a_survivor_of_which_none_is_ready_or_applied_does_not_count_as_running(
    lost: Any, survivor: Manifest
) -> None:
    found, fields = lost(_duplicated(_report("a", 4), survivor))
    assert found == NOTHING_RUNS
    assert any("runs less than is assigned" in note and "web-deployment" in note for note in fields["notes"])


def test_a_survivor_of_which_some_are_ready_counts_with_these(lost: Any) -> None:
    found, _ = lost(_duplicated(_report("a", 4), _report("b", 3)))
    assert found == {"dark": False, "interrupted": False, "missing": 1}


def test_a_copy_without_replicas_counts_only_where_it_is_applied(lost: Any) -> None:
    made = settled(binding("web").on(a=0, b=0))
    made.manifest()["status"]["aggregatedStatus"] = [_report("a", 1), _report("b", 0, applied=False)]
    assert lost(made)[0] == {**NOTHING_RUNS, "missing": 1}


@pytest.mark.parametrize("field", [{"dispatching": True}, {"dispatchingOnClusters": {"clusterNames": ["b"]}}])
def test_what_moves_to_a_cluster_to_which_dispatching_is_suspended_does_not_start(
    lost: Any, field: Manifest
) -> None:
    found, fields = lost(_divided(**field))
    assert found == NOTHING_RUNS
    assert any("dispatching is suspended" in note for note in fields["notes"])


def test_a_copy_that_runs_where_dispatching_is_suspended_runs_on(lost: Any) -> None:
    made = _duplicated(_report("a", 4), _report("b", 4))
    made.manifest()["spec"]["suspension"] = {"dispatching": True}
    assert lost(made)[0] == ALL_RUNS


@pytest.mark.parametrize(("strategy", "is_said"), [("static", True), ("duplicated", False)])
def test_replicas_that_start_where_no_capacity_is_known_are_not_judged(
    tmp_path: Path, strategy: str, is_said: bool
) -> None:
    made = binding("web").replicas(4, cpu="1").names("a", "b")
    placed = made.static_weights(a=1, b=1).on(a=2, b=2) if is_said else made.duplicated().on(a=4, b=4)
    clusters = [cluster("a").manifest(), cluster("b").without_summary().manifest()]
    files = write(tmp_path, clusters=clusters, bindings=[settled(placed).manifest()])

    notes = commands.run("survive", "a", *files, "-o=json", "--no-remedies").fields["notes"]

    text = "not judged: whether there is capacity for what starts on b: no resource summary"
    assert (text in notes) is is_said
