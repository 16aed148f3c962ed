"""The pages about losses: computed before anybody asks, and shown with their age."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from karmada_advisor.web.answer_worker import TooLongError
from karmada_scheduler.structs import replace
from tests.commands import run
from tests.unit.survive.test_command import CLUSTERS, _bindings
from tests.unit.survive.test_taints import _policy
from tests.unit.web.site import Inline, Site, write

T = TypeVar("T")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with Site(tmp_path, clusters=CLUSTERS, bindings=_bindings()) as served:
        yield served


async def test_before_the_first_report_the_page_says_so_and_the_data_come_later(site: Site) -> None:
    assert "Not decided yet." in (await site.get("/survive")).page.text
    assert (await site.get("/v1/survive")).status == 503
    lost = await site.get("/survive/cluster/a")
    assert (lost.status, lost.headers["Refresh"]) == (503, "2")


async def test_the_pages_show_what_the_command_prints(site: Site) -> None:
    await site.refresh()
    clusters, bindings = site.files
    printed = run("survive", f"--clusters={clusters}", f"--bindings={bindings}", "-o=json").fields
    found = (await site.get("/v1/survive")).fields
    for each in (printed, found):
        each.pop("provenance")
    assert found == printed

    page = (await site.get("/survive")).page
    assert printed["summary"][:40].lower() in page.text.lower()
    links = page.attributes("a", "href")
    assert "/survive/cluster/a" in links
    labels = page.attributes("a", "aria-label")
    assert "unplaced: no cluster takes it; 1 dark of 1" in labels

    lost = (await site.get("/survive/cluster/a")).page.text
    assert "If a is lost" in lost
    assert "1 dark" in lost
    assert "PropagationPolicy default/one, 1 binding Unplaced: no cluster takes it" in lost
    assert (await site.get("/survive/cluster/aa")).status == 404


async def test_each_world_after_a_loss_has_its_own_page_and_data(site: Site) -> None:
    await site.refresh()
    for loss in ("itself", "deleted"):
        clusters, bindings = site.files
        flags = (
            f"--clusters={clusters}",
            f"--bindings={bindings}",
            f"--loss={loss}",
            "-o=json",
            "--no-remedies",
        )
        printed = run("survive", *flags).fields
        found = (await site.get(f"/v1/survive?loss={loss}")).fields
        for each in (printed, found):
            each.pop("provenance")
        assert found == printed
        page = (await site.get(f"/survive?loss={loss}")).page
        assert f"/survive/cluster/a?loss={loss}" in page.attributes("a", "href")
    page = (await site.get("/survive/cluster/a?loss=itself")).page
    assert "2 not-evicted" in page.text
    assert {"/survive/cluster/a", "/survive/cluster/a?loss=deleted", "/survive?loss=itself"} <= {
        *page.attributes("a", "href")
    }
    assert (await site.get("/survive?loss=other")).status == 400


async def test_the_page_of_a_loss_names_edits_after_which_workloads_survive_it(site: Site) -> None:
    await site.refresh()
    lost = (await site.get("/survive/cluster/a")).page.text
    assert "Any one of these mends it:" in lost
    assert "Add c to clusterNames; needs the owner's word" in lost
    assert "--feature-gates=Failover=true" in (await site.get("/survive")).page.text


async def test_a_fleet_that_is_too_large_for_a_report_is_given_up_for_some_time_and_the_page_says_so(
    site: Site,
) -> None:
    begun = []

    class TooSlow(Inline):
        async def run(self, work: Callable[[], T], seconds: float) -> T:
            if seconds < 60:
                return work()
            begun.append(1)
            raise TooLongError("the answer takes more than 600 s")

    for number in (0, 1):
        state = site.answers.state
        await site.answers.background.refresh(TooSlow(), replace(state, number=state.number + number))
    assert len(begun) == 1
    assert "too large for a report on the page" in (await site.get("/survive")).page.text


async def test_cluster_taint_policies_of_a_file_evict_by_themselves(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(_policy()))
    flags = [f"--taint-policies={policy}"]
    async with Site(tmp_path, flags=flags, clusters=CLUSTERS, bindings=_bindings()) as site:
        await site.refresh()
        text = (await site.get("/survive")).page.text
        assert "add NoExecute taints (example.com/down) to 4 clusters that are not ready" in text


async def test_a_binding_a_cluster_and_the_fleet_say_what_a_loss_would_do(site: Site) -> None:
    await site.refresh()
    assert (
        "Lost with: cluster a (unplaced, dark )" in (await site.get("/b/default/pinned-deployment")).page.text
    )
    assert "If it is lost: 1 dark, 3 replicas missing" in (await site.get("/clusters/a")).page.text
    assert "is a single point of failure" in (await site.get("/")).page.text


async def test_the_metrics_have_the_figures_once_there_is_a_report(site: Site) -> None:
    assert "survive" not in (await site.get("/metrics")).text
    await site.refresh()
    text = (await site.get("/metrics")).text
    assert 'karmada_scheduler_survive_spofs{kind="cluster"} 1.0' in text
    assert "karmada_scheduler_survive_report_complete 1.0" in text


async def test_a_report_about_objects_that_have_changed_says_so(site: Site) -> None:
    await site.refresh()
    assert "have changed since" not in (await site.get("/survive")).page.text
    write(site.files[1], _bindings()[:1])
    site.reader.read()
    assert "from objects that have changed since" in (await site.get("/survive")).page.text
