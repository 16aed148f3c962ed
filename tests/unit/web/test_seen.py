"""Who may list the bindings of one namespace learns why they are where they are, and nothing of what that was decided by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.web.jobs import BusyError
from karmada_advisor.web.viewer import Viewer
from karmada_scheduler.testing import binding, cluster
from tests.unit.web.site import Site
from tests.unit.web.test_viewer import DEVELOPER, OF_CLUSTERS


def site_of(folder: Path, viewer: Viewer = DEVELOPER) -> Site:
    """Return a page about a binding that two of four clusters of others could take, and one that names a missing cluster."""
    small = binding("small", namespace="shop").replicas(6, cpu="1").dynamic_weight()
    small.tolerates(key="gpu", operator="Exists").spread("cluster", 2, 2)
    named = binding("named", namespace="shop").replicas(1).names("mine", "nowhere")
    for each in (small, named):
        each.condition(type="Scheduled", status="False", reason="NoClusterFit", message="stored")
    return Site(
        folder,
        clusters=[
            cluster("mine").taint("team=platform:NoSchedule"),
            cluster("eu-1").capacity(cpu=1, memory="9Gi", pods=9),
            cluster("eu-2").capacity(cpu=2, memory="9Gi", pods=9),
            cluster("eu-3").taint("team=platform:NoSchedule"),
        ],
        bindings=[small, named, binding("theirs", namespace="pay").replicas(1)],
        viewer=viewer,
    )


async def fields(site: Site, path: str) -> dict[str, Any]:
    answer = await site.get(path)
    assert answer.status == 200, answer.text
    return answer.fields


async def test_causes_have_their_code_a_sentence_and_what_the_binding_asks_for(tmp_path: Path) -> None:
    async with site_of(tmp_path) as site:
        small = await fields(site, "/v1/explain/shop/small-deployment")
        named = await fields(site, "/v1/explain/shop/named-deployment")
        page = (await site.get("/b/shop/small-deployment")).page.text

    assert small["causes"][0] == {
        "code": "NotEnoughRoom",
        "stage": "capacity",
        "text": "too few replicas fit",
        "asked": ["3 of 6 replicas are missing", "3 cpu"],
        "primary": True,
    }
    assert "Too few replicas fit: 3 of 6 replicas are missing, 3 cpu" in page
    assert [each["asked"] for each in named["causes"] if each["code"] == "ClusterUnknown"] == [["nowhere"]]


async def test_steps_and_refusals_are_numbers_and_changes_are_kinds(tmp_path: Path) -> None:
    async with site_of(tmp_path) as site:
        found = await fields(site, "/v1/explain/shop/small-deployment")

    assert found["stages"][0] == {"name": "FILTER", "before": 4, "after": 2, "decisive": False}
    assert found["refusals"] == [{"plugin": "TaintToleration", "count": 2}]
    assert found["clusters"] == []
    assert [{"side": "workload", "what": "set replicas", "count": 1}] in [
        each["changes"] for each in found["remedies"]
    ]


async def test_clusters_that_the_binding_names_have_rows_without_reasons(tmp_path: Path) -> None:
    async with site_of(tmp_path) as site:
        (row,) = (await fields(site, "/v1/explain/shop/named-deployment"))["clusters"]
        text = (await site.get("/b/shop/named-deployment")).text

    assert row["name"] == "mine"
    assert row["refusedBy"] == ["TaintToleration"]
    assert (row["cause"], row["text"]) == ("UntoleratedTaint", "a taint of the cluster is not tolerated")
    assert "A taint of the cluster is not tolerated" in text
    assert "platform" not in text


async def test_who_may_list_clusters_sees_their_names_and_no_amounts(tmp_path: Path) -> None:
    async with site_of(tmp_path, OF_CLUSTERS) as site:
        found = await fields(site, "/v1/explain/shop/small-deployment")
        asked = await site.get("/v1/why-not/shop/small-deployment?cluster=eu-3")

    assert [each["name"] for each in found["clusters"]] == ["eu-1", "eu-2", "eu-3", "mine"]
    assert [(each["capacity"], each["limitedBy"]) for each in found["clusters"]][:2] == [
        ("not enough", "cpu")
    ] * 2
    assert asked.fields["causes"][0]["code"] == "UntoleratedTaint"


async def test_a_cluster_that_may_not_be_seen_is_refused_whether_it_exists_or_not(tmp_path: Path) -> None:
    async with site_of(tmp_path) as site:
        path = "/v1/why-not/shop/named-deployment?cluster={}"
        there, away = await site.get(path.format("eu-1")), await site.get(path.format("eu-9"))
        mine, gone = await site.get(path.format("mine")), await site.get(path.format("nowhere"))
        anywhere = await site.get("/why-not/shop/named-deployment")

    assert (there.status, there.text) == (away.status, away.text)
    assert there.status == 403
    assert mine.status == anywhere.status == 200
    assert (gone.status, gone.fields["error"]["message"]) == (404, "cluster nowhere does not exist")


@pytest.mark.parametrize("asked", ["replicas=9", "as-new=true"])
async def test_no_question_measures_what_is_free_on_a_cluster(tmp_path: Path, asked: str) -> None:
    async with site_of(tmp_path) as site:
        answer = await site.get(f"/v1/why-not/shop/named-deployment?cluster=mine&{asked}")

    assert answer.status == 403


@pytest.mark.parametrize("problem", [NoAnswerError("cluster eu-1 is broken"), BusyError("Too many wait")])
async def test_what_is_stored_is_shown_although_it_cannot_be_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def explain(*_: object) -> None:
        raise problem

    async with site_of(tmp_path) as site:
        monkeypatch.setattr(site.answers, "explain", explain)
        page = await site.get("/b/shop/named-deployment")
        data = await site.get("/v1/explain/shop/named-deployment")

    assert (page.status, data.status) == (200, 422 if isinstance(problem, NoAnswerError) else 503)
    assert "not placed" in page.page.text
    assert "eu-1" not in page.text + data.text
