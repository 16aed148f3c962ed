"""The replayed API server, and kopf on it."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connect import connect
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.karmada import RESOURCE_BINDINGS, WATCHED, KarmadaClient
from karmada_scheduler.client.lists import LIST_PAGE
from karmada_scheduler.client.watch_requests import WatchRequests
from karmada_scheduler.informer.kopf_watch import KopfWatch
from tools.bench import recording, replay_objects
from tools.bench.recording import Sizes
from tools.bench.replay import Replay, serving

SIZES = Sizes(bindings=1_200, clusters=20)


@asynccontextmanager
async def _connected(replay: Replay, folder: Path) -> AsyncIterator[Connection]:
    async with serving(replay, folder) as kubeconfig:
        connection = await connect(kubeconfig=str(kubeconfig), master="")
        try:
            yield connection
        finally:
            await connection.close()


def test_an_object_is_as_large_as_a_real_one() -> None:
    found = [
        len(json.dumps(each, separators=(",", ":")))
        for each in replay_objects.bindings("ResourceBinding", SIZES)
    ]
    assert 3_400 < sum(found) / len(found) < 6_500
    assert len(found) == 1_176
    assert sum(map(recording.is_new, range(SIZES.bindings))) == SIZES.new == 12


async def test_pages_of_a_list_are_of_one_version(tmp_path: Path) -> None:
    replay = Replay(SIZES)
    async with _connected(replay, tmp_path) as connection:
        client = KarmadaClient(connection)
        names: list[str] = []
        versions = set()
        async for page, version in client.list(RESOURCE_BINDINGS):
            names += [each["metadata"]["name"] for each in page]
            versions.add(version)
            await _touch_last(client)
    assert len(names) == len(set(names)) == 1_176
    assert len(versions) == 1
    assert replay.seen.requests["LIST resourcebindings"] == math.ceil(1_176 / LIST_PAGE)


async def _touch_last(client: KarmadaClient) -> None:
    key = _key(SIZES.bindings - 1)
    version = (await client.get_binding(key))["metadata"]["resourceVersion"]
    await client.patch_status(key, resource_version=version, status={"schedulerObservingAffinityName": "x"})


def _key(number: int) -> BindingKey:
    name = f"service-{number:06d}-deployment"
    found = replay_objects.bindings("ResourceBinding", SIZES)
    return next(
        BindingKey("ResourceBinding", each["metadata"]["namespace"], name)
        for each in found
        if each["metadata"]["name"] == name
    )


async def test_a_patch_of_an_older_version_is_refused_and_a_patched_spec_is_a_new_generation(
    tmp_path: Path,
) -> None:
    async with _connected(Replay(SIZES), tmp_path) as connection:
        client = KarmadaClient(connection)
        key = _key(50)
        before = await client.get_binding(key)
        version = before["metadata"]["resourceVersion"]
        after = await client.patch_result(
            key, resource_version=version, annotations={"a": "b"}, clusters=[{"name": "m", "replicas": 1}]
        )
        assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
        with pytest.raises(ApiError) as refusal:
            await client.patch_status(key, resource_version=version, status={})
        assert refusal.value.is_conflict
        assert await client.get_binding(key) == after


async def test_a_watch_begins_at_its_version(tmp_path: Path) -> None:
    replay = Replay(SIZES)
    async with _connected(replay, tmp_path) as connection:
        client = KarmadaClient(connection)
        version = [version async for _, version in client.list(RESOURCE_BINDINGS)][-1]
        await _touch_last(client)
        credentials = await connection.credentials()
        url = f"{connection.server}{RESOURCE_BINDINGS.path}?watch=true&resourceVersion={version}"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=credentials.tls) as answer:
            event = json.loads(await answer.content.readline())
    assert event["type"] == "MODIFIED"
    assert event["object"]["kind"] == "ResourceBinding"
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(version)


async def test_kopf_lists_nothing_and_watches_from_the_given_version(tmp_path: Path) -> None:
    replay = Replay(SIZES)
    seen: Counter[str] = Counter()
    versions: dict[str, str] = {}

    async def at_once() -> None:
        return None

    async with _connected(replay, tmp_path) as connection:
        client = KarmadaClient(connection)

        async def never(*_: str) -> bool:
            return False

        async def listed(kind: str) -> str:
            resource = next(each for each in WATCHED if each.kind == kind)
            versions[kind] = [version async for _, version in client.list(resource)][-1]
            return versions[kind]

        watch = KopfWatch(
            WATCHED,
            lambda kind, event, _: seen.update([f"{kind} {event}"]),
            identity="test",
            login=connection.credentials,
            requests=WatchRequests(connection.watch),
            before_start=at_once,
            after_start=lambda: None,
            start_version=listed,
            must_relist=never,
            clock=time.monotonic,
        )
        running = asyncio.create_task(watch.run())
        async with asyncio.timeout(60):
            while len(versions) < len(WATCHED):
                await asyncio.sleep(0.01)
            await _touch_last(client)
            while not seen:
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert seen == {"ResourceBinding MODIFIED": 1}
    assert replay.seen.requests["LIST resourcebindings"] == math.ceil(1_176 / LIST_PAGE)
    assert replay.seen.requests["LIST clusters"] == 1
