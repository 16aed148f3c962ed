"""Deferred work is done later: the real loop and the real binding cycle on a fake API server."""

from __future__ import annotations

import pytest

from karmada_pyscheduler.binding_cycle import status_writer
from karmada_scheduler.api_error import ApiError
from tests.unit.framework.scheduler_harness import SchedulerHarness


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "_RETRY_DELAYS", (0.0,) * 8)


async def _run(harness: SchedulerHarness, *, seconds: int = 5) -> None:
    for _ in range(seconds):
        await harness.run()
        harness.now += 1


async def test_a_decision_made_while_the_lease_may_have_expired_is_written_when_it_has_not() -> None:
    harness = SchedulerHarness()
    harness.leads = False
    harness.put()
    await _run(harness)
    assert harness.server.writes == []
    harness.leads = True
    await _run(harness)
    assert harness.placed() == ["m1", "m2"]
    assert harness.condition()[0] == "Success"


@pytest.mark.parametrize("reported_before", [False, True])
async def test_a_status_that_waited_while_the_lease_may_have_expired_is_written_when_it_has_not(
    reported_before: bool,
) -> None:
    harness = SchedulerHarness()
    if reported_before:
        divided = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
        placement = {"clusterAffinity": {"clusterNames": ["nowhere"]}, "replicaScheduling": divided}
        harness.put(placement=placement)
        await _run(harness)
        assert harness.condition()[0] == "NoClusterFit"
        placement = {**placement, "clusterAffinity": {"clusterNames": ["m1", "m2"]}}
        harness.server.change("web", placement=placement)
        harness.server.requests.clear()
    else:
        harness.put()
    patch = harness.server.patch_result

    async def patch_and_lose_the_lease(*args: object, **rest: object) -> object:
        answer = await patch(*args, **rest)  # type: ignore[arg-type]
        harness.leads = False
        return answer

    harness.server.patch_result = patch_and_lose_the_lease  # type: ignore[method-assign,assignment]
    await _run(harness)
    assert harness.server.writes == [("spec", "web")]
    harness.leads = True
    await _run(harness)
    assert harness.condition()[0] == "Success"
    assert harness.server.stored["web"]["status"]["lastScheduledTime"]


async def test_a_pending_status_is_written_when_the_process_leads_again() -> None:
    harness = SchedulerHarness()
    harness.put()
    await _run(harness)
    harness.leads = False
    harness.server.change("web", failover={})
    await _run(harness)
    generation = harness.server.stored["web"]["metadata"]["generation"]
    assert harness.server.stored["web"]["status"]["schedulerObservedGeneration"] < generation
    harness.leads = True
    await _run(harness)
    assert harness.server.stored["web"]["status"]["schedulerObservedGeneration"] == generation


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(ApiError("404 page not found", code=404), id="a proxy"),
        pytest.param(
            ApiError("the server could not find the requested resource", code=404, reason="NotFound"),
            id="the kind is not served",
        ),
        pytest.param(
            ApiError('namespaces "demo" not found', code=404, reason="NotFound", name="demo"),
            id="another object is gone",
        ),
        pytest.param(
            ApiError("terminating", code=403, reason="Forbidden", causes=("NamespaceTerminating",)),
            id="the namespace is terminating",
        ),
    ],
)
async def test_a_binding_that_is_not_reported_as_deleted_is_retried(failure: ApiError) -> None:
    harness = SchedulerHarness()
    harness.server.failures["spec"] = [failure] * 3
    harness.put()
    await _run(harness)
    assert harness.placed() == ["m1", "m2"]


async def test_conflicts_in_a_row_are_paced_and_end_with_a_newer_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    harness = SchedulerHarness()
    key = harness.put()
    stale = harness.server.stored["web"]
    # A restore: the stored resourceVersion is lower than ours.
    harness.server.stored["web"] = {**stale, "metadata": {**stale["metadata"], "resourceVersion": "0"}}
    await harness.run()
    assert harness.server.reads == 2
    assert harness.queue._requeues.get(key, 0) == 1
    await _run(harness, seconds=20)
    assert 4 <= harness.server.reads <= 15
    assert "conflicts again" in caplog.text
    harness.server.stored["web"] = stale
    harness.now += 1000
    await _run(harness)
    assert harness.placed() == ["m1", "m2"]
    assert harness.queue._requeues.get(key, 0) == 0
    assert harness.scheduler._failure_handler._conflicts == {}
