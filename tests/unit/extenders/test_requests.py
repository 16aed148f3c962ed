"""Requests to extenders, and the results of valid responses."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from karmada_pyscheduler.extenders.http_extender import needs_binding, needs_clusters
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.config.extenders import ExtenderConfig, ManagedResource
from karmada_scheduler.framework.result import Code, Result
from karmada_scheduler.framework.runtime.extenders import Extender
from karmada_scheduler.testing import binding
from tests.unit.extenders.conftest import ExtenderFactory
from tests.unit.extenders.fake import FakeExtender, Scene, unknown


def test_http_extender_implements_the_extender_protocol(make: ExtenderFactory) -> None:
    extender: Extender = make("http://127.0.0.1:1", Scene("m1").manifests, bind_verb="")
    assert (extender.name, extender.ignorable) == ("http://127.0.0.1:1", False)
    assert (extender.filters, extender.prioritizes, extender.binds) == (True, True, False)


# --- requests ---


async def test_a_filter_request_has_whole_objects(fake: FakeExtender, make: ExtenderFactory) -> None:
    scene = Scene("m1", "m2")
    fake.answers("filter", {"ClusterNames": []})
    await make(fake.url, scene.manifests).filter(scene.cycle, scene.clusters)
    [(path, request)] = fake.requests
    assert path == "/filter"
    assert list(request) == ["Binding", "AffinityName", "Clusters", "ClusterNames"]
    assert (request["Binding"]["kind"], request["Binding"]["apiVersion"]) == (
        "ResourceBinding", "work.karmada.io/v1alpha2",
    )  # fmt: skip
    assert request["Binding"]["spec"]["placement"] == {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
    assert request["AffinityName"] == "near"
    assert request["Clusters"]["kind"] == "ClusterList"
    assert [each["metadata"]["name"] for each in request["Clusters"]["items"]] == ["m1", "m2"]
    assert request["Clusters"]["items"][0]["spec"]["region"] == "eu"
    assert request["ClusterNames"] is None
    assert fake.headers[0]["content-type"] == "application/json"


async def test_with_node_cache_capable_a_request_has_names(fake: FakeExtender, make: ExtenderFactory) -> None:
    scene = Scene("m1", "m2")
    fake.answers("prioritize", [])
    await make(fake.url, scene.manifests, node_cache_capable=True).prioritize(scene.cycle, scene.clusters)
    [(path, request)] = fake.requests
    assert path == "/prioritize"
    assert (request["Clusters"], request["ClusterNames"]) == (None, ["m1", "m2"])
    assert request["Binding"]["metadata"]["name"] == "web-deployment"


async def test_a_bind_request_names_the_binding_and_the_targets(
    fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1", web=binding("web", namespace="demo").names("m1"))
    fake.answers("bind", {"Error": ""})
    targets = [TargetCluster("m1", 3), TargetCluster("m2")]
    await make(fake.url, scene.manifests).bind(scene.cycle, targets)
    assert fake.requests == [
        ("/bind", {
            "BindingKind": "ResourceBinding", "BindingNamespace": "demo", "BindingName": "web-deployment",
            "BindingUID": "uid-web",
            "BindingResourceVersion": scene.binding.resource_version,
            "Clusters": [{"name": "m1", "replicas": 3}, {"name": "m2", "replicas": 0}],
        }),
    ]  # fmt: skip


@pytest.mark.parametrize("prefix", ["/api/v1", "/api/v1/", "/api/v1//"])
async def test_the_verb_is_appended_after_one_slash(
    prefix: str, fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1")
    fake.answers("sift", {"ClusterNames": []})
    await make(fake.url + prefix, scene.manifests, filter_verb="sift").filter(scene.cycle, scene.clusters)
    assert fake.requests[0][0] == "/api/v1/sift"


async def test_a_password_in_the_url_is_used_and_not_shown(fake: FakeExtender, make: ExtenderFactory) -> None:
    scene = Scene("m1")
    fake.answers("filter", {"ClusterNames": []})
    url = fake.url.replace("http://", "http://me:secret@")
    result = await make(url, scene.manifests).filter(scene.cycle, scene.clusters)
    assert fake.headers[0]["authorization"] == "Basic bWU6c2VjcmV0"
    assert result.refused["m1"].message == f"cluster(s) were rejected by extender {fake.url}"


# --- filter ---


def _by_name(*names: str) -> dict[str, Any]:
    return {"ClusterNames": list(names)}


def _by_object(*names: str) -> dict[str, Any]:
    return {"Clusters": {"items": [{"metadata": {"name": name}} for name in names]}}


@pytest.mark.parametrize("capable", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        _by_name("m2"), _by_object("m2"), unknown(_by_name("m2")),
        {"clusters": {"ITEMS": [{"Metadata": {"NAME": "m2", "labels": None}, "spec": {}}]}},
        _by_name("m2") | {"Clusters": None, "FailedClusters": None, "Error": None, "Extra": 1},
        _by_object("m2") | {"ClusterNames": None},
    ],
    ids=["names", "objects", "lower case", "any case", "nulls", "null names"],
)  # fmt: skip
async def test_a_filter_response_with_either_list_is_accepted(
    capable: bool, answer: Any, fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1", "m2")
    fake.answers("filter", answer)
    extender = make(fake.url, scene.manifests, node_cache_capable=capable)
    result = await extender.filter(scene.cycle, scene.clusters)
    assert result.kept == {"m2"}
    assert set(result.refused) == {"m1"}
    assert make.seen == [(fake.url, "filter", "success")]


@pytest.mark.parametrize(("capable", "kept"), [(False, "m1"), (True, "m2")])
async def test_a_response_with_both_lists_is_read_like_the_request(
    capable: bool, kept: str, fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1", "m2")
    fake.answers("filter", _by_object("m1") | _by_name("m2"))
    extender = make(fake.url, scene.manifests, node_cache_capable=capable)
    assert (await extender.filter(scene.cycle, scene.clusters)).kept == {kept}


@pytest.mark.parametrize(
    "answer", [{"ClusterNames": []}, {"Clusters": {"items": []}}, {"Clusters": {"items": None}}]
)
async def test_an_empty_list_refuses_all_clusters(
    answer: Any, fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1", "m2")
    fake.answers("filter", answer)
    result = await make(fake.url, scene.manifests).filter(scene.cycle, scene.clusters)
    silence = Result.unschedulable(f"cluster(s) were rejected by extender {fake.url}")
    assert result.kept == frozenset()
    assert result.refused == {"m1": silence, "m2": silence}


async def test_without_a_list_all_clusters_are_refused_if_all_failed(
    fake: FakeExtender, make: ExtenderFactory
) -> None:
    """Go writes a nil slice as null."""
    scene = Scene("m1", "m2")
    failed = {"FailedClusters": {"m1": "full"}, "FailedAndUnresolvableClusters": {"m2": "old"}}
    fake.answers("filter", {"ClusterNames": None, "Clusters": None, **failed})
    result = await make(fake.url, scene.manifests).filter(scene.cycle, scene.clusters)
    assert result.refused == {"m1": Result.unschedulable("full"), "m2": Result.unresolvable("old")}


async def test_refusals_have_the_reasons_of_the_extender(fake: FakeExtender, make: ExtenderFactory) -> None:
    scene = Scene("a", "b", "c", "d", "e", "F")
    fake.answers("filter", {
        "ClusterNames": ["a"],
        "failedclusters": {"a": "not really", "b": "full", "c": "soft", "e": "", "zz": "elsewhere"},
        "FAILEDANDUNRESOLVABLECLUSTERS": {"c": "hard", "F": "keeps its case"},
    })  # fmt: skip
    result = await make(fake.url, scene.manifests).filter(scene.cycle, scene.clusters)
    silence = f"cluster(s) were rejected by extender {fake.url}"
    assert result.kept == {"a"}
    assert {name: (result.code, result.message) for name, result in result.refused.items()} == {
        "b": (Code.UNSCHEDULABLE, "full"),
        "c": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "hard"),
        "d": (Code.UNSCHEDULABLE, silence),
        "e": (Code.UNSCHEDULABLE, silence),
        "F": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "keeps its case"),
    }


# --- prioritize, bind ---


async def test_scores_are_multiplied_by_ten_and_by_the_weight(
    fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1", "m2", "m3", "m4")
    fake.answers("prioritize", [
        {"Host": "m1", "Score": 0}, {"host": "m2", "score": 7}, {"Cluster": "m3", "Score": 10},
    ])  # fmt: skip
    scores = await make(fake.url, scene.manifests, weight=3).prioritize(scene.cycle, scene.clusters)
    assert scores == {"m1": 0, "m2": 210, "m3": 300}


@pytest.mark.parametrize("answer", [[], None])
async def test_a_response_without_scores_is_accepted(
    answer: Any, fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1")
    fake.answers("prioritize", answer)
    assert await make(fake.url, scene.manifests).prioritize(scene.cycle, scene.clusters) == {}


@pytest.mark.parametrize("answer", [{}, None, {"error": ""}])
async def test_a_bind_response_without_an_error_is_a_success(
    answer: Any, fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1")
    fake.answers("bind", answer)
    await make(fake.url, scene.manifests).bind(scene.cycle, [TargetCluster("m1")])
    assert make.seen == [(fake.url, "bind", "success")]


# --- connections, sizes ---


async def test_one_connection_serves_all_verbs_one_after_the_other(
    fake: FakeExtender, make: ExtenderFactory
) -> None:
    scene = Scene("m1", "m2")
    fake.answers("filter", _by_object("m1"))
    fake.answers("prioritize", [])
    fake.answers("bind", {})
    extender = make(fake.url, scene.manifests)
    for _ in range(20):
        await extender.filter(scene.cycle, scene.clusters)
        await extender.prioritize(scene.cycle, scene.clusters)
        await extender.bind(scene.cycle, [TargetCluster("m1")])
    assert len(fake.requests) == 60
    assert len(fake.peers) == 1


async def test_an_extender_connects_again_after_close(fake: FakeExtender, make: ExtenderFactory) -> None:
    scene = Scene("m1")
    fake.answers("filter", {"ClusterNames": []})
    extender = make(fake.url, scene.manifests)
    await extender.close()
    await extender.filter(scene.cycle, scene.clusters)
    await extender.close()
    await extender.filter(scene.cycle, scene.clusters)
    assert len(fake.peers) == 2


@pytest.mark.parametrize("capable", [False, True])
async def test_all_clusters_are_in_one_request(
    capable: bool, fake: FakeExtender, make: ExtenderFactory
) -> None:
    names = [f"member-{number:04}" for number in range(3000)]
    scene = Scene(*names)
    fake.replies["filter"] = lambda request: (
        {"ClusterNames": request["ClusterNames"][::2]} if capable
        else {"Clusters": {"items": request["Clusters"]["items"][::2]}}
    )  # fmt: skip
    extender = make(fake.url, scene.manifests, node_cache_capable=capable, http_timeout=60.0)
    result = await extender.filter(scene.cycle, scene.clusters)
    assert result.kept == set(names[::2])
    assert len(result.refused) == 1500
    assert len(fake.requests) == 1
    if not capable:
        assert len(fake.raw[0]) > 1024 * 1024


async def test_a_request_has_all_fields_of_a_manifest(fake: FakeExtender, make: ExtenderFactory) -> None:
    scene = Scene("m1")
    fake.answers("filter", {"ClusterNames": []})
    await make(fake.url, scene.manifests).filter(scene.cycle, scene.clusters)
    document = scene.manifests.binding(scene.binding.key)
    assert document is not None
    assert orjson.loads(document) == fake.requests[0][1]["Binding"]


# --- managed resources ---

GPU = (ManagedResource(name="example.com/gpu"), ManagedResource(name="example.com/fpga"))


@pytest.mark.parametrize(
    ("builder", "interested"),
    [
        (binding("web").replicas(1, cpu="1"), False),
        (binding("web").replicas(1), False),
        (binding("web").request({"cpu": "1", "example.com/fpga": "2"}), True),
        (binding("web").component("head", 1, cpu="1"), False),
        (binding("web").component("head", 1).component("worker", 2, **{"example.com/gpu": "1"}), True),
    ],
    ids=["others", "nothing", "requested", "others of components", "requested by a component"],
)
def test_managed_resources_decide_which_bindings_are_sent(
    builder: Any, interested: bool, make: ExtenderFactory
) -> None:
    found = builder.names("m1").build()
    extender = make("http://127.0.0.1:1", Scene("m1").manifests, managed_resources=GPU)
    assert extender.is_interested(found) is interested
    assert make("http://127.0.0.1:1", Scene("m1").manifests).is_interested(found)


def test_objects_are_kept_only_if_a_request_has_them() -> None:
    web = binding("web").names("m1").replicas(1, cpu="1").build()
    binder = ExtenderConfig(url_prefix="http://b", bind_verb="bind")
    gpu = ExtenderConfig(url_prefix="http://g", filter_verb="filter", managed_resources=GPU)
    names = ExtenderConfig(url_prefix="http://n", prioritize_verb="p", weight=1, node_cache_capable=True)
    assert not needs_binding([], web)
    assert not needs_binding([binder, gpu], web)
    assert needs_binding([binder, gpu, names], web)
    assert not needs_clusters([binder, names])
    assert needs_clusters([names, gpu])
