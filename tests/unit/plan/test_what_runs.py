"""What a plan says about replicas that are assigned to the clusters that it changes, and that do not run there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from karmada_advisor.state.reading import Facts, state_of
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, cluster
from tests.unit.plan.asking import plan_of
from tests.unit.plan.test_classes import settled, web

FLEET = [cluster(name).capacity(cpu=100) for name in ("m1", "m2")]
NOT_JUDGED = "not judged: whether those that start there will run"


def reporting(made: BindingBuilder, **statuses: Any) -> BindingBuilder:
    """Return a binding whose clusters have reported these statuses."""
    made.manifest()["status"]["aggregatedStatus"] = [
        {"clusterName": name, "applied": True, "health": "Healthy", "status": status}
        for name, status in statuses.items()
    ]
    return made


def ready(count: int, of: int) -> dict[str, int]:
    """Return the status of a Deployment; Kubernetes leaves a count of 0 out."""
    found = {"observedGeneration": 1, "replicas": of, "updatedReplicas": of, "readyReplicas": count}
    return {name: value for name, value in found.items() if value}


def notes(*bindings: BindingBuilder, replicas: int, fleet: Sequence[ClusterBuilder] = FLEET) -> list[str]:
    """Return what the plan of another number of replicas says about what runs."""
    plan = plan_of(fleet, bindings, lambda draft: draft.scale("default/web", replicas))
    return [note for note in plan.notes if note.startswith("of ")]


def test_clusters_that_get_more_say_how_many_of_all_that_they_have_run_and_what_is_not_judged() -> None:
    other = reporting(settled(web("other", 6), m1=6), m1=ready(1, 6))
    asked = reporting(settled(web(replicas=8), m1=4, m2=4), m1=ready(2, 4), m2=ready(4, 4))
    assert notes(asked, other, replicas=16) == [
        f"of 10 replicas assigned to m1 and reported, 3 run; {NOT_JUDGED}"
    ]


def test_clusters_that_get_fewer_say_only_how_many_run() -> None:
    asked = reporting(settled(web(replicas=8), m1=4, m2=4), m1=ready(1, 4), m2={"observedGeneration": 1})
    assert notes(asked, replicas=4) == [
        "of 4 replicas assigned to m1 and reported, 1 runs",
        "of 4 replicas assigned to m2 and reported, 0 run",
    ]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(ready(4, 4), id="all"),
        pytest.param(ready(5, 5), id="more than assigned"),
        pytest.param({}, id="nothing"),
        pytest.param({"replicas": 4, "updatedReplicas": 1, "readyReplicas": 1}, id="a roll-out"),
        pytest.param({"observedGeneration": 1, "generation": 2, "replicas": 4}, id="an older generation"),
    ],
)
def test_nothing_is_said_of_clusters_on_which_all_run_or_it_is_not_known(status: dict[str, Any]) -> None:
    asked = reporting(settled(web(replicas=4), m1=4), m1=status)
    assert notes(asked, replicas=8) == []


def test_what_a_cluster_has_reported_before_it_was_not_ready_says_nothing_as_in_an_explanation() -> None:
    fleet = [cluster("m1").capacity(cpu=100).condition("Ready", "False"), FLEET[1]]
    asked = reporting(settled(web(replicas=8), m1=4, m2=4), m1=ready(2, 4), m2=ready(3, 4))
    assert notes(asked, replicas=16, fleet=fleet) == [
        f"of 4 replicas assigned to m2 and reported, 3 run; {NOT_JUDGED}"
    ]
    facts = Facts(cluster_of={each.build().name: each.manifest() for each in fleet}.get)
    stored = state_of(asked.build(), asked.manifest(), facts).replicas
    assert (stored.running, stored.unknown) == (3, 4)


def test_nothing_is_said_of_clusters_whose_replicas_do_not_change() -> None:
    other = reporting(settled(web("other", 4), m2=4), m2=ready(1, 4))
    asked = settled(web(replicas=4, clusterAffinity={"clusterNames": ["m1"]}), m1=4)
    assert notes(asked, other, replicas=8) == []


def test_it_is_the_number_of_an_explanation() -> None:
    asked = reporting(settled(web(replicas=8), m1=4, m2=4), m1=ready(2, 4), m2=ready(3, 4))
    counts = state_of(asked.build(), asked.manifest(), Facts()).replicas
    said = [int(text.split(", ")[1].split()[0]) for text in notes(asked, replicas=16)]
    assert (sum(said), counts.running, counts.unknown) == (5, 5, 0)
