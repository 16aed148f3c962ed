"""Which conditions count as left by a former leader."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from tests import manifests
from tools.apiserver_model import Write
from tools.simulation.former_leaders import FormerLeaders

FAILED = {"type": "Scheduled", "status": "False", "reason": "SchedulerError"}
PLACED = {"type": "Scheduled", "status": "True", "reason": "Success"}


def stored(
    condition: dict[str, Any] | None, *, clusters: int = 1, replicas: int = 2, observed: int | None = None
) -> dict[str, Any]:
    manifest = manifests.binding("web", version=3)
    manifest["spec"]["replicas"] = replicas
    manifest["spec"]["clusters"] = [{"name": "m1", "replicas": replicas}][:clusters]
    generation = manifest["metadata"]["generation"]
    manifest["status"] = {
        "schedulerObservedGeneration": generation if observed is None else observed,
        "conditions": [] if condition is None else [condition],
    }
    return manifest


def written(before: dict[str, Any], after: dict[str, Any], subresource: str) -> Write:
    return Write(
        0, 1, datetime.now(UTC), "", "ResourceBinding", ("demo", "web"), subresource,
        orjson.dumps(before), orjson.dumps(after), None, "", b"",
    )  # fmt: skip


def left(
    found: dict[str, Any],
    *,
    subresource: str = "status",
    by: str = "old",
    known: dict[str, Any] | None = None,
) -> bool:
    """Return what counts for the process ``new``, which had ``known`` in its cache when it got the Lease."""
    leaders = FormerLeaders()
    before = copy.deepcopy(found)
    before["status"]["conditions"] = [PLACED]
    if not subresource:
        before["spec"]["clusters"] = [{"name": "m9", "replicas": 1}]
    leaders.on_write(written(before, found, subresource), by)
    leaders.on_lead("new", [Binding.from_manifest(known or before)])
    return leaders.is_left(Binding.from_manifest(found), "new")


@pytest.mark.parametrize(
    ("how", "is_left"),
    [
        pytest.param({}, True, id="late"),
        pytest.param({"by": "new"}, False, id="by-the-leader-itself"),
        pytest.param({"known": stored(FAILED)}, False, id="known-to-the-leader"),
        pytest.param({"subresource": ""}, False, id="by-a-write-of-clusters"),
    ],
)
def test_a_failure_is_left_if_a_former_leader_wrote_it_too_late(
    how: dict[str, Any], *, is_left: bool
) -> None:
    assert left(stored(FAILED), **how) == is_left


def test_nothing_is_left_before_the_generation_is_observed() -> None:
    assert not left(stored(FAILED, observed=0))


@pytest.mark.parametrize(("generation", "is_left"), [(1, True), (0, False)])
def test_a_late_failure_is_left_on_a_binding_that_fits_nowhere_unless_its_generation_is_new(
    generation: int, *, is_left: bool
) -> None:
    found = stored(FAILED, observed=0)
    known = stored({**FAILED, "reason": "NoClusterFit"}, observed=0)
    known["metadata"]["generation"] = found["metadata"]["generation"] + generation - 1
    assert left(found, known=known) == is_left


@pytest.mark.parametrize(
    ("clusters", "replicas", "is_left"), [(0, 0, True), (1, 0, False), (0, 2, False), (1, 2, False)]
)
def test_no_condition_is_left_if_a_former_leader_cleared_clusters_without_replicas(
    clusters: int, replicas: int, *, is_left: bool
) -> None:
    assert left(stored(None, clusters=clusters, replicas=replicas), subresource="") == is_left


@pytest.mark.parametrize(("by", "is_left"), [("old", True), ("new", False)])
def test_no_condition_is_left_if_a_former_leader_wrote_that_a_new_binding_fits_nowhere(
    by: str, *, is_left: bool
) -> None:
    leaders = FormerLeaders()
    before, after = stored(None, clusters=0, replicas=0), stored(None, clusters=0, replicas=0)
    after["metadata"]["annotations"] = {APPLIED_PLACEMENT_ANNOTATION: "{}"}
    leaders.on_write(written(before, after, ""), by)
    observed = copy.deepcopy(after)
    after["status"]["schedulerObservedGeneration"] = 0
    leaders.on_lead("new", [Binding.from_manifest(after)])
    leaders.on_write(written(after, observed, "status"), "new")
    assert leaders.is_left(Binding.from_manifest(observed), "new") == is_left


@pytest.mark.parametrize(
    ("reason", "known_generation", "knew"),
    [("NoClusterFit", 1, True), ("NoClusterFit", 2, False), ("SchedulerError", 1, False)],
)
def test_only_a_leader_that_knew_it_may_leave_that_a_binding_fits_nowhere(
    reason: str, known_generation: int, *, knew: bool
) -> None:
    found = stored(FAILED)
    known = stored({**FAILED, "reason": reason})
    found["metadata"]["generation"], known["metadata"]["generation"] = 1, known_generation
    leaders = FormerLeaders()
    leaders.on_lead("new", [Binding.from_manifest(known)])
    assert leaders.knew_it_fits_nowhere(Binding.from_manifest(found), "new") == knew
    assert not leaders.knew_it_fits_nowhere(Binding.from_manifest(found), "never-led")
