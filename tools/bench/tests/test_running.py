"""The parts of the benchmark of running replicas that need no control plane."""

from __future__ import annotations

from typing import Any

import pytest

from tools.bench.running.fleets import GPU, GPU_TAINT, drawn, known
from tools.bench.running.packing import Demand, FreeNode, demand_of, free_nodes, packed


def node(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "2"}
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(cpu: str, on: str = "") -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"nodeName": on, "containers": [container]}, "status": {"phase": "Running"}}


def test_equal_seeds_draw_equal_fleets_of_48_nodes_at_most() -> None:
    for seed in range(40):
        fleet = drawn(seed)
        assert fleet == drawn(seed)
        assert sum(len(member.nodes) for member in fleet.members) <= 48
        assert fleet.workloads
    assert known(1) != known(2)
    assert sum(len(member.nodes) for member in known(1).members) == 48


def test_a_node_offers_what_its_pods_leave_and_nothing_when_it_is_cordoned() -> None:
    nodes = [node("a", "4"), node("b", "4", unschedulable=True)]
    [free] = free_nodes("east", nodes, [pod("1500m", on="a"), pod("1", on="b"), pod("1")])
    assert free.free == {"cpu": 2500, "memory": 8 * 2**30 * 1000, "pods": 1000}


def test_what_waits_is_packed_on_other_members_and_a_node_is_filled_once() -> None:
    waiting = [demand_of(pod("2"), "east")] * 3
    assert packed(waiting, free_nodes("east", [node("a", "8")], [])) == 0
    assert packed(waiting, free_nodes("west", [node("a", "3"), node("b", "3")], [])) == 2
    assert packed(waiting, free_nodes("west", [node("a", "8")], [])) == 2, "a node takes two Pods"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": GPU, "operator": "Exists"}, 1),
        ({"key": GPU, "value": "present", "effect": "NoSchedule"}, 1),
        ({"operator": "Exists"}, 1),
        ({"key": GPU, "value": "absent"}, 0),
        ({"key": GPU, "operator": "Exists", "effect": "NoExecute"}, 0),
    ],
)
def test_a_tainted_node_takes_only_what_tolerates_the_taint(toleration: dict[str, str], fits: int) -> None:
    tainted = FreeNode("west", {"pods": 1000}, [GPU_TAINT])
    assert packed([Demand("", {"pods": 1000})], [tainted]) == 0
    assert packed([Demand("", {"pods": 1000}, [toleration])], [tainted]) == fits
