"""Who may do a change sees what it would do to their bindings, and of those of others numbers in steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.web.plan_rights import MOST_PARTS
from karmada_advisor.web.viewer import LIST_BINDINGS, LIST_CLUSTERS, Viewer
from karmada_scheduler.api.well_known import POLICY_ID_LABEL
from karmada_scheduler.client.permissions import Permission
from karmada_scheduler.client.reviews import ReviewUnavailableError
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.web.site import Answer, Site, without_times
from tests.unit.web.test_viewer import DEVELOPER, OF_CLUSTERS

Manifest = dict[str, Any]
_ID = {POLICY_ID_LABEL: "id-of-web"}


def policy(
    *names: str, kind: str = "PropagationPolicy", name: str = "web", namespace: str = "shop"
) -> Manifest:
    """Return a policy that lets the Deployment web be duplicated to clusters."""
    place = {"namespace": namespace} if kind == "PropagationPolicy" else {}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **place, "labels": _ID},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": namespace}
            ],
            "placement": {"clusterAffinity": {"clusterNames": list(names)}},
        },
    }


def _claimed(made: BindingBuilder) -> BindingBuilder:
    made.manifest()["metadata"]["labels"] = _ID
    prefix = "propagationpolicy.karmada.io"
    return made.annotation(f"{prefix}/namespace", "shop").annotation(f"{prefix}/name", "web")


def site_of(folder: Path, viewer: Viewer = DEVELOPER, *, others: int = 12) -> Site:
    """Return a page about two bindings of shop, and some of pay that leave eu-1 when it goes."""
    web = _claimed(binding("web", namespace="shop").replicas(2, cpu="1").names("eu-1").on(**{"eu-1": 2}))
    web.condition(type="Scheduled", status="True", reason="Success", message="all fine")
    job = binding("job", namespace="shop").replicas(1).names("eu-2").on(**{"eu-2": 1})
    job.manifest()["spec"]["resource"] |= {"apiVersion": "batch/v1", "kind": "Job"}
    theirs = [
        binding(f"theirs-{number}", namespace="pay").replicas(1, cpu="9").dynamic_weight().on(**{"eu-1": 1})
        for number in range(others)
    ]
    existing = folder / "policies.json"
    existing.write_text(json.dumps(policy("eu-1")))
    return Site(
        folder,
        clusters=[
            cluster(name).capacity(cpu=20, memory="99Gi", pods=99) for name in ("eu-1", "eu-2", "far-1")
        ],
        bindings=[web, job, *theirs],
        viewer=viewer,
        flags=(f"--policies={existing}",),
    )


def may(*allowed: str) -> Viewer:
    """Return a developer of shop who may do what ``kubectl auth can-i`` would be asked, with the namespace in front."""

    async def found(permission: Permission, namespace: str) -> bool:
        is_list = (permission, namespace) == (LIST_BINDINGS, "shop")
        return is_list or f"{namespace}:{permission}" in allowed

    return replace(DEVELOPER, may=found)


UPDATES = "shop:update propagationpolicies.policy.karmada.io/web"


async def plan(site: Site, *policies: Manifest, **form: str) -> Answer:
    text = "\n---\n".join(map(json.dumps, policies))
    return await site.get("/v1/plan", "POST", form={"policy": text, **form})


def _message(answer: Answer) -> str:
    return str(answer.fields["error"]["message"])


async def test_who_may_update_a_policy_sees_what_it_does_to_their_bindings(tmp_path: Path) -> None:
    async with site_of(tmp_path, may(UPDATES)) as site:
        form = {"policy": json.dumps(policy("eu-2", "far-1"))}
        found = (await site.get("/v1/plan", "POST", form=form)).fields
        page = (await site.get("/plan", "POST", form=form)).page

    assert found["kind"] == "SeenPlan"
    assert found["changes"] == ["PropagationPolicy/shop/web as given"]
    [row] = found["bindings"]
    assert (row["name"], row["effect"], row["before"]) == (
        "web-deployment",
        "moved",
        [{"name": "eu-1", "replicas": 2}],
    )
    assert [each["name"] for each in row["after"]] == ["eu-2", "far-1"]
    assert {each["count"] for each in found["others"]} == {"0"}
    assert (found["loads"], found["warnings"], found["blocked"]) == ([], [], [])
    for part in ("1 binding of yours would not stay as it is", "far-1", "They would stay as they are"):
        assert part in page.text
    assert "Markdown" not in page.text
    assert not page.attributes("option", "value")


@pytest.mark.parametrize(
    ("form", "missing"),
    [
        ({}, "update propagationpolicies.policy.karmada.io/web in the namespace shop"),
        ({"name": "gone"}, "update propagationpolicies.policy.karmada.io/gone in the namespace shop"),
        ({"namespace": "pay"}, "update propagationpolicies.policy.karmada.io/web in the namespace pay"),
        (
            {"kind": "ClusterPropagationPolicy"},
            "update clusterpropagationpolicies.policy.karmada.io/web",
        ),
    ],
)
async def test_a_policy_is_planned_by_those_who_may_update_it(
    tmp_path: Path, form: dict[str, str], missing: str
) -> None:
    async with site_of(tmp_path, may()) as site:
        answer = await plan(site, policy("eu-2", **form))
        page = await site.get("/plan", "POST", form={"policy": json.dumps(policy("eu-2", **form))})

    assert (answer.status, page.status) == (403, 403)
    assert f"{DEVELOPER.name} may not {missing}. A plan is for" in _message(answer)


async def test_a_policy_that_does_not_exist_is_planned_by_those_who_may_create_it(tmp_path: Path) -> None:
    updates = "shop:update propagationpolicies.policy.karmada.io/new"
    creates = "shop:create propagationpolicies.policy.karmada.io"
    new = policy("eu-2", name="new")
    async with site_of(tmp_path, may(updates)) as site:
        refused = await plan(site, new)
    async with site_of(tmp_path, may(updates, creates)) as site:
        answer = await plan(site, new)

    assert (refused.status, answer.status) == (403, 200)
    assert "may not create propagationpolicies.policy.karmada.io in the namespace shop" in _message(refused)


@pytest.mark.parametrize(
    ("flag", "verb"), [("without", "delete"), ("cordon", "update"), ("uncordon", "update")]
)
async def test_a_cluster_is_changed_by_those_who_may_and_refused_whether_it_exists_or_not(
    tmp_path: Path, flag: str, verb: str
) -> None:
    right = f":{verb} clusters.cluster.karmada.io/"
    async with site_of(tmp_path, may(f"{right}eu-1", f"{right}gone")) as site:
        allowed = await site.get(f"/v1/plan?{flag}=eu-1")
        there, away = [await site.get(f"/v1/plan?{flag}={name}") for name in ("far-1", "far-9")]
        both = await site.get(f"/v1/plan?{flag}=eu-1,far-1")
        missing = await site.get(f"/v1/plan?{flag}=gone")

    # A cluster that is not cordoned cannot be uncordoned; texts of errors are not shown.
    assert allowed.status == (422 if flag == "uncordon" else 200)
    assert (there.status, away.status, both.status) == (403, 403, 403)
    assert (
        there.text.replace("far-1", "X") == away.text.replace("far-9", "X") == both.text.replace("far-1", "X")
    )
    assert (missing.status, _message(missing)) == (422, "cluster gone does not exist")
    if flag == "uncordon":
        assert "it changes nothing, it cannot be applied" in _message(allowed)


async def test_others_are_counted_in_steps(tmp_path: Path) -> None:
    counts = []
    for others in (0, 1, 9, 10, 14):
        folder = tmp_path / str(others)
        folder.mkdir()
        async with site_of(folder, others=others) as site:
            found = (await site.get("/v1/plan?without=eu-1")).fields
            page = (await site.get("/plan?without=eu-1")).page.text
        counts.append({each["name"]: each["count"] for each in found["others"]}["moved"])
        assert ("pay" in page, "far-1" in page) == (False, False)
        assert [(each["namespace"], each["name"]) for each in found["bindings"]] == [
            ("shop", "web-deployment")
        ]
        assert found["bindings"][0]["reason"] == "NoClusterFit"
    assert counts == ["0", "1-9", "1-9", "10-99", "10-99"]


async def test_who_may_list_clusters_sees_what_is_asked_of_them(tmp_path: Path) -> None:
    async with site_of(tmp_path, OF_CLUSTERS) as site:
        found = (await site.get("/v1/plan?without=eu-1")).fields
        page = (await site.get("/plan?without=eu-1")).page

    assert found["loads"] == [
        {"name": "eu-1", "stops": 2, "starts": 0, "over": []},
        {"name": "eu-2", "stops": 0, "starts": 0, "over": ["cpu"]},
    ]
    assert "far-1" in page.attributes("option", "value")
    assert "More asked than free" in page.text


async def test_the_workload_of_a_scale_is_found_before_its_right_and_after_its_namespace(
    tmp_path: Path,
) -> None:
    async with site_of(tmp_path, may("shop:update deployments.apps/scale/web")) as site:
        found = (await site.get("/v1/plan?scale=shop/web=5")).fields
        there, away = [await site.get(f"/v1/plan?scale=pay/{name}=5") for name in ("theirs-1", "x")]
        missing = await site.get("/v1/plan?scale=shop/x=5")
        job = await site.get("/v1/plan?scale=shop/job=5")
    async with site_of(tmp_path, may("shop:update deployments.apps/scale/x")) as site:
        refused = await site.get("/v1/plan?scale=shop/web=5")

    assert found["changes"] == ["Deployment/shop/web has 5 replicas"]
    assert [(each["name"], each["starts"]) for each in found["bindings"]] == [("web-deployment", 3)]
    assert (there.status, there.text) == (away.status, away.text) == (403, there.text)
    assert missing.status == 422
    assert (job.status, "scaling a Job" in _message(job)) == (403, True)
    assert (refused.status, "may not update deployments.apps/scale/web" in _message(refused)) == (403, True)


async def test_one_refused_part_refuses_all_and_nothing_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site_of(tmp_path, may(UPDATES)) as site:
        monkeypatch.setattr(site.answers, "plan", None)
        answers = [
            await plan(site, policy("eu-2"), cordon="eu-1"),
            await plan(site, policy("eu-2"), scale="shop/web=5"),
            await plan(site, policy("eu-2"), {**policy(), "kind": "Cluster"}),
            await plan(site, policy("eu-2"), {**policy(), "kind": "WorkloadRebalancer"}),
            await plan(site, *(policy(name=f"web-{number}") for number in range(MOST_PARTS + 1))),
        ]
        nothing = await plan(site, cordon=",")

    assert [each.status for each in answers] == [403] * 5
    assert (nothing.status, _message(nothing)) == (422, "there is no change")


@pytest.mark.parametrize("form", [{"policy": "{"}, {"scale": "shop"}, {"scale": "web=2"}])
async def test_what_was_written_is_said_to_be_wrong(tmp_path: Path, form: dict[str, str]) -> None:
    async with site_of(tmp_path) as site:
        answer = await site.get("/v1/plan", "POST", form=form)

    assert answer.status in {400, 422}


async def test_warnings_are_codes_and_those_that_tell_of_others_are_for_who_may_list_clusters(
    tmp_path: Path,
) -> None:
    written = policy("nowhere")
    written["spec"]["placement"]["clusterTolerations"] = [{"key": "gpus", "operator": "Exists"}]
    written["spec"]["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 9}]
    found = []
    for viewer in (DEVELOPER, OF_CLUSTERS):
        async with site_of(tmp_path, viewer) as site:
            found.append([each["code"] for each in (await plan(site, written)).fields["warnings"]])

    assert found == [["ClusterUnknown"], ["ClusterUnknown", "TooFewGroups"]]


async def test_what_the_change_does_not_do_by_itself_names_no_cluster_of_others(tmp_path: Path) -> None:
    """A guard, a suspension or the next rebalance: a target is no effect of the change."""
    waiting = binding("web", namespace="shop").replicas(2).names("eu-1").on(**{"eu-1": 2}).suspended()
    folder = tmp_path / "waiting"
    folder.mkdir()
    (folder / "policies.json").write_text(json.dumps(policy("eu-1")))
    async with Site(
        folder,
        clusters=[cluster(name).capacity(cpu=20, pods=99) for name in ("eu-1", "far-1")],
        bindings=[_claimed(waiting)],
        viewer=DEVELOPER,
        flags=(f"--policies={folder / 'policies.json'}",),
    ) as site:
        answer = await plan(site, policy("far-1"))

    [row] = answer.fields["bindings"]
    assert (row["effect"], row["heldBy"], row["later"]) == (
        "held",
        "suspension",
        {"clusters": [], "others": 1},
    )
    assert "far-1" not in answer.text


async def test_while_nobody_knows_the_rights_there_is_no_plan(tmp_path: Path) -> None:
    async def away(_: Permission, __: str) -> bool:
        raise ReviewUnavailableError("the API server is away")

    async with site_of(tmp_path, replace(DEVELOPER, may=away)) as site:
        answer = await plan(site, policy("eu-2"))

    assert (answer.status, answer.headers["Retry-After"]) == (503, "2")


async def test_the_navigation_leads_to_the_form_which_names_nothing(tmp_path: Path) -> None:
    async with site_of(tmp_path) as site:
        page = await site.get("/plan")

    assert (page.status, "/plan" in page.page.attributes("a", "href")) == (200, True)
    assert not page.page.attributes("option", "value")
    assert "eu-1" not in without_times(page.text)


async def test_a_namespace_without_a_hint_is_theirs_if_the_change_is_about_it(tmp_path: Path) -> None:
    async def may_all(permission: Permission, namespace: str) -> bool:
        return permission != LIST_BINDINGS or namespace == "shop"

    viewer = Viewer("dev", (LIST_BINDINGS, LIST_CLUSTERS), may_all)
    async with site_of(tmp_path, viewer) as site:
        named = (await plan(site, policy("eu-2"))).fields
        unnamed = (await site.get("/v1/plan?without=eu-1")).fields

    assert [each["name"] for each in named["bindings"]] == ["web-deployment"]
    assert unnamed["bindings"] == []
