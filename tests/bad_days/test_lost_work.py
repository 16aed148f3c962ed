"""Deferred work is done later: the real loop and the real binding cycle on a stand-in API server."""

from __future__ import annotations

import pytest

from karmada_scheduler.binding_cycle import status_writer
from karmada_scheduler.client.api_error import ApiError
from tests.unit.framework.test_binding_points import World


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "_RETRY_DELAYS", (0.0,) * 8)


async def _run(world: World, *, seconds: int = 5) -> None:
    for _ in range(seconds):
        await world.run()
        world.now += 1


async def test_a_decision_made_while_the_lease_may_have_expired_is_written_when_it_has_not() -> None:
    world = World()
    world.leads = False
    world.put()
    await _run(world)
    assert world.server.writes == []
    world.leads = True
    await _run(world)
    assert world.placed() == ["m1", "m2"]
    assert world.condition()[0] == "Success"


@pytest.mark.parametrize("told_before", [False, True])
async def test_a_status_that_waited_while_the_lease_may_have_expired_is_written_when_it_has_not(
    told_before: bool,
) -> None:
    world = World()
    if told_before:
        divided = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
        placement = {"clusterAffinity": {"clusterNames": ["nowhere"]}, "replicaScheduling": divided}
        world.put(placement=placement)
        await _run(world)
        assert world.condition()[0] == "NoClusterFit"
        placement = {**placement, "clusterAffinity": {"clusterNames": ["m1", "m2"]}}
        world.server.change("web", placement=placement)
        world.server.writes.clear()
    else:
        world.put()
    patch = world.server.patch_result

    async def patch_and_lose_the_lease(*args: object, **rest: object) -> object:
        answer = await patch(*args, **rest)  # type: ignore[arg-type]
        world.leads = False
        return answer

    world.server.patch_result = patch_and_lose_the_lease  # type: ignore[method-assign,assignment]
    await _run(world)
    assert world.server.writes == [("spec", "web")]
    world.leads = True
    await _run(world)
    assert world.condition()[0] == "Success"
    assert world.server.stored["web"]["status"]["lastScheduledTime"]


async def test_a_pending_status_is_written_when_the_process_leads_again() -> None:
    world = World()
    world.put()
    await _run(world)
    world.leads = False
    world.server.change("web", failover={})
    await _run(world)
    generation = world.server.stored["web"]["metadata"]["generation"]
    assert world.server.stored["web"]["status"]["schedulerObservedGeneration"] < generation
    world.leads = True
    await _run(world)
    assert world.server.stored["web"]["status"]["schedulerObservedGeneration"] == generation


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
            id="something else is gone",
        ),
        pytest.param(
            ApiError("terminating", code=403, reason="Forbidden", causes=("NamespaceTerminating",)),
            id="the namespace is said to go",
        ),
    ],
)
async def test_a_binding_that_is_not_reported_as_deleted_is_retried(failure: ApiError) -> None:
    world = World()
    world.server.failures = [failure] * 3
    world.put()
    await _run(world)
    assert world.placed() == ["m1", "m2"]


async def test_conflicts_in_a_row_are_paced_and_end_with_a_newer_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    world = World()
    key = world.put()
    stale = world.server.stored["web"]
    # A restore: everybody else's version of the binding is older than ours.
    world.server.stored["web"] = {**stale, "metadata": {**stale["metadata"], "resourceVersion": "0"}}
    await world.run()
    assert world.server.reads == 2
    assert world.queue.num_requeues(key) == 1
    await _run(world, seconds=20)
    assert 4 <= world.server.reads <= 15
    assert "conflicts again" in caplog.text
    world.server.stored["web"] = stale
    world.now += 1000
    await _run(world)
    assert world.placed() == ["m1", "m2"]
    assert world.queue.num_requeues(key) == 0
    assert world.scheduler._tasks._requeuer._conflicts == {}
