"""First fit on groups of equal nodes equals first fit on single nodes."""

from __future__ import annotations

import random
import time

import pytest

from karmada_scheduler.api.binding import Component, ReplicaRequirements
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.estimator import nodes
from karmada_scheduler.estimator.nodes import (
    NodeGroup,
    count_sets,
    fit_alone,
    is_counted,
    node_groups_of,
    place_set,
)
from karmada_scheduler.framework.diagnosis import OverBudgetError
from karmada_scheduler.testing import cluster


def one_by_one(runs: list[NodeGroup], components: list[Component], most: int) -> int:
    """Fill single nodes with single replicas: the definition."""
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


def test_node_groups_fill_up_like_single_nodes() -> None:
    random_ = random.Random(5)
    for _ in range(600):
        runs = [
            NodeGroup(
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
        assert count_sets(runs, components, most=6) == expected


def test_replicas_that_fit_are_added_up_over_node_groups() -> None:
    runs = [NodeGroup({"memory": 5}, 3, 2), NodeGroup({"memory": 20}, 3, 1), NodeGroup({"memory": 1}, 3, 9)]
    assert fit_alone(runs, {"memory": 2}) == 2 * 2 + 3
    assert fit_alone(runs, {}) == 3 * 12


def _component(name: str, replicas: int, **request: int) -> Component:
    return Component(name, replicas, ReplicaRequirements({each: Quantity(n) for each, n in request.items()}))


def test_sets_on_many_nodes_are_counted_like_on_single_nodes() -> None:
    random_ = random.Random(7)
    for _ in range(150):
        runs = [
            NodeGroup({"memory": random_.randint(1, 30)}, random_.choice([3, 8, 110]), random_.randint(1, 20))
            for _ in range(random_.randint(1, 3))
        ]
        components = [
            _component(f"c{index}", random_.randint(0, 5), memory=random_.randint(1, 9))
            for index in range(random_.randint(1, 3))
        ]
        if not any(component.replicas for component in components):
            continue
        most = random_.choice([7, 50, 1000])
        assert count_sets(runs, components, most=most) == one_by_one(runs, components, most), (
            runs,
            components,
        )


def test_sets_are_counted_alike_if_few_states_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [NodeGroup({"memory": 10}, 110, 50), NodeGroup({"memory": 7}, 110, 30)]
    components = [_component("c", 3, memory=3), _component("d", 2, memory=2)]
    expected = one_by_one(runs, components, 1000)
    sizes: list[int] = []

    class Sized(nodes._Seen):
        def repeated(self, left: list[NodeGroup], sets: int, most: int) -> int:
            found = super().repeated(left, sets, most)
            sizes.append(len(self._states))
            return found

    monkeypatch.setattr(nodes, "_Seen", Sized)
    for most in (1, 2):
        monkeypatch.setattr(nodes, "_MAX_STATES", most)
        assert count_sets(runs, components, most=1000) == expected
        assert max(sizes) == most


def test_one_component_with_a_negative_request_is_enough_to_count_sets_one_by_one() -> None:
    components = [_component("c", 1, memory=1), _component("d", 1, memory=-3)]
    for runs in ([NodeGroup({"memory": 0}, 5, 2)], [NodeGroup({"memory": 10}, 110, 3)]):
        assert count_sets(runs, components, most=50) == one_by_one(runs, components, 50)


def test_an_assumed_set_takes_capacity_of_the_nodes_in_order() -> None:
    runs = [NodeGroup({"memory": 10}, 110, 100_000)]
    assert all(place_set(runs, [_component("c", 7, memory=3)]) for _ in range(50))
    assert len(runs) < 200
    assert sum(run.nodes for run in runs) == 100_000
    small = [NodeGroup({"memory": 4}, 110, 1)]
    assert not place_set(small, [_component("c", 1, memory=3), _component("d", 1, memory=3)])
    assert small == [
        NodeGroup({"memory": 1}, 109, 1)
    ]  # the set does not fit, and its fitting part stays allocated


@pytest.mark.parametrize(
    ("memory", "wanted"),
    [
        pytest.param(64, ((1, 1), (1, 1)), id="many-sets-on-a-node"),
        pytest.param(64, ((1, 7), (1, 20)), id="a-rest-on-each-node-that-later-sets-use"),
        pytest.param(10, ((1, 6), (1, 3)), id="a-rest-that-is-used-at-once"),
        pytest.param(10, ((25, 3),), id="a-set-of-many-nodes"),
    ],
)
def test_a_million_nodes_are_counted_fast(memory: int, wanted: tuple[tuple[int, int], ...]) -> None:
    runs = [NodeGroup({"memory": memory}, 110, 1_000_000)]
    components = [_component(f"c{i}", replicas, memory=each) for i, (replicas, each) in enumerate(wanted)]
    begin = time.process_time()
    found = count_sets(runs, components, most=2**31)
    assert time.process_time() - begin < 2
    few = one_by_one([NodeGroup({"memory": memory}, 110, 50)], components, 2**31)
    assert abs(found - few * 20_000) <= 2 * 20_000  # the last sets do not fit as a whole


def test_a_node_has_at_least_nothing() -> None:
    built = cluster("m1").grade(1, nodes=2, cpu=-1, memory=5).build()  # the webhook refuses it
    assert node_groups_of(built) == [NodeGroup({"cpu": 0, "memory": 5}, 110, 2)]


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("cpu", True),
        ("memory", True),
        ("ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-aws-ebs", True),
        ("example.com/gpu", True),
        ("kubernetes.io/resource", True),
        ("foo", False),
        ("pods", False),
        ("requests.example.com/gpu", False),
        ("example.com/bad name", False),
    ],
)
def test_unknown_resource_names_are_ignored_on_nodes(name: str, counted: bool) -> None:
    assert is_counted(name) is counted


def test_too_many_different_nodes_end_the_decision_with_an_error() -> None:
    random_ = random.Random(2)
    runs = [NodeGroup({"memory": random_.randint(1000, 99_999)}, 110, 1) for _ in range(3000)]
    components = [_component(f"c{index}", 3, memory=random_.randint(1, 5000)) for index in range(3)]
    with pytest.raises(OverBudgetError, match="the nodes of its resource models differ too much"):
        count_sets(runs, components, most=2**31)
