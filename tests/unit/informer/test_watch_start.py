"""The version at which a real kopf starts to watch; it lists nothing itself."""

from __future__ import annotations

from karmada_pyscheduler.client.karmada import CLUSTERS, WATCHED
from tests.unit.informer.watch_harness import GONE, WatchHarness, api_server, to, touch, until


async def test_every_kind_is_watched_from_the_given_version_and_kopf_lists_none() -> None:
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: harness.versions == ["7"] and len(harness.begun) == len(WATCHED))
    assert set(harness.begun.values()) == {1}
    assert not any(api.count("LIST", resource.path) for resource in WATCHED)


async def test_a_watch_whose_version_is_gone_starts_from_scratch() -> None:
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: harness.versions == ["7"])
            api.send("Cluster", GONE)
            await until(lambda: harness.begun[CLUSTERS.kind] == 2)
            touch(api)
            await until(lambda: harness.versions[-1] == "8")
    assert harness.starts == 1
    assert api.count("LIST", CLUSTERS.path) == 0


async def test_a_watch_that_ends_continues_at_its_last_version() -> None:
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: harness.versions == ["7"])
            api.end_watches("Cluster")
            touch(api)
            await until(lambda: harness.versions == ["7", "8"])
    assert harness.begun[CLUSTERS.kind] == 1
