from __future__ import annotations

import json

import pytest

from tools.conformance import random_scenario, starts
from tools.conformance.starts import APPLIED_PLACEMENT

SCENARIO = random_scenario.scenario(7, clusters=10, bindings=1500)


def annotation(binding: starts.Manifest) -> str | None:
    text: str | None = binding["metadata"].get("annotations", {}).get(APPLIED_PLACEMENT)
    return text


def test_equal_seeds_give_equal_scenarios_and_others_do_not() -> None:
    assert random_scenario.scenario(7, clusters=10, bindings=1500) == SCENARIO
    assert random_scenario.scenario(8, clusters=10, bindings=1500) != SCENARIO


def test_a_scenario_has_the_given_number_of_clusters_and_bindings_with_unique_names() -> None:
    assert len({cluster["metadata"]["name"] for cluster in SCENARIO.clusters}) == 10
    assert len({binding["metadata"]["name"] for binding in SCENARIO.bindings}) == 1500


@pytest.mark.parametrize("clusters", [3, 5, 40])
def test_a_scenario_has_clusters_with_and_without_deletion(clusters: int) -> None:
    fleet = random_scenario.scenario(1, clusters=clusters, bindings=0).clusters
    leaving = [cluster for cluster in fleet if "deletionTimestamp" in cluster["metadata"]]
    assert 0 < len(leaving) < clusters


def test_no_placement_has_an_empty_list() -> None:
    assert all("[]" not in starts.as_json(binding["spec"]["placement"]) for binding in SCENARIO.bindings)


def test_most_bindings_divide_their_replicas() -> None:
    dividing = [binding for binding in SCENARIO.bindings if starts.is_divided(binding["spec"]["placement"])]
    assert len(dividing) > 0.7 * len(SCENARIO.bindings)


@pytest.mark.parametrize(
    ("what", "least"),
    [
        pytest.param(lambda b: "clusters" not in b["spec"], 50, id="never scheduled"),
        pytest.param(lambda b: annotation(b) is None, 50, id="no annotation"),
        pytest.param(
            lambda b: annotation(b) == json.dumps(b["spec"]["placement"], separators=(",", ":")),
            300,
            id="annotation equal",
        ),
        pytest.param(lambda b: annotation(b) in starts.UNREADABLE, 50, id="annotation unreadable"),
        pytest.param(lambda b: "unknownField" in (annotation(b) or ""), 20, id="unknown field"),
        pytest.param(lambda b: "renamed" in (annotation(b) or ""), 5, id="a term renamed"),
        pytest.param(lambda b: "former" in (annotation(b) or ""), 5, id="a term too many"),
        pytest.param(
            lambda b: b["spec"].get("rescheduleTriggeredAt") == starts.LAST, 10, id="triggered at once"
        ),
        pytest.param(
            lambda b: b["spec"].get("rescheduleTriggeredAt") == starts.AFTER, 50, id="triggered later"
        ),
        pytest.param(lambda b: b["spec"].get("suspension", {}).get("scheduling"), 20, id="suspended"),
        pytest.param(lambda b: "schedulerName" in b["spec"], 20, id="another scheduler's"),
        pytest.param(lambda b: b["metadata"]["labels"] == {"app": "web"}, 10, id="unclaimed"),
        pytest.param(lambda b: b["spec"].get("gracefulEvictionTasks"), 50, id="evicted"),
        pytest.param(lambda b: b["metadata"]["generation"] == 2, 400, id="not yet observed"),
        pytest.param(lambda b: b["kind"] == "ClusterResourceBinding", 100, id="cluster-scoped"),
    ],
)
def test_a_large_scenario_has_every_start(what: object, least: int) -> None:
    assert callable(what)
    assert sum(bool(what(binding)) for binding in SCENARIO.bindings) >= least


def test_some_bindings_are_on_a_cluster_being_deleted() -> None:
    leaving = {c["metadata"]["name"] for c in SCENARIO.clusters if "deletionTimestamp" in c["metadata"]}
    on_it = [
        binding
        for binding in SCENARIO.bindings
        if any(target["name"] in leaving for target in binding["spec"].get("clusters", ()))
    ]
    assert len(on_it) > 100
