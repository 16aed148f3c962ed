"""Both schedulers run on the fast fake API server; counts only, no times."""

from __future__ import annotations

import pytest

from karmada_pyscheduler.client.karmada import LIST_PAGE
from tools.bench.scenarios import OURS
from tools.fast_apiserver import server as fast_apiserver
from tools.fast_apiserver import storms
from tools.fast_apiserver.ceiling import measure
from tools.fast_apiserver.schedulers import UPSTREAM

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(("scheduler", "writes"), [(OURS, 2), (UPSTREAM, 3)])
def test_a_backlog_is_placed_with_as_many_writes_as_on_a_real_control_plane(
    scheduler: str, writes: int
) -> None:
    with fast_apiserver.running() as server:
        found = measure(server, scheduler, 20, "dynamic", 100, 1, window=120.0)
    assert (found.placed, found.writes, found.events) == (100, writes, 2)


def test_a_start_lists_each_kind_once_and_writes_only_what_is_new() -> None:
    settled = LIST_PAGE + 50
    with fast_apiserver.running() as server:
        found = measure(server, OURS, 20, "dynamic", 3, 1, window=120.0, settled=settled)
        requests = server.times()["requests"]
    assert (found.placed, found.writes) == (3, 2)
    kinds = (
        "clusters",
        "propagationpolicies",
        "clusterpropagationpolicies",
        "resourcebindings",
        "clusterresourcebindings",
    )
    assert {kind: requests[f"WATCH {kind}"] for kind in kinds} == dict.fromkeys(kinds, 1)
    # One list of a single object asks for the newest resourceVersion, and the bindings have two pages.
    lists = {**dict.fromkeys(kinds, 2), "resourcebindings": 3}
    assert {kind: requests[f"LIST {kind}"] for kind in kinds} == lists


@pytest.mark.parametrize(("name", "writes"), [("lost", 200), ("deleted", 200), ("relabelled", 0)])
def test_a_storm_ends_and_writes_no_more_than_it_has_to(name: str, writes: int) -> None:
    with fast_apiserver.running() as server:
        found = storms.measure(server, name, OURS, 100, window=120.0)
    assert (found.done, found.writes) == (100, writes)
    assert found.fresh == found.fresh_placed
