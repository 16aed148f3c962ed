"""The pages about losses: computed ahead in slices, and shown with their age."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from karmada_advisor.web.computing import JobEndedError
from tests.commands import run
from tests.unit.survive.test_command import CLUSTERS, _bindings
from tests.unit.survive.test_taints import _policy
from tests.unit.web.site import Site, write


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with Site(tmp_path, clusters=CLUSTERS, bindings=_bindings()) as served:
        yield served


def _work(site: Site) -> int:
    """Work ahead until nothing is left; return the number of slices."""
    return next(number for number in count(1) if not site.answers.work_ahead())


async def test_before_the_first_report_the_page_says_so_and_the_data_come_later(site: Site) -> None:
    assert "Not decided yet." in (await site.get("/survive")).page.text
    assert (await site.get("/v1/survive")).status == 503
    lost = await site.get("/survive/cluster/a")
    assert (lost.status, lost.headers["Refresh"]) == (503, "2")


async def test_the_pages_show_what_the_command_prints(site: Site) -> None:
    _work(site)
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
    _work(site)
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
    _work(site)
    lost = (await site.get("/survive/cluster/a")).page.text
    assert "Any one of these mends it:" in lost
    assert "Add c to clusterNames; needs the owner's word" in lost
    assert "--feature-gates=Failover=true" in (await site.get("/survive")).page.text


async def test_a_step_that_takes_too_long_leaves_a_report_without_remedies(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*_: object) -> object:
        raise JobEndedError

    monkeypatch.setattr("karmada_advisor.survive.remedies.Remedies.steps", too_long)
    with pytest.raises(JobEndedError):
        _work(site)
    site.answers.start_again()
    _work(site)
    assert (await site.get("/v1/survive")).fields["remedies"] == []


def _end(_: int) -> None:
    raise JobEndedError


async def test_a_fleet_that_is_too_large_for_a_report_is_given_up_for_some_time_and_the_page_says_so(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def too_long(*_: object, **__: object) -> Iterator[None]:
        begun.append(1)
        return map(_end, (1,))

    monkeypatch.setattr("karmada_advisor.cli.web.idle_work.report_steps", too_long)
    with pytest.raises(JobEndedError):
        _work(site)
    site.answers.start_again()
    site.reader.read()
    _work(site)
    assert len(begun) == 1
    assert "too large for a report on the page" in (await site.get("/survive")).page.text


async def test_cluster_taint_policies_of_a_file_evict_by_themselves(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(_policy()))
    flags = [f"--taint-policies={policy}"]
    async with Site(tmp_path, flags=flags, clusters=CLUSTERS, bindings=_bindings()) as site:
        _work(site)
        text = (await site.get("/survive")).page.text
        assert "add NoExecute taints (example.com/down) to 4 clusters that are not ready" in text


async def test_a_binding_a_cluster_and_the_fleet_say_what_a_loss_would_do(site: Site) -> None:
    _work(site)
    assert (
        "Lost with: cluster a (unplaced, dark )" in (await site.get("/b/default/pinned-deployment")).page.text
    )
    assert "If it is lost: 1 dark, 3 replicas missing" in (await site.get("/clusters/a")).page.text
    assert "is a single point of failure" in (await site.get("/")).page.text


async def test_the_metrics_have_the_figures_once_there_is_a_report(site: Site) -> None:
    assert "survive" not in (await site.get("/metrics")).text
    _work(site)
    text = (await site.get("/metrics")).text
    assert 'karmada_scheduler_survive_spofs{kind="cluster"} 1.0' in text
    assert "karmada_scheduler_survive_report_complete 1.0" in text


async def test_a_report_about_objects_that_have_changed_says_so(site: Site) -> None:
    _work(site)
    assert "have changed since" not in (await site.get("/survive")).page.text
    write(site.files[1], _bindings()[:1])
    site.reader.read()
    assert "from objects that have changed since" in (await site.get("/survive")).page.text


async def test_work_that_was_ended_half_way_is_begun_again(site: Site) -> None:
    site.answers.start_again()
    _work(site)
    assert (await site.get("/v1/survive")).status == 200
