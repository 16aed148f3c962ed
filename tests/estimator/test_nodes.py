"""First fit on runs of equal nodes is first fit on single nodes."""

from __future__ import annotations

import random

import pytest

from karmada_scheduler.api.binding import Component, ReplicaRequirements
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.estimator.nodes import Run, fit_alone, place_sets
from karmada_scheduler.estimator.resources import is_counted


def one_by_one(runs: list[Run], components: list[Component], most: int) -> int:
    """The definition: every node by itself, every replica by itself."""
    nodes = [[dict(run.free), run.pods] for run in runs for _ in range(run.nodes)]

    def place(component: Component) -> bool:
        requirements = component.replica_requirements
        request = {
            name: each.value for name, each in (requirements.resource_request if requirements else {}).items()
        }
        for _ in range(component.replicas):
            for node in nodes:
                free, pods = node
                assert isinstance(free, dict)
                assert isinstance(pods, int)
                if pods > 0 and all(free.get(name, 0) >= amount for name, amount in request.items()):
                    for name, amount in request.items():
                        free[name] -= amount
                    node[1] = pods - 1
                    break
            else:
                return False
        return True

    sets = 0
    while sets < most and all(place(component) for component in components):
        sets += 1
    return sets


def test_runs_of_nodes_fill_up_like_single_nodes() -> None:
    random_ = random.Random(5)
    for _ in range(600):
        runs = [
            Run(
                {"memory": random_.randint(0, 12), "a.b/c": random_.randint(0, 4)},
                random_.randint(0, 9),
                nodes,
            )
            for nodes in (random_.randint(1, 5) for _ in range(random_.randint(0, 4)))
        ]
        components = [
            Component(
                f"c{index}",
                random_.randint(0, 7),
                ReplicaRequirements(
                    {
                        name: Quantity(random_.randint(1, 4))
                        for name in ("memory", "a.b/c")
                        if random_.random() < 0.6
                    }
                ),
            )
            for index in range(random_.randint(1, 3))
        ]
        if not any(component.replicas for component in components):
            continue
        expected = one_by_one(runs, components, 6)
        assert place_sets(runs, components, most=6) == expected


def test_one_component_alone_needs_no_simulation() -> None:
    runs = [Run({"memory": 5}, 3, 2), Run({"memory": 20}, 3, 1), Run({"memory": 1}, 3, 9)]
    assert fit_alone(runs, {"memory": 2}) == 2 * 2 + 3
    assert fit_alone(runs, {}) == 3 * 12


def test_many_equal_nodes_stay_few_runs() -> None:
    runs = [Run({"memory": 10}, 110, 100_000)]
    component = Component("c", 7, ReplicaRequirements({"memory": Quantity(3)}))
    assert place_sets(runs, [component], most=50) == 50
    assert len(runs) < 200
    assert sum(run.nodes for run in runs) == 100_000


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("cpu", True),
        ("memory", True),
        ("ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-aws-ebs", True),
        ("example.com/gpu", True),
        ("kubernetes.io/thing", True),
        ("foo", False),
        ("pods", False),
        ("requests.example.com/gpu", False),
        ("example.com/bad name", False),
    ],
)
def test_nodes_are_tested_for_known_names_only(name: str, counted: bool) -> None:
    assert is_counted(name) is counted
