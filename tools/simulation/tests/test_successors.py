"""What the judge says about a binding whose leader has ended between its two patches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tools.apiserver_model import Write
from tools.simulation.actions import placement
from tools.simulation.environment import START
from tools.simulation.generate import REGIONS
from tools.simulation.run import Run
from tools.simulation.tests.test_laws import KEY, PLAN, at_rest

SUCCESS = {"type": "Scheduled", "status": "True", "reason": "Success"}
FAILURE = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit"}


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Return a run with the clusters m0 and m1, which are in the two regions from now on."""
    with at_rest(PLAN) as found:
        for name, region in zip(("m0", "m1"), REGIONS, strict=True):
            found.actions.take("put_cluster", {"name": name, "region": region, "cpu": 9})
        found.judge._harm.note_clusters()
        yield found


def stored(
    run: Run, cluster: str, condition: dict[str, Any], *, term: str = "", **spec: Any
) -> dict[str, Any]:
    """Return a binding that is on a cluster, and settled but for its status."""
    found: dict[str, Any] = orjson.loads(run.model.state("ResourceBinding")[KEY])
    found["spec"] |= {"clusters": [{"name": cluster, "replicas": 2}], **spec}
    applied = orjson.dumps(found["spec"]["placement"]).decode()
    found["metadata"]["annotations"]["policy.karmada.io/applied-placement"] = applied
    found["status"] |= {"conditions": [condition], "schedulerObservingAffinityName": term}
    return found


@pytest.mark.parametrize(
    ("cluster", "condition", "problem"),
    [
        ("m1", SUCCESS, ""),
        ("m1", FAILURE, "needs no scheduling, and has the condition"),
        ("m9", SUCCESS, "has {'m9': 2}, the decision is"),
    ],
)
def test_a_placed_binding_has_to_be_a_success_on_clusters_that_exist(
    run: Run, cluster: str, condition: dict[str, Any], problem: str
) -> None:
    clusters, _ = run.judge._harm.clusters_now()
    found = run.judge._core.problem_of(
        stored(run, cluster, condition, placement=placement("dynamic")), clusters
    )
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(
    ("cluster", "term", "is_lost"),
    [("m1", "", True), ("m1", "north", True), ("m1", "south", False), ("m9", "", False)],
)
def test_the_status_has_to_have_the_affinity_term_of_the_clusters(
    run: Run, cluster: str, term: str, *, is_lost: bool
) -> None:
    found = stored(run, cluster, SUCCESS, term=term, placement=placement("dynamic", terms=REGIONS))
    assert bool(run.judge._harm.lost_term(found)) == is_lost


def test_without_terms_none_is_lost(run: Run) -> None:
    assert not run.judge._harm.lost_term(stored(run, "m1", SUCCESS))


@pytest.mark.parametrize("term", ["", "north", "south"])
def test_a_binding_that_returns_to_an_earlier_term_is_harmed_whatever_its_status_has(
    run: Run, term: str
) -> None:
    before = stored(run, "m1", SUCCESS, term=term, placement=placement("duplicated", terms=REGIONS))
    after = {**before, "spec": {**before["spec"], "clusters": [{"name": "m0", "replicas": 2}]}}
    raw = orjson.dumps(before), orjson.dumps(after)
    already = len(run.judge.violations)
    run.judge._harm.check(Write(0, 9, START, "", "ResourceBinding", KEY, "", *raw, None, "", b""))
    assert len(run.judge.violations) > already
