"""What the views say, and in which order: the cause in lists, the answer before the objects, nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.web.history import History, HistoryEntry
from karmada_scheduler import command
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster
from tests.unit.web.site import Site
from tests.unit.web.test_viewer import CANARY, DEVELOPER, OF_CLUSTERS, bindings, clusters

WEST = "region=eu-west"
MINE = "/why-not/shop/lost-deployment?cluster="


def west(count: int) -> list[Any]:
    """Return some clusters of a region, and one of another."""
    return [cluster("east").region("eu-east"), *(cluster(f"west{n}").region("eu-west") for n in range(count))]


async def test_a_region_is_asked_about_as_the_command_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    near = binding("web", namespace="shop").replicas(2).names("east").dynamic_weight().on(east=2)
    async with Site(tmp_path, clusters=west(3), bindings=[near], flags=["--timeout=60s"]) as site:
        page = (await site.get(f"/why-not/shop/web-deployment?cluster={WEST}")).page
        served = (await site.get(f"/v1/why-not/shop/web-deployment?cluster={WEST}")).fields
        refused = [
            await site.get(f"/v1/why-not/shop/web-deployment?cluster={each}")
            for each in (f"{WEST}&goal=off", f"{WEST}&replicas=2", "region=eu-wast", "eu-west")
        ]
        asked = (await site.get("/b/shop/web-deployment")).page
    read = [f"--clusters={site.files[0]}", f"--bindings={site.files[1]}", "-o", "json", "--timeout=60s"]
    command.main(["why-not", "-n", "shop", "web-deployment", WEST, *read])
    printed = json.loads(capsys.readouterr().out)
    for found in (served["answer"], printed["answer"]):
        for field, own in (("provenance", "at"), ("search", "seconds"), ("search", "timeoutSeconds")):
            found[field].pop(own)
    assert served == printed
    assert served["kind"] == "WhyNotClusters"
    text = "0 of 3 clusters with region=eu-west have replicas of shop/web-deployment"
    assert text in page.text
    assert "3 clusters West0 is refused: " in page.text.replace("west0 is", "West0 is", 1)
    assert "likewise west1, west2" in page.text
    assert "needs the least. Changes that put replicas on west0" in page.text
    assert WEST in page.attributes("input", "value")
    assert WEST in asked.attributes("option", "value")
    assert [each.status for each in refused] == [400, 400, 404, 404]
    assert "nearest: region=eu-west" in refused[2].text
    assert "eu-west is a region: why-not web-deployment region=eu-west" in refused[3].text


async def test_a_region_that_has_replicas_is_not_searched(tmp_path: Path) -> None:
    near = binding("web", namespace="shop").replicas(2).names("east").dynamic_weight().on(east=2)
    async with Site(tmp_path, clusters=west(1), bindings=[near]) as site:
        text = (await site.get("/why-not/shop/web-deployment?cluster=region=eu-east")).page.text
    assert "1 of 1 cluster with region=eu-east has replicas" in text
    assert "Changes that" not in text


async def test_who_may_list_clusters_asks_about_a_region_with_the_amounts_of_their_workload(
    tmp_path: Path,
) -> None:
    async with Site(tmp_path, clusters=clusters(), bindings=bindings(), viewer=OF_CLUSTERS) as site:
        text = (await site.get(f"{MINE}region={CANARY}-region")).page.text
        fields = (await site.get(f"/v1{MINE}region={CANARY}-region")).fields
    assert f"0 of 1 cluster with region={CANARY}-region have replicas of shop/lost-deployment" in text
    assert "request 10000m cpu instead of 500; 10001m is not enough" in text
    assert "you may not list" in fields["notJudged"][0]


async def test_a_question_without_clusters_names_the_missing_right_and_leads_back(tmp_path: Path) -> None:
    async with Site(tmp_path, clusters=clusters(), bindings=bindings(), viewer=DEVELOPER) as site:
        found = [
            await site.get(f"{MINE}{place}") for place in (f"region={CANARY}-region", "region=no", "eu-1")
        ]
        elsewhere = await site.get("/n/kitchen")
        nowhere = replace(DEVELOPER, name="system:serviceaccount:a b:$(id)")
    assert {each.status for each in found} == {403}
    assert len({each.text for each in found}) == 1
    assert "/b/shop/lost-deployment" in found[0].page.attributes("a", "href")
    for part in ("create clusterrole list-clusters --verb=list --resource=clusters.cluster.karmada.io",
                 "--clusterrole=list-clusters --user=system:serviceaccount:shop:dev"):  # fmt: skip
        assert part in found[0].page.text
    for part in ("create role list-resourcebindings -n kitchen --verb=list --resource=resourcebindings.work.",
                 "rolebinding list-resourcebindings -n kitchen --role=list-resourcebindings --user=system:"):  # fmt: skip
        assert part in elsewhere.page.text
    async with Site(tmp_path, clusters=clusters(), bindings=bindings(), viewer=nowhere) as site:
        assert "--user='system:serviceaccount:a b:$(id)'" in (await site.get("/n/kitchen")).page.text


async def test_a_list_has_the_cause_of_a_state_as_long_as_the_binding_is_the_same(tmp_path: Path) -> None:
    lost = (
        binding("lost", namespace="shop").replicas(1).affinity(labelSelector={"matchLabels": {"tier": "x"}})
    )
    lost.condition(
        type="Scheduled", status="False", reason="NoClusterFit", message="0/1 clusters are available"
    )
    async with Site(tmp_path, clusters=[cluster("m1").labels(tier="y")], bindings=[lost]) as site:
        before = (await site.get("/bindings")).page.text
        await site.refresh()
        after = await site.get("/n/shop")
        fleet = (await site.get("/")).page
        known = site.answers.background.causes
        stamps = dict.fromkeys(known.stamps, 0)
        site.answers.background.causes = replace(known, stamps=stamps)
        changed = (await site.get("/bindings")).page.text
    assert "0/1 clusters are available" in before
    assert "No cluster has tier=x" in after.page.text
    assert "0/1 clusters are available" in "".join(after.page.attributes("td", "title"))
    assert "0/1 clusters are available" in changed
    assert not [link for link in fleet.attributes("a", "href") if "reason=" in link]


async def test_the_answer_about_a_binding_that_is_not_placed_comes_before_its_objects(tmp_path: Path) -> None:
    lost = binding("lost", namespace="shop").replicas(1).names("m9").on()
    lost.condition(type="Scheduled", status="False", reason="NoClusterFit", message="0/1 clusters fit")
    good = binding("good", namespace="shop").replicas(1).names("m1").on(m1=1)
    async with Site(tmp_path, clusters=[cluster("m1")], bindings=[lost, good]) as site:
        bad, placed = [(await site.get(f"/b/shop/{name}-deployment")).page.text for name in ("lost", "good")]
    objects = "From the workload to its clusters"
    assert "clusterNames contains" not in bad  # the cause says it
    assert bad.index("What would place it") < bad.index(objects) < bad.index("Why not on cluster")
    assert placed.index(objects) < placed.index("Why not on cluster")
    assert bad.count("decided by default-scheduler") == placed.count("decided by default-scheduler") == 1


async def test_a_history_can_be_reduced_to_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [HistoryEntry("2026-11-28T10:00:00Z", "Deployment", "Fine", "all is well", is_bad=False)]
    async with Site(tmp_path) as site:
        for is_bad in (False, True):
            entries.append(replace(entries[0], reason="Bad", is_bad=is_bad))

            async def history(*_: Any, **__: Any) -> History:
                return History(tuple(entries), has_events=True)

            monkeypatch.setattr(site.answers.__class__, "history", history)
            page = (await site.get("/b/shop/checkout-deployment")).page
            assert ("only what went wrong" in page.text) == is_bad
            assert page.attributes("li", "class").count("went-wrong") == is_bad
            assert set(page.attributes("span", "data-since")) == {"2026-11-28T10:00:00Z"}


async def test_a_plan_begins_with_its_result_and_says_once_what_stays_terminating(tmp_path: Path) -> None:
    stays = binding("web", namespace="shop").replicas(1).names("m1").on(m1=1).suspended()
    async with Site(tmp_path, clusters=[cluster("m1"), cluster("m2")], bindings=[stays]) as site:
        text = (await site.get("/plan?without=m1")).page.text
        form = (await site.get("/plan?without=m9")).page.text
    assert text.index("What changes") < text.index("Another change")
    changes = text[text.index("What changes") : text.index("What would fail")]
    assert changes.count("Terminating") == 1
    assert "web-deployment scheduling is suspended" in changes
    assert form.index("No plan") < form.index("The change")


async def test_a_map_of_losses_explains_the_letters_that_it_has(tmp_path: Path) -> None:
    alone = binding("web", namespace="shop").replicas(1).names("m1").on(m1=1)
    async with Site(tmp_path, clusters=[cluster("m1"), cluster("m2")], bindings=[alone]) as site:
        await site.refresh()
        text = (await site.get("/survive")).page.text
    assert "how many are dark. N not-evicted. A dot: nothing." in text


@pytest.mark.parametrize("viewer", [None, DEVELOPER])
async def test_a_binding_that_cannot_be_read_exists(tmp_path: Path, viewer: Any) -> None:
    broken = binding("web", namespace="shop").replicas(2)
    broken.manifest()["spec"]["replicas"] = "two"
    own, others = bindings(), binding(f"{CANARY}-broken", namespace=f"{CANARY}-ns")
    others.manifest()["spec"]["replicas"] = "two"
    found = [*own[1:], broken, others]
    async with Site(tmp_path, clusters=clusters(), bindings=found, viewer=viewer) as site:
        page, home = await site.get("/b/shop/web-deployment"), await site.get("/n/shop")
        by_workload = await site.get("/w/shop/Deployment/web")
        planned = await site.get("/plan?scale=shop/web=3")
    assert page.status == 422
    assert (
        "ResourceBinding(shop/web-deployment) cannot be read: spec.replicas: expected an integer" in page.text
    )
    assert (by_workload.status, by_workload.headers.get("Location")) == (302, "/b/shop/web-deployment")
    assert "spec.replicas: expected an integer" in home.page.text
    if viewer is None:
        assert "--scale: ResourceBinding(shop/web-deployment) cannot be read" in planned.page.text
    else:
        assert f"{CANARY}-broken" not in home.text
