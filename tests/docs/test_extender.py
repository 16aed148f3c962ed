"""docs/extenders.md: docs/examples/extender.py answers the real client, and the messages are those on the wire."""

from __future__ import annotations

import runpy
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_pyscheduler.extenders import wire
from karmada_pyscheduler.extenders.http_extender import HttpExtender
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.config.configuration_file import load
from karmada_scheduler.config.extenders import ExtenderConfig, ExtenderTLS
from karmada_scheduler.config.structure import KEY
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster, framework, scheduling
from tests.docs.documents import File, read
from tests.unit.extenders.fake import FakeExtender, Scene

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "extenders.md"
EXAMPLE = DOCS / "examples" / "extender.py"
SHOWN = {part.name: part for part in read(PAGE) if isinstance(part, File)}


def test_the_page_has_every_field_of_the_configuration() -> None:
    text = PAGE.read_text()
    names = [
        each.metadata.get(KEY) or camel(each.name) for each in (*fields(ExtenderConfig), *fields(ExtenderTLS))
    ]
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.fixture
async def extender(tmp_path: Path) -> AsyncIterator[HttpExtender]:
    """The client of the page's configuration, for the example on a free port."""
    SHOWN["config.yaml"].write_into(tmp_path)
    [config] = load(tmp_path / "config.yaml").extenders
    with ThreadingHTTPServer(("127.0.0.1", 0), runpy.run_path(str(EXAMPLE))["Extender"]) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        manifests = ManifestCache(is_needed=lambda _: True, clusters=True)
        made = HttpExtender(replace(config, url_prefix=url), manifests, clock=lambda: 0.0)
        yield made
        await made.close()
        server.shutdown()
        thread.join()


async def place(extender: HttpExtender, web: BindingBuilder, *clusters: ClusterBuilder) -> Any:
    for each in (web, *clusters):
        extender.manifests.stored(each.build(), each.manifest())  # type: ignore[attr-defined]
    return await scheduling(web, *clusters, plugins=Framework(framework().plugins, extenders=[extender]))


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("http.server.BaseHTTPRequestHandler.log_message", lambda *_: None)


async def test_the_example_filters_and_scores(extender: HttpExtender) -> None:
    clusters = cluster("m1"), cluster("m2").labels(disk="ssd"), cluster("m3").labels(disk="ssd")
    run = await place(extender, binding("web").replicas(2).duplicated(), *clusters)
    assert run.placed == {"m2": 2, "m3": 2}
    assert run.refused == {"m1": f"cluster(s) were rejected by extender {extender.name}"}
    assert run.scores[extender.name] == {"m2": 100, "m3": 100}


async def test_if_the_example_refuses_all_clusters_none_fits(extender: HttpExtender) -> None:
    run = await place(extender, binding("web").replicas(2).duplicated(), cluster("m1"))
    assert run.condition.reason == "NoClusterFit"


# --- the messages of the page ---


@pytest.fixture
async def server() -> AsyncIterator[FakeExtender]:
    fake = FakeExtender()
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
def scene() -> Scene:
    return Scene("m1", "m2", web=binding("web").names("m1", "m2").replicas(2))


@pytest.fixture
async def client(server: FakeExtender, scene: Scene) -> AsyncIterator[HttpExtender]:
    config = ExtenderConfig(
        url_prefix=server.url, filter_verb="filter", prioritize_verb="prioritize", bind_verb="bind", weight=1
    )
    made = HttpExtender(config, scene.manifests, clock=lambda: 0.0)
    yield made
    await made.close()


def _assert_within(shown: Any, sent: Any) -> None:
    """Check that all that is shown is sent."""
    if isinstance(shown, dict):
        for key, value in shown.items():
            _assert_within(value, sent[key])
    elif isinstance(shown, list):
        for one, other in zip(shown, sent, strict=True):
            _assert_within(one, other)
    else:
        assert shown == sent


async def test_the_request_to_filter_and_prioritize_is_as_shown(
    server: FakeExtender, client: HttpExtender, scene: Scene
) -> None:
    server.answers("filter", SHOWN["filter-answer.jsonc"].json)
    server.answers("prioritize", SHOWN["prioritize-answer.jsonc"].json)
    result = await client.filter(scene.cycle, scene.clusters)
    assert result.kept == {"m1"}
    assert result.refused["m2"].reasons == ("cluster(s) had no ssd",)
    assert await client.prioritize(scene.cycle, scene.clusters) == {"m1": 100, "m2": 30}
    shown = SHOWN["request.jsonc"].json
    for _, sent in server.requests:
        assert sent.keys() == shown.keys()
        assert sent["Clusters"].keys() == shown["Clusters"].keys()
        _assert_within(shown, sent)


async def test_the_request_to_bind_is_as_shown(
    server: FakeExtender, client: HttpExtender, scene: Scene
) -> None:
    server.answers("bind", SHOWN["bind-answer.jsonc"].json)
    await client.bind(scene.cycle, [TargetCluster("m1", 2)])
    assert server.requests == [("/bind", SHOWN["bind-request.jsonc"].json)]


def test_the_answer_to_filter_has_every_field_that_is_read() -> None:
    read_ = wire.read_filter_response(b"{}")
    names = SHOWN["filter-answer.jsonc"].json.keys() | {"Clusters"}
    assert len(names) == len([each for each in read_.__struct_fields__ if each != "keys"])
    assert all(f"| `{name}` |" in PAGE.read_text() for name in names)
