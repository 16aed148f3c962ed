"""The pages over files: they show what the commands print, as HTML and as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from karmada_advisor.fleet import process_http
from karmada_advisor.web.answer_worker import BusyError, TooLongError
from karmada_advisor.web.viewer import Viewer
from karmada_pyscheduler.client.permissions import Permission
from karmada_scheduler import command
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.explain.fleet import billing, checkout, fleet
from tests.unit.web.site import Inline, Site, write
from tools.manifests import deployment, policy

PAGES = (
    "/",
    "/clusters",
    "/clusters?sort=cpu&state=tainted",
    "/bindings",
    "/bindings?state=not+placed&namespace=shop",
    "/decisions",
    "/clusters/us-east-1",
    "/clusters/us-east-1/why-not",
    "/b/shop/checkout-deployment",
    "/b/shop/checkout-deployment?rows=all",
    "/b/pay/billing-deployment",
    "/why-not/shop/checkout-deployment?cluster=us-east-1",
    "/why-not/pay/billing-deployment",
    "/b/shop/nothing",
    "/survive",
    "/survive/cluster/us-east-1",
    "/plan",
    "/plan?without=ap-south-1",
    "/plan?cordon=nothing",
)


PATIENT = "--timeout=60s"
"""The search then ends by its number of runs, on a busy machine as well."""


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with Site(tmp_path, flags=[PATIENT]) as served:
        yield served


def _printed(capsys: pytest.CaptureFixture[str], site: Site, *arguments: str) -> dict[str, Any]:
    clusters, bindings = site.files
    command.main([*arguments, f"--clusters={clusters}", f"--bindings={bindings}", "--output=json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


async def test_the_fleet_page_has_the_answer_first_and_a_tile_per_cluster(site: Site) -> None:
    page = (await site.get("/")).page
    assert "8 clusters, 2 bindings" in page.text
    assert {f"/clusters/{each.build().name}" for each in fleet()} <= set(page.attributes("a", "href"))


async def test_the_page_of_a_binding_has_state_placement_cause_and_the_decisive_step(site: Site) -> None:
    text = (await site.get("/b/shop/checkout-deployment")).page.text
    for part in ("placed", "ap-south-1", "RegionTie", "determines the answer", "tied with eu-west + us-east"):
        assert part in text


async def test_the_json_of_a_binding_is_what_explain_prints(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("checkout", "billing"):
        namespace = {"checkout": "shop", "billing": "pay"}[name]
        served = (await site.get(f"/v1/explain/{namespace}/{name}-deployment")).fields
        printed = _printed(capsys, site, "explain", f"--namespace={namespace}", f"{name}-deployment", PATIENT)
        for found in (served, printed):
            found["provenance"].pop("at")
            (found["remedySearch"] or {}).pop("seconds", None)
        assert served == printed


async def test_the_json_of_why_not_is_what_the_command_prints(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    served = (await site.get("/v1/why-not/shop/checkout-deployment?cluster=us-east-1")).fields
    printed = _printed(
        capsys, site, "why-not", "--namespace=shop", "checkout-deployment", "us-east-1", PATIENT
    )
    for found in (served, printed):
        found["provenance"].pop("at")
        found["search"].pop("seconds")
    assert served == printed
    assert served["remedies"]


async def test_the_json_of_a_cluster_s_question_is_what_the_command_prints(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    served = (await site.get("/v1/clusters/us-east-1/why-not")).fields
    printed = _printed(capsys, site, "why-not", "--cluster=us-east-1")
    for found in (served, printed):
        found["provenance"].pop("at")
    assert served == printed


async def test_the_json_of_a_plan_is_what_the_command_prints(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    served = (await site.get("/v1/plan?without=eu-west-1")).fields
    printed = _printed(capsys, site, "plan", "--without=eu-west-1")
    for found in (served, printed):
        found["provenance"].pop("at")
    assert served == printed
    text = (await site.get("/plan?without=eu-west-1")).page.text
    assert "Cluster/eu-west-1" in text


async def test_a_plan_decides_as_the_running_scheduler_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    configuration = {
        "profiles": [{"schedulerName": "default-scheduler"}],
        "plugins": ["*", "-TaintToleration"],
    }
    state = {"process": "karmada-pyscheduler-1", "configuration": {**configuration, "file": None}}
    monkeypatch.setattr(process_http, "get", lambda *_: (200, state))
    waiting = binding("web").replicas(2).dynamic_weight()
    of_fleet = [cluster("m1").taint("tier=gold:NoSchedule"), cluster("m2")]
    flags = ["--from=http://localhost:10353"]
    async with Site(tmp_path, clusters=of_fleet, bindings=[waiting], flags=flags) as served:
        found = (await served.get("/v1/plan?without=m2")).fields
    [planned] = found["bindings"]
    assert [each["name"] for each in planned["after"]] == ["m1"]


async def test_a_policy_is_planned_as_it_was_pasted(site: Site) -> None:
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "checkout", "namespace": "shop"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"}],
            "placement": {"clusterAffinity": {"clusterNames": ["eu-west-2"]}},
        },
    }
    form = {"policy": json.dumps(policy), "cordon": "eu-west-1"}
    answer = await site.get("/plan", "POST", form=form)
    assert (answer.status, "PropagationPolicy/shop/checkout" in answer.page.text) == (200, True)
    assert "Cluster/eu-west-1" in answer.page.text
    assert not [link for link in answer.page.attributes("a", "href") if "policy" in link or "/v1/" in link]
    found = await site.get("/v1/plan", "POST", form=form)
    assert [each["object"] for each in found.fields["changes"]][:1] == ["PropagationPolicy/shop/checkout"]
    unknown = json.dumps(policy).replace("eu-west-2", "eu-west-9")
    text = (await site.get("/plan", "POST", form={"policy": unknown})).page.text
    for part in ("Warnings: 1", "ClusterUnknown", "eu-west-9"):
        assert part in text, part


@pytest.mark.parametrize("path", ["/plan", "/v1/plan"])
async def test_a_policy_in_an_address_is_refused(site: Site, path: str) -> None:
    answer = await site.get(f"{path}?policy=kind")
    assert (answer.status, "in the body of a POST" in answer.text) == (400, True)


async def test_the_form_of_a_plan_is_sent_as_a_body(site: Site) -> None:
    [form] = [
        attributes
        for tag, attributes in (await site.get("/plan")).page.elements
        if tag == "form" and attributes["action"] == "/plan"
    ]
    assert form["method"] == "post"


async def test_a_policy_of_aliases_is_refused_before_it_is_expanded(site: Site) -> None:
    text = (
        "x: &v ["
        + "x," * 900
        + "]\ny: &e ["
        + "*v," * 550
        + "]\nz: &t ["
        + "*e," * 550
        + "]\nw: ["
        + "*t," * 550
        + "]"
    )
    answer = await site.get("/plan", "POST", form={"policy": text})
    assert answer.status == 200
    assert "the policy: document 1: line 2, column " in answer.page.text
    assert "the aliases stand for more than" in answer.page.text


async def test_a_change_that_cannot_be_made_is_said_next_to_the_form(site: Site) -> None:
    for form in ({"policy": "{"}, {"without": "nothing"}, {"scale": "x"}):
        answer = await site.get("/plan", "POST", form=form)
        assert (answer.status, "No plan" in answer.page.text) == (200, True), form
        assert (await site.get("/v1/plan", "POST", form=form)).status == 422
    assert "No plan" in (await site.get("/plan?without=nothing")).page.text
    assert (await site.get("/v1/plan")).status == 400


@pytest.mark.parametrize(("error", "status"), [(BusyError("full"), 503), (TooLongError("long"), 422)])
async def test_an_answer_that_there_is_not_says_whether_to_ask_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Inline, "answer", refuse)
    again = "2" if status == 503 else None
    for path in ("/b/shop/checkout-deployment", "/v1/explain/shop/checkout-deployment"):
        answer = await site.get(path)
        assert (answer.status, str(error) in answer.text) == (status, True)
        assert answer.headers.get("Retry-After") == answer.headers.get("Refresh") == again
    answer = await site.get("/v1/plan", "POST", form={"without": "eu-west-1"})
    assert (answer.headers.get("Retry-After"), answer.headers.get("Refresh")) == (again, None)


async def test_why_not_has_verified_changes_and_their_patches(site: Site) -> None:
    page = (await site.get("/why-not/shop/checkout-deployment?cluster=us-east-1")).page
    assert "25 replicas" in page.text
    assert '"op": "replace"' in page.text or '"op": "add"' in page.text
    assert "none of their parts can be left out" in page.text


async def test_why_not_without_a_cluster_asks_what_places_the_binding(site: Site) -> None:
    text = (await site.get("/why-not/pay/billing-deployment")).page.text
    assert "No decision yet" in text
    assert "not placed, not decided yet" in text
    assert "Changes that place it" in text


async def test_the_goal_and_the_number_of_replicas_are_part_of_the_question(site: Site) -> None:
    found = (await site.get("/v1/why-not/shop/checkout-deployment?cluster=us-east-1&replicas=5")).fields
    assert found["goal"] == {"type": "onCluster", "replicas": 5, "asNew": False}
    found = (await site.get("/v1/why-not/shop/checkout-deployment?cluster=eu-west-1&goal=off")).fields
    assert found["goal"]["type"] == "offCluster"


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_obeys_its_own_content_security_policy(site: Site, path: str) -> None:
    answer = await site.get(path)
    page = answer.page
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert not page.attributes("style", "type")
    assert "style" not in {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag
        for name in ("href", "src", "action"):
            target = attributes.get(name, "/")
            assert target.startswith(("/", "?", "#")), (tag, target)
            assert not target.startswith("//"), (tag, target)
    assert [attributes["src"] for tag, attributes in page.elements if tag == "script"] == [
        attributes["src"] for tag, attributes in page.elements if attributes.get("type") == "module"
    ]


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_has_one_heading_labels_captions_and_distinct_ids(site: Site, path: str) -> None:
    page = (await site.get(path)).page
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    labelled = set(page.attributes("label", "for"))
    for tag, attributes in page.elements:
        if tag in {"input", "select"}:
            assert attributes["id"] in labelled
        if tag == "th":
            assert attributes["scope"] in {"col", "row"}


@pytest.mark.parametrize(
    "path", ["/", "/clusters", "/bindings", "/decisions", "/b/pay/billing-deployment", "/clusters/us-east-1"]
)
async def test_every_link_of_a_page_leads_somewhere(site: Site, path: str) -> None:
    page = (await site.get(path)).page
    base = path.partition("?")[0]
    for target in set(page.attributes("a", "href")):
        plain = target.partition("#")[0]
        if plain:
            answer = await site.get(base + plain if plain.startswith("?") else plain)
            assert answer.status == (404 if plain.startswith("/b/shop/nothing") else 200), target


async def test_an_unknown_binding_or_cluster_is_not_found_with_the_nearest_name(site: Site) -> None:
    found = await site.get("/b/shop/chekout-deployment")
    assert (found.status, "Nearest: shop/checkout-deployment" in found.page.text) == (404, True)
    found = await site.get("/clusters/us-east-9")
    assert (found.status, "Nearest: us-east-" in found.page.text) == (404, True)
    found = await site.get("/v1/why-not/shop/checkout-deployment?cluster=us-east-9")
    assert (found.status, "us-east-9 does not exist" in found.fields["error"]["message"]) == (404, True)


@pytest.mark.parametrize(
    "path",
    [
        "/clusters?sort=colour",
        "/v1/clusters?limit=0",
        "/v1/bindings?limit=501",
        "/clusters?after=gone",
        "/bindings?after=x",
        "/bindings?before=1.x",
        "/clusters/us-east-1?after=/",
        "/v1/why-not/shop/checkout-deployment?replicas=-1",
    ],
)
async def test_a_parameter_that_cannot_be_used_is_refused(site: Site, path: str) -> None:
    assert (await site.get(path)).status == 400


async def test_a_foreign_host_is_refused(tmp_path: Path) -> None:
    async with Site(tmp_path, hosts=frozenset({"page.example"})) as site:
        assert (await site.get("/", Host="evil.example")).status == 421
        assert (await site.get("/", Host="page.example")).status == 200
        assert (await site.get("/", Host=f"localhost:{site.port}")).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_but_get_is_answered(site: Site, method: str) -> None:
    for path in ("/", "/b/shop/checkout-deployment", "/v1/fleet"):
        assert (await site.get(path, method)).status == 405


async def test_files_that_pages_refer_to_are_kept_by_the_browser_and_pages_are_not(site: Site) -> None:
    answer = await site.get("/")
    assert answer.headers["Cache-Control"] == "no-store"
    files = [*answer.page.attributes("link", "href"), *answer.page.attributes("script", "src")]
    assert len(files) == 3
    for each in files:
        found = await site.get(each)
        assert (found.status, "immutable" in found.headers["Cache-Control"]) == (200, True)


HOSTILE = "<img src=x onerror=alert(1)>\"'&lt;"


async def test_names_and_texts_are_shown_as_they_are_and_never_as_markup(tmp_path: Path) -> None:
    clusters = [
        cluster(HOSTILE)
        .region(HOSTILE)
        .label(HOSTILE, HOSTILE)
        .taint(f"{HOSTILE.replace('=', '')}:NoSchedule"),
        cluster("m1").capacity(cpu=4, memory="8Gi"),
    ]
    found = binding(HOSTILE, namespace=HOSTILE.replace("/", "")).replicas(2, cpu="1").on(HOSTILE)
    found.condition(type="Scheduled", status="False", reason=HOSTILE, message=HOSTILE)
    found.annotation("propagationpolicy.karmada.io/name", HOSTILE)
    async with Site(tmp_path, clusters=clusters, bindings=[found]) as site:
        key = site.reader.state.contents.objects.bindings[0].key
        from karmada_advisor.web.pages import cluster_path, path_of

        paths = ["/", "/bindings", "/decisions", "/bindings?q=" + HOSTILE.replace("&", "%26")]
        paths += [
            path_of(key.namespace, key.name),
            f"{path_of(key.namespace, key.name, '/why-not')}?cluster=m1",
            cluster_path(HOSTILE),
        ]
        paths += [f"{cluster_path(HOSTILE)}/why-not", "/b/" + "%3Cscript%3E/x", "/clusters/%3Cscript%3E"]
        for path in paths:
            answer = await site.get(path)
            assert answer.status in {200, 404}, path
            images = [attributes for tag, attributes in answer.page.elements if tag == "img"]
            assert [each["src"].startswith("/static/") for each in images] == [True], path
            assert answer.text.count("<script") == 1, path
        assert HOSTILE in (await site.get("/bindings")).page.text


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
async def test_times_at_the_end_of_time_are_shown(tmp_path: Path, moment: str) -> None:
    extreme = [
        binding("web").replicas(2, cpu="1").on(m1=2).evicted_from("m2").last_scheduled(moment),
        binding("job").replicas(2, cpu="1").on(m1=2).last_scheduled(moment).reschedule_triggered(moment),
        binding("new").replicas(9, cpu="1").created(moment).reschedule_triggered(moment),
    ]
    for each in extreme:
        each.created(moment).condition(type="Scheduled", status="False", lastTransitionTime=moment)
    manifests = [each.manifest() for each in extreme]
    task = {"creationTimestamp": moment, "gracePeriodSeconds": 600}
    manifests[0]["spec"]["gracefulEvictionTasks"][0].update(task)
    files = (tmp_path / "clusters.json", tmp_path / "bindings.json")
    write(files[0], [cluster(name).capacity(cpu=4, memory="8Gi") for name in ("m1", "m2")])
    files[1].write_text("\n".join(f"---\n{json.dumps(each)}" for each in manifests))
    async with Site(tmp_path, files=files) as site:
        await site.refresh()
        assert site.answers.background.causes.problems == ()
        for path in (
            "/",
            "/bindings",
            "/decisions",
            "/clusters/m2/why-not",
            "/plan?without=m1",
            "/v1/plan?cordon=m1",
        ):
            assert (await site.get(path)).status == 200, path
        for name in ("web", "job", "new"):
            for path in (f"/b/default/{name}-deployment", f"/why-not/default/{name}-deployment?cluster=m2"):
                assert (await site.get(path)).status == 200, path


async def test_a_fleet_without_clusters_or_bindings_has_pages_as_well(tmp_path: Path) -> None:
    async with Site(tmp_path, clusters=[cluster("m1").without_summary()], bindings=[binding("web")]) as site:
        text = (await site.get("/")).page.text
        assert "1 cluster, 1 binding" in text
        assert (await site.get("/clusters/m1")).status == 200
        assert (await site.get("/b/default/web-deployment")).status == 200


async def test_changed_files_are_read_again_while_somebody_looks(site: Site) -> None:
    before = site.reader.state
    assert "6 replicas" in (await site.get("/b/pay/billing-deployment")).page.text

    write(site.files[1], [checkout(), billing().replicas(7, cpu="250m", memory="512Mi")])
    site.reader.read()
    assert site.reader.state.number == before.number + 1
    assert "7 replicas" in (await site.get("/b/pay/billing-deployment")).page.text


async def test_a_page_that_starts_says_how_far_it_is_and_comes_by_itself(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.reader, "progress", "12,000 of 100,000 bindings read", raising=False)
    for path in ("/", "/b/shop/checkout-deployment", "/v1/bindings"):
        found = await site.get(path)
        assert (found.status, found.headers["Refresh"]) == (503, "2")
        assert "Loading: 12,000 of 100,000 bindings read" in found.text
    assert (await site.get("/readyz")).text == "12,000 of 100,000 bindings read"
    assert (await site.get("/healthz")).status == 200
    monkeypatch.undo()
    assert (await site.get("/")).status == 200


async def test_files_that_have_not_changed_are_not_read_again(site: Site) -> None:
    before = site.reader.state
    site.reader.read()
    assert site.reader.state is before


async def test_the_summary_is_what_explain_prints_about_all_bindings(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    await site.refresh()
    served = (await site.get("/v1/overview")).fields
    printed = _printed(capsys, site, "explain", "-A")
    for found in (served, printed):
        found["provenance"].pop("at")
    assert served == printed
    text = (await site.get("/")).page.text
    assert f"Replicas: {served['replicas']['wanted']} wanted, {served['replicas']['placed']} placed" in text
    assert served["groups"][1]["cause"]["code"] in text
    assert "pay/ billing-deployment" in text


def _templates(folder: Path) -> list[str]:
    """Return flags with a policy, and with templates of which two have no binding and one has."""
    objects: dict[str, list[dict[str, Any]]] = {
        "policies": [policy("shop", "orphaned", {}, selector={"name": "orphaned"})],
        "workloads": [
            deployment("shop", "orphan", 1),
            deployment("shop", "checkout", 1),
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "night", "namespace": "pay"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts", "namespace": "shop"}},
        ],
    }
    for name, found in objects.items():
        (folder / f"{name}.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": found}))
    return [f"--{name}={folder / name}.json" for name in objects]


async def test_templates_without_a_binding_are_on_the_first_page_as_explain_prints_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = _templates(tmp_path)
    async with Site(tmp_path, flags=[PATIENT, *flags]) as site:
        await site.refresh()
        served, text = (await site.get("/v1/overview")).fields, (await site.get("/")).page.text
        printed = _printed(capsys, site, "explain", "-A", *flags)
    for found in (served, printed):
        found["provenance"].pop("at")
    assert served == printed
    assert (served["templates"], served["knowsTemplates"]) == (2, True)
    assert "o policy matches it; nearest: PropagationPolicy shop/orphaned" in text
    assert "Deployment shop/ orphan" in text
    assert "Whether there are workloads" not in text


@pytest.mark.parametrize(("groups", "is_shown"), [(("apps",), False), (("apps", "batch"), True)])
async def test_templates_are_shown_to_those_who_may_list_all_of_their_groups(
    tmp_path: Path, groups: Sequence[str], is_shown: bool
) -> None:
    async def may(permission: Permission, namespace: str) -> bool:
        return (permission.verb, permission.resource, namespace) == (
            "list",
            "*",
            "",
        ) and permission.group in groups

    viewer = Viewer("jane", (), may)
    async with Site(tmp_path, flags=[PATIENT, *_templates(tmp_path)], viewer=viewer) as site:
        await site.refresh()
        served, text = (await site.get("/v1/overview")).fields, (await site.get("/")).page.text
    assert ("orphan" in text, served["templates"]) == (is_shown, 2 if is_shown else 0)
    assert served["knowsTemplates"] is is_shown
    assert ("not known: you may not list the templates of all namespaces" in text) is not is_shown


async def test_templates_that_were_not_read_are_not_said_to_have_bindings(site: Site) -> None:
    await site.refresh()
    assert (
        "Whether there are workloads without a binding is not known: they were not read"
        in (await site.get("/")).page.text
    )
    assert (await site.get("/v1/overview")).fields["knowsTemplates"] is False


FAILED = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "nothing fits"}
DONE = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "scheduled"}


def _in_many_states() -> list[BindingBuilder]:
    def one(name: str) -> BindingBuilder:
        return binding(name).replicas(3, cpu="1").observed_generation(1)

    quota = {**FAILED, "reason": "QuotaExceeded", "message": "exceeded quota: default/team-a"}
    return [
        one("failed").condition(**FAILED),
        one("stuck").on(**{"eu-west-1": 3}).condition(**FAILED),
        one("held").condition(**quota),
        one("part").on(**{"eu-west-1": 2}).condition(**DONE),
        one("moving").on(**{"eu-west-1": 3}).evicted_from("eu-west-2").condition(**DONE),
        one("old").generation(2).on(**{"eu-west-1": 3}).condition(**DONE),
        one("paused").on(**{"eu-west-1": 3}).condition(**DONE).suspended(),
        one("gone").on(**{"eu-west-9": 3}).condition(**DONE),
        binding("new").replicas(3, cpu="1"),
        one("good").on(**{"eu-west-1": 3}).condition(**DONE),
    ]


async def test_list_page_and_json_say_the_same_state_in_the_same_colour(tmp_path: Path) -> None:
    kinds = {"green": "good", "yellow": "wait", "red": "bad"}
    async with Site(tmp_path, bindings=_in_many_states(), flags=["--timeout=1s"]) as site:
        listed = (await site.get("/bindings")).text
        items = (await site.get("/v1/bindings")).fields["items"]
        listing = {f"{each['namespace']}/{each['name']}": each for each in items}
        contents = site.reader.state.contents
        for row in map(contents.row, contents.index.rows):
            path = f"{row.namespace}/{row.name}"
            stored = (await site.get(f"/v1/explain/{path}")).fields["state"]
            badge = f'<span class="state {kinds[row.state.colour]}">{row.state.words.lower()}</span>'
            assert stored["headline"].startswith(row.state.words), path
            assert stored["name"] == row.state.name.value
            assert badge in (await site.get(f"/b/{path}")).text, path
            assert badge in listed, path
            assert listing[path]["state"] == {**stored, "scheduler": listing[path]["state"]["scheduler"]}
        assert [each["name"].removesuffix("-deployment") for each in items] == [
            "failed",
            "stuck",
            "gone",
            "held",
            "paused",
            "old",
            "new",
            "moving",
            "part",
            "good",
        ]


async def test_a_list_is_read_in_pages_with_cursors_there_and_back(tmp_path: Path) -> None:
    def one(number: int) -> BindingBuilder:
        return binding(f"web-{number:03}").replicas(1).on(**{"eu-west-1": 1}).condition(**DONE)

    made = [one(number).observed_generation(1) for number in range(230)]
    async with Site(tmp_path, bindings=made) as site:

        async def names(link: str) -> tuple[list[str], str, str]:
            page = (await site.get(link)).page
            found = {a.get("rel", ""): a["href"] for tag, a in page.elements if tag == "a" and "rel" in a}
            found = {rel: f"{link.partition('?')[0]}{href}" for rel, href in found.items()}
            rows = [a["href"] for tag, a in page.elements if tag == "a" and a["href"].startswith("/b/")]
            return rows, found.get("next", ""), found.get("prev", "")

        for path in ("/bindings?q=web", "/clusters/eu-west-1"):
            first, after, before = await names(path)
            assert (len(first), before) == (100, "")
            second, after, before = await names(after)
            third, end, _ = await names(after)
            assert [*first, *second, *third] == sorted({*first, *second, *third})
            assert (len(third), end) == (30, "")
            assert (await names(before))[0] == first

        whole: list[str] = []
        after = ""
        while True:
            found = (await site.get(f"/v1/bindings?limit=90&after={after}")).fields
            whole += [each["name"] for each in found["items"]]
            if not (after := found["after"]):
                break
        assert (len(whole), found["count"]) == (230, 230)
        assert whole == sorted(set(whole))
        assert len((await site.get("/v1/bindings")).fields["items"]) == 100


async def test_a_page_goes_on_where_the_last_one_ended_although_bindings_were_deleted(tmp_path: Path) -> None:
    made = [binding(f"web-{number}").replicas(1) for number in range(5)]
    async with Site(tmp_path, bindings=made) as site:
        found = (await site.get("/v1/bindings?limit=2")).fields
        write(site.files[1], [made[0], made[4]])
        site.reader.read()
        rest = (await site.get(f"/v1/bindings?limit=2&after={found['after']}")).fields
        assert [each["name"] for each in rest["items"]] == ["web-4-deployment"]


async def test_states_are_links_to_a_list_of_the_bindings_in_them(tmp_path: Path) -> None:
    async with Site(tmp_path, bindings=_in_many_states()) as site:
        page = (await site.get("/bindings?namespace=default")).page
        assert "/bindings?namespace=default&state=held" in page.attributes("a", "href")
        text = (await site.get("/bindings?namespace=default&state=held")).page.text
        assert "2 of 10 bindings" in text
        assert "exceeded quota: default/team-a" in text
        assert "failed-deployment" not in text
        text = (await site.get("/bindings?reason=QuotaExceeded")).page.text
        assert "1 of 10 bindings" in text


async def test_what_runs_is_shown_for_each_cluster_and_in_the_list(tmp_path: Path) -> None:
    made = binding("web").replicas(5, cpu="1").dynamic_weight().on(**{"eu-west-1": 3, "eu-west-2": 2})
    manifest = made.condition(**DONE).observed_generation(1).manifest()
    manifest["status"]["aggregatedStatus"] = [
        {"clusterName": "eu-west-1", "applied": True, "health": "Healthy", "status": {"readyReplicas": 3}},
        {"clusterName": "eu-west-2", "applied": False, "appliedMessage": "the image is <refused>"},
    ]
    async with Site(tmp_path) as site:
        site.files[1].write_text(json.dumps(manifest))
        site.reader.read()
        page = (await site.get("/b/default/web-deployment")).page
        assert "placed, not running" in page.text
        for part in (
            "From the workload to its clusters",
            "Not applied on eu-west-2: the image is <refused>",
            "3 yes 3 Healthy",
        ):
            assert part in page.text
        text = (await site.get("/bindings")).page.text
        assert "1/2" in text
        assert "3/5" in text
        text = (await site.get("/clusters/eu-west-1")).page.text
        assert "3 yes 3" in text


async def test_a_fix_is_a_command_for_the_policy_and_comes_before_the_steps(tmp_path: Path) -> None:
    async with Site(tmp_path, bindings=[billing().condition(**FAILED)], flags=[PATIENT]) as site:
        for path in ("/b/pay/billing-deployment", "/why-not/pay/billing-deployment"):
            text = (await site.get(path)).page.text
            assert (
                "kubectl patch propagationpolicy.policy.karmada.io billing --namespace pay --type=json"
                in text
            )
        text = (await site.get("/b/pay/billing-deployment")).page.text
        assert text.index("kubectl patch") < text.index("From all clusters to the result")


async def test_clusters_have_tiles_with_names_states_and_filters(tmp_path: Path) -> None:
    async with Site(tmp_path) as site:
        page = (await site.get("/clusters")).page
        assert [each for each in page.attributes("a", "title") if each.startswith("us-east-2,")] == [
            "us-east-2, 0 %, tainted"
        ]
        text = (await site.get("/clusters?q=eu-w")).page.text
        assert "2 of 8 clusters" in text
        assert "us-east-1" not in text
        assert "1 of 8 clusters" in (await site.get("/clusters?state=tainted")).page.text
        found = (await site.get("/v1/clusters?state=tainted")).fields
        assert [(each["name"], each["state"]) for each in found["items"]] == [("us-east-2", "tainted")]


async def test_more_than_200_clusters_are_shown_without_names_until_they_are_filtered(tmp_path: Path) -> None:
    many = [cluster(f"m{number:03}").region(f"r{number % 3}") for number in range(201)]
    async with Site(tmp_path, clusters=many) as site:
        for path in ("/", "/clusters"):
            page = (await site.get(path)).page
            assert len(page.attributes("i", "title")) == 201
        page = (await site.get("/clusters?region=r1")).page
        assert len(page.attributes("i", "title")) == 0
        assert len([each for each in page.attributes("a", "title") if each.startswith("m")]) == 67


async def test_a_cluster_says_since_when_and_why_it_is_not_ready(tmp_path: Path) -> None:
    manifest = cluster("m1").region("eu").manifest()
    manifest.setdefault("status", {})["conditions"] = [
        {
            "type": "Ready",
            "status": "False",
            "reason": "ClusterNotReachable",
            "message": "connection refused",
            "lastTransitionTime": "2026-11-24T07:55:01Z",
        }
    ]
    async with Site(tmp_path) as site:
        site.files[0].write_text(json.dumps(manifest))
        site.reader.read()
        text = (await site.get("/clusters/m1")).page.text
        assert "not ready since 2026-11-24T07:55:01Z (ClusterNotReachable): connection refused" in text
        assert "1 cluster not ready" in (await site.get("/")).page.text.replace("  ", " ")


async def test_causes_are_looked_for_before_anybody_asks(site: Site) -> None:
    await site.refresh()
    groups = (await site.get("/v1/overview")).fields["groups"]
    assert [(each["state"], each["cause"] and each["cause"]["code"], each["count"]) for each in groups] == [
        ("not decided yet", None, 1),
        ("not decided yet", "ClusterUnknown", 1),
    ]


async def test_causes_stay_on_the_page_until_those_of_the_next_reading_are_found(site: Site) -> None:
    await site.refresh()
    before = site.answers.background.causes

    failed = billing().condition(
        type="Scheduled", status="False", reason="NoClusterFit", message="nothing fits"
    )
    write(site.files[1], [checkout().replicas(9), failed])
    site.reader.read()
    assert site.answers.background.causes is before
    await site.refresh()
    assert site.answers.background.causes is not before
    assert len(site.answers.background.causes.found) == 2


async def test_a_binding_that_was_created_since_the_objects_were_published_is_no_problem(site: Site) -> None:
    state = site.answers.state
    unpublished = replace(
        state, contents=replace(state.contents, objects=replace(state.contents.objects, manifests={}))
    )
    await site.answers.background.refresh(site.worker, unpublished)
    assert site.answers.background.causes.problems == ()
    assert set(site.answers.background.causes.found.values()) == {None}


async def _stamp(site: Site) -> str:
    [found] = (await site.get("/")).page.attributes("body", "data-stamp")
    return found


async def test_a_page_from_before_a_change_is_refreshed_as_soon_as_it_listens(site: Site) -> None:
    stamp = await _stamp(site)
    assert await _stamp(site) == stamp
    await site.refresh()
    url = f"http://127.0.0.1:{site.port}/v1/events?since={stamp}"
    async with asyncio.timeout(20), aiohttp.ClientSession() as session, session.get(url) as found:
        lines = [await found.content.readline() for _ in range(4)]
    assert lines[3] == b"event: changed\n"


async def test_a_list_of_a_namespace_is_not_refreshed_after_a_change_in_another_one(site: Site) -> None:
    async def stamps() -> list[str]:
        pages = [(await site.get(f"/bindings?namespace={each}")).page for each in ("shop", "pay")]
        return [each.attributes("body", "data-stamp")[0] for each in pages]

    shop, pay = await stamps()
    write(site.files[1], [checkout(), billing().replicas(7)])
    site.reader.read()
    after = await stamps()
    assert after[0] == shop
    assert after[1] != pay
    assert (await site.get("/bindings?namespace=pay")).page.attributes("body", "data-namespace") == ["pay"]


async def test_parts_that_are_empty_at_first_can_be_filled_without_a_reload(site: Site) -> None:
    """The script replaces the parts that are there; one that appears later needs a place from the start."""

    async def live(path: str) -> set[str]:
        page = (await site.get(path)).page
        return {attributes["id"] for _, attributes in page.elements if "data-live" in attributes}

    assert await live("/bindings?q=none-like-that") == await live("/bindings") >= {"bindings", "problems"}
    before = await live("/")
    await site.refresh()
    assert await live("/") == before >= {"causes"}
    assert {"causes", "funnel"} <= await live("/b/shop/checkout-deployment")


async def test_decisions_are_filtered_by_policy(tmp_path: Path) -> None:
    moment = "2026-11-22T10:00:00Z"
    bindings = [checkout().last_scheduled(moment), billing().last_scheduled(moment)]
    async with Site(tmp_path, bindings=bindings) as site:

        async def names(query: str) -> set[str]:
            items = (await site.get(f"/v1/decisions{query}")).fields["items"]
            return {each["name"] for each in items}

        assert await names("") == {"checkout-deployment", "billing-deployment"}
        assert await names("?policy=checkout") == {"checkout-deployment"}
        assert await names("?policy=pay/billing") == {"billing-deployment"}
        assert await names("?policy=none-like-that") == set()


async def test_explanations_are_counted(site: Site) -> None:
    await site.get("/b/shop/checkout-deployment")
    lines = (await site.get("/metrics")).text.splitlines()
    assert "karmada_scheduler_explanations_total 1.0" in lines
