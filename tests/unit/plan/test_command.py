"""The command plan: its output in every format, its exit status, and what it says about bad input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.cli.flags.what_if import FAIL_ON, PLAN_FAIL_ON
from karmada_advisor.cli.plan import status_of
from karmada_advisor.views.fields import as_json, as_yaml, document_fields
from karmada_advisor.views.markup import MAX_CHARACTERS
from karmada_advisor.views.plan_text import plan_markdown, plan_text
from karmada_advisor.views.text import Style
from karmada_advisor.whatif.plan.model import CLASSES, Plan
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests import commands
from tests.document_schema import document_schema
from tests.unit.plan import fleet
from tests.unit.plan.conftest import Run
from tests.unit.views.test_schema import problems

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "plan.v1alpha1.json"

CHANGES = {
    "policies": ("-f", "change"),
    "stuck": ("-f", "change/prod-apac.yaml"),
    "loss": ("--without", "us-east-7"),
    "cordon": ("--cordon", "us-east-7"),
    "mistakes": ("-f", "mistakes"),
}
STYLES = {"80": Style(80), "100": Style(100), "160": Style(160), "100-colour": Style(100, colour=True)}
Plans = Callable[[tuple[str, ...]], Plan]
SHORT = ("stuck", "cordon")
"""Changes whose JSON is short enough for a golden file."""


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("change", CHANGES)
def test_the_text_is_as_in_the_golden_files(plans: Plans, change: str, style: str) -> None:
    text = plan_text(plans(CHANGES[change]), STYLES[style])

    assert text == (GOLDEN / f"{change}-{style}.txt").read_text()
    if not STYLES[style].colour:
        assert max(map(len, text.splitlines())) <= STYLES[style].width


@pytest.mark.parametrize("change", CHANGES)
def test_markdown_json_and_yaml_are_as_in_the_golden_files(plans: Plans, change: str) -> None:
    plan = plans(CHANGES[change])

    assert plan_markdown(plan) == (GOLDEN / f"{change}.md").read_text()
    if change in SHORT:  # the others have thousands of lines; the schema test covers them
        assert as_json(document_fields(plan)) == (GOLDEN / f"{change}.json").read_text()
        assert as_yaml(document_fields(plan)) == (GOLDEN / f"{change}.yaml").read_text()


def test_the_command_prints_the_text_at_the_width_of_the_flag(run: Run) -> None:
    ran = run(*CHANGES["stuck"], "--width", "80")
    assert (ran.out, ran.err) == ((GOLDEN / "stuck-80.txt").read_text(), "")


def test_the_schema_in_the_repository_is_that_of_the_model() -> None:
    assert json.loads(SCHEMA.read_text()) == document_schema(Plan)


@pytest.mark.parametrize("change", CHANGES)
def test_json_follows_the_schema(plans: Plans, change: str) -> None:
    schema = document_schema(Plan)
    fields = json.loads(as_json(document_fields(plans(CHANGES[change]))))

    assert list(problems(fields, schema, schema)) == []
    assert fields["kind"] == "Plan"


def test_yaml_holds_the_same_as_json(run: Run) -> None:
    fields = run(*CHANGES["stuck"], "-o", "json").fields
    assert yaml.safe_load(run(*CHANGES["stuck"], "-o", "yaml").out) == fields


def test_the_counts_are_those_of_the_bindings(plans: Plans) -> None:
    plan = plans(CHANGES["policies"])

    listed = Counter(each.effect.value for each in plan.bindings)
    assert listed["stuck"] == plan.counts["stuck"] == 22
    assert listed["latent"] == plan.counts["latent"]
    exclusive = sum(count for name, count in plan.counts.items() if name not in {"adopted", "released"})
    assert exclusive == plan.total == 352


# --- exit status ---


@pytest.mark.parametrize(
    ("change", "fail_on", "status"),
    [
        ("policies", None, 1),
        ("policies", "none", 0),
        ("policies", "unplaced", 0),
        ("policies", "stuck", 1),
        ("policies", "latent", 1),
        ("policies", "moved,placed", 0),
        ("loss", None, 0),
        ("loss", "moved", 1),
        ("loss", "blocked,undecided,warnings", 0),
        ("mistakes", "warnings", 1),
        ("mistakes", "blocked,undecided", 0),
        ("loss", "overcommit", 1),
        ("loss", "unplaced,stuck,overcommit", 1),
        ("loss", "drift", 0),
        ("cordon", "moved,placed,unplaced,stuck,latent,overcommit", 0),
    ],
)
def test_the_exit_status_follows_fail_on(plans: Plans, change: str, fail_on: str | None, status: int) -> None:
    assert status_of(plans(CHANGES[change]), (), fail_on or PLAN_FAIL_ON) == status
    assert status_of(plans(CHANGES[change]), ["a problem"], fail_on or PLAN_FAIL_ON) == 2


@pytest.mark.parametrize(("fail_on", "status"), [([], 1), (["--fail-on", "none"], 0)])
def test_the_command_ends_with_this_status(run: Run, fail_on: list[str], status: int) -> None:
    assert run(*CHANGES["stuck"], *fail_on).status == status


@pytest.mark.parametrize(
    ("flags", "adopted"), [(["--feature-gates", "PropagationPolicyPreemption=true"], 1), ([], 0)]
)
def test_a_policy_takes_templates_of_another_with_the_gate_of_the_detector(
    run: Run, tmp_path: Path, flags: list[str], adopted: int
) -> None:
    taking = {**fleet.policies()[0], "metadata": {"name": "taking"}}
    resource = fleet.bindings()[0].manifest()["spec"]["resource"]
    named = {name: resource[name] for name in ("apiVersion", "kind", "namespace", "name")}
    more = {"resourceSelectors": [named], "priority": 100, "preemption": "Always"}
    taking["spec"] = {**taking["spec"], **more}
    (tmp_path / "taking.json").write_text(json.dumps(taking))
    ran = run("-f", str(tmp_path / "taking.json"), "-o", "json", *flags)
    assert json.loads(ran.out)["counts"]["adopted"] == adopted


def test_an_unknown_class_names_the_nearest(run: Run) -> None:
    ran = run("--cordon", "us-east-7", "--fail-on", "stuk")
    assert ran.status == 2
    assert ran.err.startswith("Error: --fail-on: stuk is none of unchanged, moved, ")
    assert ran.err.endswith("; nearest: stuck\n")


def test_a_plan_that_expects_its_own_fleet_is_good_and_another_fleet_is_refused(
    run: Run, files: list[str], tmp_path: Path
) -> None:
    fingerprint = run("--cordon", "us-east-7", "-o", "json").fields["fingerprint"]
    assert run("--cordon", "us-west-1", "--expect", fingerprint[:6]).status == 0
    assert run("--cordon", "us-west-1", "--expect", fingerprint).status == 0

    clusters = json.loads(Path(files[1]).read_text())
    clusters["items"][0]["status"]["resourceSummary"]["allocatable"]["cpu"] = "7"
    changed = tmp_path / "clusters.json"
    changed.write_text(json.dumps(clusters))
    ran = run(
        "--cordon", "us-west-1", "--expect", fingerprint[:6], of=["--clusters", str(changed), *files[2:]]
    )
    assert ran.status == 2
    assert f"Error: --expect {fingerprint[:6]}: the fleet is " in ran.err
    assert run("--cordon", "us-west-1", "--expect", fingerprint[:2]).status == 2


# --- bad input ---


@pytest.mark.parametrize("written", ["shop/web", "shop/Deployment/web", "shop/web-deployment"])
@pytest.mark.parametrize("change", ["--scale={}=3", "--rebalance={}"])
def test_a_change_of_a_workload_whose_binding_cannot_be_read_says_so(
    run: Run, files: list[str], tmp_path: Path, written: str, change: str
) -> None:
    broken = binding("web", namespace="shop").replicas(2).manifest()
    broken["spec"]["replicas"] = "two"
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    ran = run(change.format(written), of=[*files[:2], "--bindings", str(tmp_path / "broken.json")])
    assert ran.status == 2
    assert "ResourceBinding(shop/web-deployment) cannot be read: spec.replicas: expected " in ran.err


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ([], "there is no change: use -f, --delete, --without, --cordon, ... (see --help)"),
        (["--cordon", "us-eats-7"], "cluster us-eats-7 does not exist. Nearest: us-east-7"),
        (["--without", "x"], "cluster x does not exist"),
        (["--uncordon", "us-east-7"], "--uncordon: cluster us-east-7 is not cordoned"),
        (["--taint", "us-east-7"], "--taint: expected CLUSTER=..., got us-east-7"),
        (
            ["--taint", "us-east-7=a=b:Never"],
            (
                "--taint: expected C=key=value:Effect with one of NoSchedule, PreferNoSchedule, NoExecute, or C=key- "
                "to remove one, got us-east-7=a=b:Never"
            ),
        ),
        (["--taint", "us-east-7=a-"], "--taint: cluster us-east-7 has no taint a; it has: none"),
        (["--label", "us-east-7=a-"], "--label: label of cluster us-east-7 a does not exist"),
        (
            ["--label", "us-east-7=tire-"],
            "--label: label of cluster us-east-7 tire does not exist. Nearest: tier",
        ),
        (
            ["--room", "us-east-7=cpu=many"],
            "--room: us-east-7: cpu: expected a quantity like 500m or 2Gi, got 'many'",
        ),
        (["--room", "us-east-7=,"], "--room: expected C=cpu=+20, got us-east-7=,"),
        (["--add", "us-east-7=us-east-6"], "--add: cluster us-east-7 exists already"),
        (["--add", "new=us-eats-6"], "cluster us-eats-6 does not exist. Nearest: us-east-6"),
        (["--scale", "shop/services-0"], "--scale: expected NS/NAME=REPLICAS, got shop/services-0"),
        (
            ["--scale", "shop/service-0=3"],
            "--scale: workload shop/service-0 has no binding, and templates were not read (--workloads); nearest: shop/services-0",
        ),
        (["--delete", "Deployment"], "--delete: expected KIND/NAME or KIND/NAMESPACE/NAME, got Deployment"),
        (
            ["--delete", "ClusterPropagationPolicy/prod-servics"],
            "ClusterPropagationPolicy/prod-servics does not exist. Nearest: ClusterPropagationPolicy/prod-services",
        ),
        (
            ["--edit", "ClusterPropagationPolicy/prod-batch={spec: {resourceSelectors: [{name: no}]}}"],
            "ClusterPropagationPolicy prod-batch: spec.resourceSelectors[0].name: expected a string, got bool",
        ),
        (
            ["-f", "https://example.com/p.yaml"],
            "-f https://example.com/p.yaml: download it first; plan reads files only",
        ),
        (
            ["--cordon", "us-east-7", "--feature-gates", "Nope=true"],
            "--feature-gates: unrecognized feature gate: Nope",
        ),
    ],
)
def test_a_change_that_cannot_be_applied_says_why(run: Run, flags: list[str], error: str) -> None:
    ran = run(*flags)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: {error}")


def test_a_half_broken_file_is_reported_and_the_rest_is_planned(run: Run, tmp_path: Path) -> None:
    change = tmp_path / "change.yaml"
    good = cluster("us-east-7").region("us-east").labels(tier="prod").manifest()
    change.write_text(f"{{unclosed\n---\n- a list\n---\nkind: Cluster\n---\n{json.dumps(good)}\n")
    ran = run("-f", str(change))
    assert ran.status == 2
    assert "change.yaml: document 1: line " in ran.err
    assert "change.yaml: document 2: expected an object, got list" in ran.err
    assert "change.yaml: document 3: metadata.name: is missing" in ran.err
    assert "Cluster/us-east-7" in ran.out or "cluster us-east-7" in ran.out


def test_a_value_of_a_list_that_yaml_takes_for_no_text_is_named_as_written(run: Run, tmp_path: Path) -> None:
    item = "- {kind: Deployment, apiVersion: apps/v1, metadata: {name: b, labels: {version: %s}}}\n"
    (tmp_path / "list.yaml").write_text("kind: List\nitems:\n" + item % "'1.20'" + item % "1.20")
    expected = "item 2 (Deployment b): metadata.labels.version: expected a string, got float 1.2: 1.20 is the number 1.2"
    assert expected in run("-f", str(tmp_path / "list.yaml")).err


def test_an_object_of_the_wrong_shape_is_named(run: Run, tmp_path: Path) -> None:
    change = tmp_path / "change.json"
    broken = cluster("us-east-7").manifest() | {"spec": {"taints": "all"}}
    change.write_text(json.dumps(broken))
    ran = run("-f", str(change))
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Error: Cluster us-east-7: spec.taints: expected ")


def test_an_empty_list_of_clusters_is_no_fleet(run: Run, tmp_path: Path) -> None:
    of = fleet.write(tmp_path, clusters=[], bindings=[binding("web").manifest()])
    ran = run("--cordon", "m1", of=of)
    assert ran.status == 2
    assert ran.err == "Error: There is no cluster, so nothing is decided.\n"


def test_no_bindings_are_no_changes(run: Run, tmp_path: Path) -> None:
    of = fleet.write(tmp_path, clusters=[cluster("m1").manifest()], bindings=[])
    ran = run("--cordon", "m1", of=of)
    assert (ran.status, ran.out) == (0, "No changes. 0 bindings keep their placement.\n")


def test_of_an_object_that_is_there_twice_the_last_one_counts(run: Run, tmp_path: Path) -> None:
    """kubectl apply writes them in their order."""
    services = fleet.policies()[0]
    placements = ({"clusterAffinity": {"clusterNames": [name]}} for name in ("us-east-1", "us-east-2"))
    written = [{**services, "spec": {**services["spec"], "placement": placement}} for placement in placements]
    (tmp_path / "both.yaml").write_text(yaml.safe_dump_all(written))
    (tmp_path / "last.yaml").write_text(yaml.safe_dump(written[1]))

    both, last = (
        json.loads(run("-f", str(tmp_path / f"{name}.yaml"), "-o", "json").out) for name in ("both", "last")
    )

    assert both["bindings"] == last["bindings"]
    assert [note for note in both["notes"] if note not in last["notes"]] == [
        "ClusterPropagationPolicy/prod-services is in the change twice: the last one counts, as with kubectl apply"
    ]


def test_a_directory_without_manifests_is_named(run: Run, tmp_path: Path) -> None:
    ran = run("-f", str(tmp_path))
    assert ran.status == 2
    assert ran.err == f"Error: -f {tmp_path}: the directory has no files .yaml, .yml, .json\n"


def test_a_directory_is_read_whole_and_hidden_files_are_left_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "broken.yaml").write_text("{")
    (tmp_path / "README.md").write_text("{")
    changed = cluster("us-east-7").region("us-east").labels(tier="prod").taint("a:NoSchedule")
    (tmp_path / "deep" / "cluster.yml").write_text(yaml.safe_dump(changed.manifest()))
    ran = run("-f", str(tmp_path), "-o", "json")
    assert ran.status == 0
    assert [each["object"] for each in ran.fields["changes"]] == ["Cluster/us-east-7"]


def test_standard_input_is_read(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = tmp_path / "stdin"
    given.write_text(json.dumps(fleet.policy("prod-apac", fleet.SERVICES)))
    with given.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        fields = run("-f", "-", "-o", "json", "--fail-on", "none").fields
    assert fields["changes"][0]["object"] == "ClusterPropagationPolicy/prod-apac"


def hostile() -> list[str]:
    """Return names that want to leave their place in a terminal or in Markdown."""
    return [
        "a`b|c",
        "@everyone",
        "<img src=x>",
        "\x1b[31mred",
        "x\u202ereversed",
        "[link](http://x)",
        "#1\n# head",
    ]


@pytest.mark.parametrize("name", hostile())
def test_a_hostile_name_stays_in_its_place(run: Run, tmp_path: Path, name: str) -> None:
    made = binding(name).replicas(2, cpu=1).dynamic_weight().on(m1=2).applied()
    made.last_scheduled("2026-11-22T10:00:00Z")
    of = fleet.write(
        tmp_path, clusters=[cluster("m1").manifest(), cluster("m2").manifest()], bindings=[made.manifest()]
    )
    text = run("--without", "m1", of=of).out
    assert all(each.isprintable() for each in text.splitlines())
    markdown = run("--without", "m1", "-o", "markdown", of=of).out
    items = [line for line in markdown.splitlines() if line.startswith("- default/")]
    assert len(items) == 1
    assert "m1 2 -\\> m2 2" in items[0]


def test_markdown_stays_below_the_limit_of_a_comment_and_keeps_the_counts(run: Run, tmp_path: Path) -> None:
    long = "x" * 200
    made: list[Any] = []
    for number in range(400):
        one = binding(f"{long}-{number}").replicas(30, cpu=1).dynamic_weight()
        one.on(**{f"{long}-{index}": 10 for index in range(3)}).applied().last_scheduled(
            "2026-11-22T10:00:00Z"
        )
        made.append(one.manifest())
    clusters = [cluster(f"{long}-{index}").manifest() for index in range(6)]
    of = fleet.write(tmp_path, clusters=clusters, bindings=made)
    markdown = run("--without", f"{long}-0", "-o", "markdown", of=of).out
    assert len(markdown) <= MAX_CHARACTERS
    assert "<details><summary>400 moved</summary>" in markdown
    assert " more\n" in markdown


def test_progress_is_drawn_on_a_terminal_only(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--cordon", "us-east-7").err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    ran = run("--without", "us-east-7")
    assert "after the change" in ran.err
    assert ran.err.endswith("\r\x1b[K")
    assert "\x1b[K" not in ran.out


def test_the_flag_takes_every_class_and_what_a_plan_has_besides() -> None:
    assert (*CLASSES, "overcommit", "blocked", "warnings", "drift", "none") == FAIL_ON


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("WorkloadRebalancer", "WorkloadRebalancer/x"),
        ("Node", "Node/x"),
        ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy/x"),
        ("ConfigMap", "ConfigMap/default/x"),
    ],
)
def test_an_object_of_a_change_has_a_namespace_if_its_kind_has_one(
    run: Run, tmp_path: Path, kind: str, shown: str
) -> None:
    version = "apps.karmada.io/v1alpha1" if kind == "WorkloadRebalancer" else "v1"
    written = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(written))

    [change] = json.loads(run("-f", str(tmp_path / "x.yaml"), "-o", "json").out)["changes"]
    assert change["object"] == shown


@pytest.mark.parametrize(
    ("made", "is_charged"),
    [
        (binding("web").replicas(2, cpu=1).dynamic_weight(), True),
        (binding("web").component("a", 2, cpu=1).component("b", 1).duplicated(), True),
        (binding("web").replicas(2).dynamic_weight(), False),
        (binding("web").component("a", 2).component("b", 1).duplicated(), False),
        (binding("web", namespace="").replicas(2, cpu=1).dynamic_weight(), False),
    ],
    ids=["replicas", "components", "no requests", "components without requests", "no namespace"],
)
def test_unread_quotas_are_named_where_more_is_charged(
    tmp_path: Path, made: BindingBuilder, is_charged: bool
) -> None:
    clusters = [cluster(name).capacity(cpu=9, pods=9).manifest() for name in ("m1", "m2")]
    files = fleet.write(tmp_path, clusters=clusters, bindings=[made.manifest()])

    found = commands.run("plan", "--label=m1=a=b", *files, "-o=json").fields

    assert found["drift"] or found["bindings"]
    assert any("FederatedResourceQuota" in note for note in found["notes"]) is is_charged
