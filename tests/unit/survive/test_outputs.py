"""The formats of a forecast, its baseline, and its end before all is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from karmada_advisor.views.survive_document import LETTERS
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_scheduler.testing import binding, cluster
from tests import commands
from tests.commands import Ran
from tests.unit.rebalance.proposing import settled
from tests.unit.survive.test_command import CLUSTERS, _bindings, _files

Run = Callable[..., Ran]
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "fleet"
FLEET = (f"--clusters={EXAMPLES / 'clusters.yaml'}", f"--bindings={EXAMPLES / 'bindings.yaml'}")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``survive`` on the files."""
    files = _files(tmp_path)
    return lambda *flags: commands.run("survive", *files, *flags)


class _Page(HTMLParser):
    """The tags, the texts of cells, and the attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[tuple[str | None, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "td":
            self.cells.append((dict(attrs).get("class"), ""))

    def handle_data(self, data: str) -> None:
        if self.cells:
            kind, text = self.cells[-1]
            self.cells[-1] = kind, text + data


def test_a_fleet_that_loses_nothing_has_a_sentence_instead_of_an_empty_heat_map() -> None:
    text = commands.run("survive", *FLEET, "-o", "html").out
    assert "None of these losses does more to a workload than move it." in text
    assert '<table class="losses">' not in text


def test_junit_has_a_case_for_each_domain_and_those_of_fail_on_fail(run: Run) -> None:
    ran = run("-o", "junit")
    root = ET.fromstring(ran.out)
    cases = {(each.get("classname"), each.get("name")): each for each in root.iter("testcase")}
    assert {name for _, name in cases} == {"a", "b", "c", "d", "x", "y"}
    failed = {name for (_, name), each in cases.items() if each.find("failure") is not None}
    assert failed == {"a", "x"}
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("6", "2", "0")
    failure = cases["survive.cluster", "a"].find("failure")
    assert failure is not None
    assert "PropagationPolicy default/one  1   unplaced" in str(failure.text)
    assert ran.status == 1


def test_the_heat_map_has_a_letter_and_a_label_in_each_coloured_cell_and_no_script(run: Run) -> None:
    text = run("-o", "html", "--all").out
    page = _Page(text)
    tags = [tag for tag, _ in page.tags]
    assert not {"script", "img", "link"} & {*tags}
    assert tags.count("caption") == tags.count("table") == 3
    coloured = [cell for kind, cell in page.cells if kind not in {None, "number"}]
    assert coloured
    assert all(cell.split()[0] in LETTERS.values() for cell in coloured)
    labels = [
        attributes.get("aria-label")
        for tag, attributes in page.tags
        if tag == "a" and "aria-label" in attributes
    ]
    assert len(labels) == len(coloured)
    targets = {attributes["id"] for tag, attributes in page.tags if tag == "section"}
    links = {str(attributes["href"]) for tag, attributes in page.tags if tag == "a"}
    assert links == {f"#{each}" for each in targets}


def test_a_loss_without_listed_bindings_says_what_moves_or_that_it_is_not_done(run: Run) -> None:
    page, report = run("-o", "html").out, json.loads(run("-o", "json").out)
    listed = {number for each in report["bindings"] for loss in each["losses"] for number in loss["domains"]}
    others = [
        each["chosen"]["counts"] for number, each in enumerate(report["domains"]) if number not in listed
    ]
    said = [
        f"Nothing is dark, missing or interrupted: {each['moves']} move, {each['holds']} hold (--all lists them)."
        for each in others
        if each["moves"] or each["holds"]
    ]
    assert said
    assert all(page.count(each) == said.count(each) for each in said)
    assert page.count("Nothing happens.") == len(others) - len(said)
    assert "Not done: the time of --timeout was over." in run("-o", "html", "--timeout=0").out


def test_each_class_but_untouched_has_a_letter_of_its_own() -> None:
    assert set(LETTERS) == set(LossClass) - {LossClass.UNTOUCHED}
    assert len(set(LETTERS.values())) == len(LETTERS)


def test_names_are_escaped_in_every_document(tmp_path: Path) -> None:
    odd = cluster("a").region("<b>|x\n\x1b[31mz")
    files = _files(tmp_path, clusters=[odd, *CLUSTERS[1:]])
    for output in ("text", "markdown", "html", "junit"):
        written = commands.run("survive", *files, "-o", output).out
        assert "<b>|x" not in written or output == "text"
        assert "\x1b" not in written
        assert not any(line.startswith(("\\[31mz", "[31mz")) for line in written.splitlines())
    ET.fromstring(written)


def test_all_files_and_the_metrics_have_the_same_figures(run: Run, tmp_path: Path) -> None:
    ran = run("--write-to", str(tmp_path / "out"), "--metrics", str(tmp_path / "survive.prom"), "-o", "json")
    assert ran.err == ""
    names = {"survive.json", "survive.yaml", "survive.txt", "survive.md", "survive.html", "survive.xml"}
    assert {each.name for each in (tmp_path / "out").iterdir()} == names
    assert json.loads((tmp_path / "out" / "survive.json").read_text()) == ran.fields
    samples = dict(
        line.rsplit(" ", 1)
        for line in (tmp_path / "survive.prom").read_text().splitlines()
        if not line.startswith("#")
    )
    clusters = [each for each in ran.fields["domains"] if each["kind"] == "cluster"]
    prefix = "karmada_scheduler_survive"
    assert float(samples[f'{prefix}_spofs{{kind="cluster"}}']) == sum(each["isSpof"] for each in clusters)
    dark = max(each["chosen"]["dark"] for each in clusters)
    assert float(samples[f'{prefix}_dark_bindings{{kind="cluster"}}']) == dark
    assert float(samples[f'{prefix}_domain_dark_bindings{{domain="a",kind="cluster"}}']) == 1
    assert float(samples[f"{prefix}_report_complete"]) == 1


def test_a_file_that_cannot_be_written_is_no_answer(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run("--metrics", str(tmp_path / "file" / "survive.prom"))
    assert (ran.status, ran.out) == (2, "")
    assert "survive.prom: cannot be written" in ran.err


@pytest.mark.parametrize(
    "words", ["dark", "interrupted,missing", "unplaced", "moves,holds", "spof,overcommit"]
)
def test_against_itself_nothing_is_worse(run: Run, tmp_path: Path, words: str) -> None:
    (tmp_path / "before.json").write_text(run("-o", "json").out)
    ran = run("--baseline", str(tmp_path / "before.json"), "--fail-on", words)
    assert ran.status == 0
    assert "with more than in the baseline" in " ".join(ran.out.split())


def test_only_what_is_worse_than_in_the_baseline_fails(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    before = commands.run("survive", *_files(tmp_path / "one"), "-o", "json")
    (tmp_path / "before.json").write_text(before.out)
    more = settled(binding("more").replicas(1, cpu="1").dynamic_weight().names("b").on(b=1))
    (tmp_path / "other").mkdir()
    files = _files(tmp_path / "other", bindings=[*_bindings(), more])
    ran = commands.run("survive", *files, "--baseline", str(tmp_path / "before.json"), "-o", "json")
    failing = [ran.fields["domains"][number]["name"] for number in ran.fields["failing"]]
    assert (ran.status, sorted(failing)) == (1, ["b", "x"])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "No such file"),
        (b"[", "is not JSON"),
        (b"[]", "expected a report of survive -o json"),
        (b'{"kind": "Plan"}', "expected a report of survive -o json"),
        (
            b'{"kind": "SurvivalReport", "settings": {"loss": "itself"}}',
            "was made with --loss itself, not gone",
        ),
        (b'{"kind": "SurvivalReport", "settings": {"loss": "gone"}}', "about another fleet"),
        (
            b'{"kind": "SurvivalReport", "settings": {"loss": "gone"}, "domains": [{"kind": "cluster", "name": "z"}]}',
            "about another fleet",
        ),
    ],
)
def test_a_baseline_that_cannot_be_compared_is_said_in_a_sentence(
    run: Run, tmp_path: Path, content: bytes | None, text: str
) -> None:
    path = tmp_path / "before.json"
    if content is not None:
        path.write_bytes(content)
    ran = run("--baseline", str(path))
    assert (ran.status, ran.out) == (2, "")
    assert text in ran.err


def test_without_time_no_domain_is_done_and_the_status_is_2(run: Run) -> None:
    ran = run("--timeout", "0", "-o", "json")
    assert ran.status == 2
    assert not any(each["done"] for each in ran.fields["domains"])
    assert ran.fields["summary"] == "none of 6 domains is done (--timeout), so nothing is known."
    assert "6 domains are not done" in " ".join(run("--timeout", "0").out.split())
    assert ET.fromstring(run("--timeout", "0", "-o", "junit").out).get("skipped") == "6"


def _manager(*args: str) -> dict[str, Any]:
    container = {"name": "manager", "command": ["/bin/karmada-controller-manager"], "args": list(args)}
    pod = {"containers": [{"name": "other"}, container]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}}


def test_gates_and_flags_are_those_of_the_controller_manager(run: Run, tmp_path: Path) -> None:
    manifest = _manager(
        "--feature-gates=Failover=true,Other=false",
        "--enable-no-execute-taint-eviction",
        "--resource-eviction-rate=2",
        "--cluster-failure-threshold=1m5s",
        "--graceful-eviction-timeout=90s",
        "--no-execute-taint-eviction-purge-mode",
        "Directly",
    )
    (tmp_path / "manager.json").write_text(json.dumps(manifest))
    fields = run("--controller-manager", str(tmp_path / "manager.json"), "-o", "json").fields
    assert fields["settings"] == {
        "loss": "gone",
        "failover": True,
        "eviction": True,
        "evictionRate": 2.0,
        "purgeMode": "Directly",
        "evictionTimeout": 90,
        "noticedPush": 75,
        "noticedPull": 45,
        "defaultsAssumed": False,
        "taintedClusters": None,
        "taint": "cluster.karmada.io/unreachable",
    }
    assert "defaults assumed" not in fields["summary"]
    assert fields["domains"][0]["times"]["noticed"] == 75
    [wide] = [each for each in fields["bindings"] if each["name"] == "wide-deployment"]
    assert {each["effect"] for each in wide["losses"]} == {"blocked"}
    for output in ("text", "markdown", "html", "junit"):
        shown = run(
            "--controller-manager", str(tmp_path / "manager.json"), "-o", output, "--fail-on=blocked"
        ).out
        assert "wait for the lost cluster, for 90 s at most" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        (
            {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}},
            "no container runs karmada-controller-manager",
        ),
        (
            _manager("--resource-eviction-rate=fast"),
            "--resource-eviction-rate: expected a number from 0, got 'fast'",
        ),
        (
            _manager("--cluster-failure-threshold=40"),
            "--cluster-failure-threshold: expected a duration such as 5s",
        ),
    ],
)
def test_a_controller_manager_that_cannot_be_read_is_said_in_a_sentence(
    run: Run, tmp_path: Path, manifest: dict[str, Any], text: str
) -> None:
    (tmp_path / "manager.json").write_text(json.dumps(manifest))
    ran = run("--controller-manager", str(tmp_path / "manager.json"))
    assert (ran.status, ran.out) == (2, "")
    assert text in ran.err


def test_a_remedy_is_named_in_every_format_with_its_patch_and_whether_the_owner_has_to_agree(
    run: Run,
) -> None:
    remedies = run("-o", "json", "--remedies=1").fields["remedies"]
    edits = [each for each in remedies if each["policy"] is not None]
    assert {each["policy"]["name"] for each in edits} == {"one"}
    assert [each["needsOwner"] for each in edits] == [True] * len(edits)
    [patch] = [each["patch"][0] for each in edits[0]["apply"]]
    assert patch["path"].startswith("/spec/placement/clusterAffinity")
    for output in ("text", "markdown", "html"):
        text = " ".join(run("-o", output, "--remedies=1").out.split())
        assert edits[0]["edits"][0]["text"] in text
        assert "the owner's word" in text.replace("&#x27;", "'")
        assert "--feature-gates=Failover=true" in text


def test_without_remedies_nothing_is_searched(run: Run) -> None:
    assert run("-o", "json", "--no-remedies").fields["remedies"] == []
