"""The quotas of a namespace: shown in its home to those who may list them there, and never a reason for no page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from karmada_advisor.web.quotas import MOST_ROWS, NamespaceQuotas, QuotaReader, quotas_of
from karmada_advisor.web.viewer import EVERYBODY, LIST_QUOTAS, Viewer
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.client.reviews import ReviewUnavailableError
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding
from tests.unit.web.site import Site
from tests.unit.web.test_authorization import PEER, Plane, authorization_by
from tests.unit.web.test_viewer import CANARY, DEVELOPER, OF_CLUSTERS, bindings, clusters, with_permission

Object = dict[str, Any]


WITH_QUOTAS: Final = with_permission(DEVELOPER, LIST_QUOTAS)


def quota(
    name: str, limits: Mapping[str, object], used: Mapping[str, object], *, namespace: str = "shop"
) -> Object:
    """Return a quota; what names clusters in it is not shown to anybody."""
    assignment = {"clusterName": f"{CANARY}-9", "hard": {"cpu": 977}}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"overall": dict(limits), "staticAssignments": [assignment]},
        "status": {"overallUsed": dict(used), "aggregatedStatus": [assignment]},
    }


TEAM: Final = quota("team", {"cpu": 96, "memory": "100Gi", "pods": "5"}, {"cpu": "84", "memory": "120Gi"})
OTHERS: Final = quota(f"{CANARY}-quota", {f"{CANARY}.io/gpu": "7"}, {}, namespace=f"{CANARY}-ns")


class Quotas:
    """The API server with quotas, whichever namespace is asked for."""

    def __init__(self, found: Sequence[Object] = (), *, problem: ApiError | None = None) -> None:
        self.found, self.problem = found, problem
        self.paths: list[str] = []

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float) -> dict[str, Any]:
        assert (method, timeout <= 1, "limit" in parse_qs(urlsplit(path).query)) == ("GET", True, True)
        self.paths.append(urlsplit(path).path)
        if self.problem is not None:
            raise self.problem
        return {"metadata": {}, "items": list(self.found)}


def path_of(namespace: str) -> str:
    return f"/apis/policy.karmada.io/v1alpha1/namespaces/{namespace}/federatedresourcequotas"


def site(folder: Path, viewer: Viewer, plane: Quotas) -> Site:
    return Site(folder, clusters=clusters(), bindings=bindings(), viewer=viewer, connection=plane)


async def test_the_home_of_a_namespace_has_its_quotas_and_those_of_nobody_else(tmp_path: Path) -> None:
    plane = Quotas([TEAM, OTHERS])
    async with site(tmp_path, WITH_QUOTAS, plane) as shown:
        pages = [await shown.get(path) for path in ("/n/shop", "/bindings?namespace=shop")]
        fields = (await shown.get("/v1/quotas/shop")).fields

    for page in pages:
        assert (
            "quota team cpu 84 / 96 88 % quota team memory 120Gi / 100Gi exceeded quota team pods \N{EN DASH} / 5"
            in page.page.text
        )
        assert CANARY not in page.text
    assert [(each["resource"], each["used"], each["limit"], each["share"]) for each in fields["items"]] == [
        ("cpu", "84", "96", 0.875),
        ("memory", "120Gi", "100Gi", 1.2),
        ("pods", "", "5", None),
    ]
    assert [each["isExceeded"] for each in fields["items"]] == [False, True, False]
    assert fields["kind"] == "QuotaList"
    assert plane.paths == [path_of("shop")]  # kept for a moment


async def test_who_may_not_list_quotas_sees_none_and_none_are_asked_for(tmp_path: Path) -> None:
    plane = Quotas([TEAM])
    async with site(tmp_path, DEVELOPER, plane) as shown:
        page = await shown.get("/n/shop")
        refused = await shown.get("/v1/quotas/shop")

    assert (page.status, "team" in page.text) == (200, False)
    assert (refused.status, f"may not {LIST_QUOTAS} in the namespace shop" in refused.text) == (403, True)
    assert not plane.paths


async def test_a_namespace_of_others_is_refused_before_its_quotas_are_looked_at(tmp_path: Path) -> None:
    viewer = with_permission(DEVELOPER, LIST_QUOTAS, everywhere=True)
    plane = Quotas([OTHERS])
    async with site(tmp_path, viewer, plane) as shown:
        there, away = [
            await shown.get(f"/v1/quotas/{namespace}") for namespace in (f"{CANARY}-ns", "nowhere-ns")
        ]

    assert there.status == away.status == 403
    assert there.text.replace(f"{CANARY}-ns", "X") == away.text.replace("nowhere-ns", "X")
    assert not plane.paths


async def test_while_nobody_knows_whether_they_may_see_quotas_they_see_nothing(tmp_path: Path) -> None:
    async def away(permission: Permission, namespace: str) -> bool:
        if permission == LIST_QUOTAS:
            raise ReviewUnavailableError("the API server is away")
        return await DEVELOPER.may(permission, namespace)

    plane = Quotas([TEAM])
    async with site(tmp_path, replace(DEVELOPER, may=away), plane) as shown:
        answers = [await shown.get(path) for path in ("/n/shop", "/v1/quotas/shop")]

    assert [each.status for each in answers] == [503, 503]
    assert not plane.paths


async def test_who_sees_all_sees_the_quotas_of_each_namespace(tmp_path: Path) -> None:
    plane = Quotas([TEAM, OTHERS])
    async with site(tmp_path, EVERYBODY, plane) as shown:
        page = await shown.get(f"/n/{CANARY}-ns")
        overall = await shown.get("/bindings")

    assert f"{CANARY}-quota {CANARY}.io/gpu \N{EN DASH} / 7" in page.page.text
    assert "team" not in page.text
    assert overall.status == 200
    assert plane.paths == [path_of(f"{CANARY}-ns")]


@pytest.mark.parametrize(
    ("viewer", "shown_text"),
    [
        (WITH_QUOTAS, "Quotas cannot be read at the moment."),
        (EVERYBODY, f"Quotas cannot be read: {CANARY}"),
    ],
)
async def test_quotas_that_cannot_be_read_leave_the_page_and_why_is_for_operators(
    tmp_path: Path, viewer: Viewer, shown_text: str
) -> None:
    plane = Quotas(problem=ApiError(f"{CANARY} is forbidden", code=403))
    async with site(tmp_path, viewer, plane) as shown:
        page = await shown.get("/n/shop")
        data = await shown.get("/v1/quotas/shop")

    assert (page.status, data.status) == (200, 200)
    assert "web-deployment" in page.page.text
    assert shown_text in page.page.text
    assert (CANARY in page.text + data.text) == viewer.sees_all


async def test_a_karmada_without_quotas_and_files_have_none(tmp_path: Path) -> None:
    absent = Quotas(problem=ApiError("no such path", code=404))
    assert await QuotaReader(absent).of("shop") == NamespaceQuotas()
    async with Site(tmp_path, clusters=clusters(), bindings=bindings()) as shown:
        assert (await shown.get("/v1/quotas/shop")).fields["items"] == []


async def test_quotas_are_kept_for_a_moment_and_asked_for_once_at_a_time() -> None:
    now, plane = 0.0, Quotas([TEAM])
    reader = QuotaReader(plane, clock=lambda: now)

    found = await asyncio.gather(*(reader.of("shop") for _ in range(5)))
    assert all(each is found[0] for each in found)
    assert len(plane.paths) == 1
    now = 9.9
    await reader.of("shop")
    assert len(plane.paths) == 1
    now = 10.0
    await reader.of("shop")
    assert len(plane.paths) == 2


async def test_a_reader_who_leaves_does_not_end_the_reading_of_others() -> None:
    go_on = asyncio.Event()

    class Slow(Quotas):
        async def request(self, *arguments: Any, **named: Any) -> dict[str, Any]:
            await go_on.wait()
            return await super().request(*arguments, **named)

    reader = QuotaReader(Slow([TEAM]))
    first, second = (asyncio.create_task(reader.of("shop")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    go_on.set()
    assert len((await second).rows) == 3


async def test_an_api_server_that_does_not_answer_is_waited_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent(Quotas):
        async def request(self, *_: Any, **__: Any) -> dict[str, Any]:
            await asyncio.sleep(60)
            return {}

    monkeypatch.setattr("karmada_advisor.web.quotas._SECONDS", 0.01)
    assert (await QuotaReader(Silent()).of("shop")).problem == "no quotas within 0.01 s"


@pytest.mark.parametrize("namespace", ["..", "", "a/b", "a%2fb", "shop?x", "Shop", "a" * 64, "shop\n"])
async def test_what_is_no_name_of_a_namespace_is_not_asked_for(namespace: str) -> None:
    plane = Quotas([TEAM])
    assert await QuotaReader(plane).of(namespace) == NamespaceQuotas()
    assert not plane.paths


async def test_the_namespaces_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada_advisor.web.quotas._KEPT", 2)
    plane = Quotas()
    reader = QuotaReader(plane)
    for namespace in ("a", "b", "c", "c", "b", "a"):
        await reader.of(namespace)
    assert [path.split("/")[5] for path in plane.paths] == ["a", "b", "c", "a"]


def test_shares_are_exact_and_bounded_and_long_lists_say_that_there_is_more() -> None:
    amounts: Object = {"a": "0", "b": 0, "c": "1e-9", "d": "3", "e": "500m", "f": "-1", "g": "1e1000"}
    used: Object = {"a": "0", "b": "1", "c": "1", "d": "1", "e": "250m", "f": "1", "g": "1e1001"}
    found = quotas_of("shop", {"items": [quota("q", amounts, used)]})
    shares = {each.resource: (each.share, each.is_exceeded) for each in found.rows}
    assert shares == {
        "a": (0.0, False),
        "b": (1.0, True),
        "c": (10.0, True),
        "d": (1 / 3, False),
        "e": (0.5, False),
        "f": (1.0, True),
        "g": (10.0, True),
    }
    many = {f"example.org/{number:02}": "1" for number in range(MOST_ROWS + 1)}
    assert quotas_of("shop", {"items": [quota("q", many, {})]}).has_more
    assert quotas_of("shop", {"metadata": {"continue": "x"}, "items": []}).has_more
    assert quotas_of("shop", {"items": ["no quota", {}, 7]}) == NamespaceQuotas(manifests=[])


async def test_a_quota_that_is_none_is_a_problem_and_no_error() -> None:
    strange = quota("q", {"cpu": "many"}, {})
    assert "cpu" in (await QuotaReader(Quotas([strange])).of("shop")).problem


async def test_the_right_to_list_quotas_is_asked_for_in_the_namespace() -> None:
    plane = Plane(forbidden="clusters", namespaces={"shop"})
    viewer = await authorization_by(plane).viewer({"Authorization": "Bearer good"}, PEER)

    assert isinstance(viewer, Viewer)
    assert [await viewer.sees_quotas(each) for each in ("shop", "pay")] == [True, False]
    asked = {"verb": "list", "group": "policy.karmada.io", "resource": "federatedresourcequotas"}
    assert plane.asked[-2:] == [{**asked, "namespace": each} for each in ("shop", "pay")]


@pytest.mark.parametrize("may_list", [True, False])
async def test_answers_count_the_quotas_that_their_reader_may_list(tmp_path: Path, may_list: bool) -> None:
    new = (
        binding("new", namespace="shop").replicas(2, cpu="1").affinity(clusterNames=["eu-1"]).dynamic_weight()
    )
    own, plane = [*bindings(), new], Quotas([quota("team", {"cpu": 3}, {"cpu": "2"})])
    viewer = with_permission(OF_CLUSTERS, LIST_QUOTAS) if may_list else OF_CLUSTERS
    async with Site(tmp_path, clusters=clusters(), bindings=own, viewer=viewer, connection=plane) as shown:
        explained = (await shown.get("/v1/explain/shop/new-deployment")).fields
        why_not = (await shown.get("/v1/why-not/shop/new-deployment?cluster=eu-1")).fields
        planned = (await shown.get("/v1/plan?scale=shop/web=9")).fields

    is_refused = [each["code"] for each in explained["causes"]][:1] == ["QuotaLimits"]
    has_quota = any(edit["side"] == "quota" for each in why_not["remedies"] for edit in each["edits"])
    is_held = [each["effect"] for each in planned["bindings"] if each["name"] == "web-deployment"] == ["held"]
    assert (is_refused, has_quota, is_held) == (may_list, may_list, may_list)
    answers = [*explained["notes"], *why_not["notes"], *planned["notes"]]
    assert sum("not known" in each and "quota" in each.lower() for each in answers) == (0 if may_list else 3)
    assert bool(plane.paths) == may_list
