"""Who may list the bindings of one namespace sees what is stored in these, and nothing of others."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import pytest

from karmada_advisor.web.viewer import (
    LIST_BINDINGS,
    LIST_CLUSTER_BINDINGS,
    LIST_CLUSTERS,
    LIST_EVENTS,
    LIST_QUOTAS,
    NOBODY,
    Viewer,
)
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.client.reviews import ReviewUnavailableError
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.web.site import Site, without_times
from tools.manifests import deployment

CANARY: Final = "canary"
"""In each name, label, taint, region and message that is not of the namespace."""
OPEN: Final = {"/healthz", "/readyz", "/favicon.ico"}
_OF_BINDING: Final = ("/b", "/why-not", "/v1/explain", "/v1/why-not", "/v1/history")
SCOPED: Final = {
    *("/", "/v1/namespaces", "/bindings", "/v1/bindings", "/v1/events"),
    *("/n/{namespace}", "/v1/quotas/{namespace}", "/w/{namespace}/{kind}/{name}"),
    *("/plan", "/v1/plan"),
    *(f"{each}/{{namespace}}/{{name}}" for each in _OF_BINDING),
}
OF_CLUSTER_LISTS: Final = {
    f"{each}{cluster}" for each in ("/clusters", "/v1/clusters") for cluster in ("", "/{cluster}")
}
"""For those who may list Clusters."""


async def _away(_: Permission, __: str) -> bool:
    raise ReviewUnavailableError("the API server is away")


async def _hints() -> Collection[str]:
    return {"shop", f"{CANARY}-ns"}


async def _may(permission: Permission, namespace: str) -> bool:
    """In shop everything but Events and quotas, some Clusters and one policy of all namespaces."""
    is_in_shop = namespace == "shop" and permission not in {LIST_EVENTS, LIST_QUOTAS}
    return is_in_shop or permission.name in {"eu-1", "eu-2", "mine", "nowhere", "wide"}


_BINDINGS: Final = (LIST_BINDINGS, LIST_CLUSTER_BINDINGS, LIST_EVENTS)
DEVELOPER: Final = Viewer("system:serviceaccount:shop:dev", (*_BINDINGS, LIST_CLUSTERS), _may, _hints)
OF_CLUSTERS: Final = Viewer("system:serviceaccount:shop:sre", _BINDINGS, _may, _hints)
"""Somebody who may list Clusters, too."""


def with_permission(viewer: Viewer, added: Permission, *, everywhere: bool = False) -> Viewer:
    """Return a viewer who has one permission more, in shop or everywhere."""

    async def may(permission: Permission, namespace: str) -> bool:
        is_added = permission == added and (everywhere or namespace == "shop")
        return is_added or await viewer.may(permission, namespace)

    return replace(viewer, may=may)


def clusters(*, others: int = 3) -> list[ClusterBuilder]:
    mine = cluster("eu-1").capacity(cpu=20, memory="100Gi", pods=100).region(f"{CANARY}-region")
    mine.labels(tier=f"{CANARY}-label").taint(f"{CANARY}-taint=1:PreferNoSchedule")
    return [mine, *(cluster(f"{CANARY}-{number}").capacity(cpu=977 + number) for number in range(others))]


def bindings(*, others: int = 4) -> list[BindingBuilder]:
    """Return a placed and a failed binding in the namespace, and others elsewhere."""
    placed = (
        binding("web", namespace="shop")
        .replicas(2, cpu="1")
        .affinity(clusterNames=["eu-1"])
        .on(**{"eu-1": 2})
    )
    placed.condition(type="Scheduled", status="True", reason="Success", message="all fine")
    status = {"clusterName": "eu-1", "applied": True, "health": "Healthy", "status": {"readyReplicas": 1}}
    placed.manifest()["status"]["aggregatedStatus"] = [status]
    failed = (
        binding("lost", namespace="shop")
        .replicas(2, cpu="500")
        .affinity(clusterNames=["eu-1"])
        .dynamic_weight()
    )
    failed.condition(type="Scheduled", status="False", reason="NoClusterFit", message="0/1 clusters fit")
    made = [placed, failed]
    for number in range(others):
        each = binding(f"{CANARY}-{number}", namespace=f"{CANARY}-ns").replicas(3, cpu="1").dynamic_weight()
        made.append(each.on(**{f"{CANARY}-0": 3, "eu-1": 1} if number % 2 else {}))
    return [*made, binding(f"{CANARY}-wide").replicas(1)]


def paths(site: Site) -> Iterator[tuple[str, str]]:
    """Yield each route, and paths of it: of the namespace, of others, and of what does not exist."""
    for route in site.routes:
        if "static" in route:
            continue
        for namespace, name in (
            ("shop", "web-deployment"),
            (f"{CANARY}-ns", f"{CANARY}-0-deployment"),
            ("shop", "no"),
            ("no", "no"),
        ):
            values = {"namespace": namespace, "name": name, "kind": "cluster", "cluster": "eu-1"}
            path = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], route)  # noqa: B023 (used at once)
            yield route, path
            yield route, f"{path}?namespace={namespace}&q={CANARY[:3]}&cluster=eu-1"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, clusters=clusters(), bindings=bindings(), viewer=DEVELOPER)


async def test_no_route_shows_anything_of_others(site: Site) -> None:
    asked = 0
    async with site:
        for route, path in paths(site):
            if route == "/v1/events" and "namespace=shop" in path:
                continue  # it does not end
            for accept in ("text/html", "application/json"):
                answer = await site.get(path, Accept=accept)
                body = answer.text + "".join(map(str, answer.headers.values()))
                shown = body.replace(path, "").replace(path.replace("&", "&amp;"), "")
                asked += 1
                if (
                    f"{CANARY}" in path
                ):  # what was asked is repeated, and is the same whether it exists or not
                    shown = re.sub(rf"{CANARY}-ns|{CANARY}-0-deployment", "", shown)
                assert CANARY not in shown, (path, accept)
                assert answer.status in ((200,) if route in OPEN else (200, 400, 403, 404)), path
                if route not in SCOPED | OPEN:
                    assert answer.status == 403, path
    assert asked > 300


async def test_a_namespace_of_others_looks_the_same_whether_it_exists_or_not(site: Site) -> None:
    async with site:
        for path in (
            "/bindings?namespace={}",
            "/v1/bindings?namespace={}",
            "/b/{}/x",
            "/n/{}",
            "/v1/history/{}/x",
            f"/b/{{}}/{CANARY}-0-deployment",
        ):
            there = await site.get(path.format(f"{CANARY}-ns"))
            away = await site.get(path.format("nowhere-ns"))
            assert there.status == away.status == 403
            assert there.text.replace(f"{CANARY}-ns", "X") == away.text.replace("nowhere-ns", "X")
            varying = {"Date", "Content-Length"}  # the length of the name that was asked for
            assert {name: value for name, value in there.headers.items() if name not in varying} == {
                name: value for name, value in away.headers.items() if name not in varying
            }


async def test_fleets_that_differ_elsewhere_only_look_the_same(tmp_path: Path) -> None:
    found = []
    for number, more in enumerate((1, 9)):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with Site(
            folder, clusters=clusters(others=more), bindings=bindings(others=more), viewer=DEVELOPER
        ) as site:
            pages = [
                await site.get(path)
                for path in (
                    "/bindings?namespace=shop",
                    "/v1/bindings?namespace=shop",
                    "/b/shop/nothing",
                    "/",
                )
            ]
        found.append([without_times(each.text) for each in pages])
    assert found[0] == found[1]


async def test_their_own_bindings_are_listed_and_shown_as_they_are_stored(site: Site) -> None:
    async with site:
        listed = (await site.get("/v1/bindings?namespace=shop")).fields
        page = (await site.get("/b/shop/web-deployment")).page
        lost = (await site.get("/b/shop/lost-deployment")).page

    assert [each["name"] for each in listed["items"]] == ["lost-deployment", "web-deployment"]
    assert "From the workload to its clusters workload Deployment web 2 replicas" in page.text
    assert "eu-1 2" in page.text
    assert "0/1 clusters fit" in lost.text
    assert not [each for each in page.attributes("a", "href") if each.startswith(("/clusters", "/survive"))]


async def test_workloads_without_a_binding_are_not_shown_to_them_and_their_first_page_says_so(
    tmp_path: Path,
) -> None:
    orphan = deployment(f"{CANARY}-ns", f"{CANARY}-orphan", 1)
    (tmp_path / "orphan.json").write_text(json.dumps(orphan))
    flags = [f"--workloads={tmp_path / 'orphan.json'}"]
    async with Site(
        tmp_path, clusters=clusters(), bindings=bindings(), viewer=DEVELOPER, flags=flags
    ) as site:
        await site.refresh()
        text = (await site.get("/")).page.text
        assert "Workloads without a binding are not among them" in text
        for path in ("/", "/v1/namespaces", "/n/shop", "/v1/overview"):
            assert CANARY not in (await site.get(path)).text, path


async def test_every_link_of_their_pages_leads_somewhere(site: Site) -> None:
    async with site:
        for path in ("/bindings?namespace=shop", "/b/shop/web-deployment", "/b/shop/lost-deployment"):
            for target in (await site.get(path)).page.attributes("a", "href"):
                if target.startswith("/"):
                    assert (await site.get(target)).status == 200, (path, target)


async def test_a_missing_binding_of_their_own_is_honestly_not_found(site: Site) -> None:
    async with site:
        answer = await site.get("/b/shop/wbe-deployment")

    assert answer.status == 404
    assert "shop/web-deployment" in answer.page.text


async def test_without_a_namespace_theirs_is_suggested(site: Site) -> None:
    async with site:
        answer = await site.get("/bindings")

    assert answer.status == 403
    assert "choose one: /bindings?namespace=shop" in answer.page.text
    assert "shop" in answer.page.attributes("input", "value")


async def test_while_nobody_knows_what_they_may_see_they_see_nothing(tmp_path: Path) -> None:
    viewer = Viewer("dev", (LIST_BINDINGS, LIST_CLUSTERS), _away)
    async with Site(tmp_path, viewer=viewer) as site:
        for path in ("/bindings?namespace=shop", "/v1/bindings?namespace=shop", "/b/shop/checkout"):
            answer = await site.get(path)
            assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
            assert "checkout" not in answer.text.replace(path, "")
        assert (await site.get("/v1/events?namespace=shop")).status == 503


async def test_a_request_that_nobody_vouches_for_sees_nothing(tmp_path: Path) -> None:
    async with Site(tmp_path, viewer=NOBODY) as site:
        for _, path in paths(site):
            answer = await site.get(path)
            assert answer.status != 200 or path.partition("?")[0] in OPEN, path


async def test_who_may_list_clusters_sees_them_with_their_own_bindings_and_no_others(tmp_path: Path) -> None:
    found = []
    for more in (0, 8):
        folder = tmp_path / str(more)
        folder.mkdir()
        async with Site(
            folder, clusters=clusters(), bindings=bindings(others=more), viewer=OF_CLUSTERS
        ) as site:
            pages = [
                await site.get(path)
                for path in ("/clusters?sort=bindings", "/clusters/eu-1", "/v1/clusters/eu-1")
            ]
            closed = [await site.get(path) for path in ("/clusters/eu-1/why-not", "/survive/cluster/eu-1")]
            missing = await site.get("/clusters/none")
        assert [each.status for each in (*pages, *closed, missing)] == [200, 200, 200, 403, 403, 404]
        found.append([without_times(each.text) for each in pages])
    assert found[0] == found[1]
    lists, cluster_page, fields = found[0]
    assert f"{CANARY}-taint=1:PreferNoSchedule" in cluster_page
    assert '"holds": ["shop/web-deployment"]' in fields.replace("\n", "").replace("  ", "")
    assert "/b/shop/web-deployment" in cluster_page
    assert f"{CANARY}-2" in lists
    async with Site(tmp_path, clusters=clusters(), bindings=bindings(), viewer=DEVELOPER) as site:
        there, away = [await site.get(f"/clusters/{name}") for name in ("eu-1", "none")]
    assert (there.status, away.status) == (403, 403)
    assert without_times(there.text).replace("eu-1", "none") == without_times(away.text)


async def test_a_link_by_the_name_of_the_workload_leads_to_its_binding(site: Site) -> None:
    async with site:
        for kind in ("Deployment", "deployment"):
            found = await site.get(f"/w/shop/{kind}/web")
            assert (found.status, found.headers["Location"]) == (302, "/b/shop/web-deployment")
        missing = await site.get("/w/shop/StatefulSet/web")
        assert (missing.status, "no policy has selected it" in missing.page.text) == (404, True)
        there, away = [
            await site.get(f"/w/{namespace}/Deployment/{CANARY}-0")
            for namespace in (f"{CANARY}-ns", "nowhere-ns")
        ]
        assert there.status == away.status == 403
        assert there.text.replace(f"{CANARY}-ns", "X") == away.text.replace("nowhere-ns", "X")


async def test_the_home_of_a_namespace_has_its_bindings_and_is_refreshed_by_them_alone(site: Site) -> None:
    async with site:
        home = await site.get("/n/shop?q=web")
        listed = await site.get("/bindings?namespace=shop&q=web")
    assert home.status == 200
    assert "web-deployment" in home.page.text
    assert home.page.attributes("body", "data-namespace") == ["shop"]
    assert home.page.attributes("body", "data-stamp") == listed.page.attributes("body", "data-stamp")
