"""``explain``: the answer, the step that decided it, and the evidence; as text, JSON and YAML."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.fleet import live
from karmada_advisor.fleet.errors import LiveError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.named_binding import NamedBinding, NoSuchBindingError
from karmada_advisor.fleet.source import ControlPlane
from karmada_scheduler import command
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.commands import Ran
from tests.unit.cli.stored_objects import StoredObjects
from tests.unit.explain.fleet import failed_billing, fleet, placed_checkout

GOLDEN = Path(__file__).parent / "golden"
PLUGIN = """
from karmada_scheduler.framework import SUCCESS, Result

class NightOnly:
    name = "NightOnly"
    {declared}
    def filter(self, context):
        return Result.unschedulable("only at night") if context.cluster.name == "m1" else SUCCESS
"""


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_(
        name: str,
        *flags: str,
        clusters: Sequence[ClusterBuilder] | None = None,
        bindings: Sequence[BindingBuilder] | None = None,
    ) -> Ran:
        files: dict[str, Sequence[BindingBuilder | ClusterBuilder]] = {
            "clusters": clusters or fleet(),
            "bindings": bindings or [placed_checkout(), failed_billing()],
        }
        for kind, builders in files.items():
            (tmp_path / f"{kind}.yaml").write_text(
                "\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders)
            )
        named = [f"--{kind}={tmp_path / kind}.yaml" for kind in files]
        status = command.main(["explain", name, *named, *flags])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err.replace(f"{tmp_path}/", ""))

    return run_


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("colour", ["never", "always"])
@pytest.mark.parametrize(("namespace", "name", "status"), [("shop", "checkout", 0), ("pay", "billing", 1)])
def test_the_text_is_as_in_the_golden_files(
    run: Run, width: int, colour: str, namespace: str, name: str, status: int
) -> None:
    flags = ["--width", str(width), "--color", colour, "--timeout", "5m"]

    ran = run(f"{name}-deployment", "-n", namespace, *flags)

    suffix = "-colour" if colour == "always" else ""
    expected = (GOLDEN / f"explain-{name}-{width}{suffix}.txt").read_text()
    assert (ran.status, ran.err) == (status, "")
    assert ran.out == expected


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_line_is_wider_than_asked(run: Run, width: int) -> None:
    for name, namespace in (("checkout-deployment", "shop"), ("billing-deployment", "pay")):
        out = run(name, "-n", namespace, "--width", str(width)).out
        assert max(map(len, out.splitlines())) <= width


def test_a_pipe_gets_no_colours_although_standard_error_is_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    assert "\x1b" not in run("checkout-deployment", "-n", "shop").out


@pytest.mark.parametrize(("output", "suffix"), [("markdown", "md"), ("html", "html")])
@pytest.mark.parametrize(("namespace", "name", "status"), [("shop", "checkout", 0), ("pay", "billing", 1)])
def test_documents_are_as_in_the_golden_files(
    run: Run, output: str, suffix: str, namespace: str, name: str, status: int
) -> None:
    ran = run(f"{name}-deployment", "-n", namespace, "-o", output, "--timeout", "5m")

    assert (ran.status, ran.err) == (status, "")
    assert ran.out == (GOLDEN / f"explain-{name}.{suffix}").read_text()


def test_yaml_and_json_hold_the_same(run: Run) -> None:
    as_json = run("checkout-deployment", "-n", "shop", "-o", "json").fields
    as_yaml = yaml.safe_load(run("checkout-deployment", "-n", "shop", "-o", "yaml").out)

    for each in (as_json, as_yaml):
        each["provenance"].pop("at")
    assert as_json == as_yaml
    assert as_json["apiVersion"] == "explain.pyscheduler.karmada.io/v1alpha1"
    assert as_json["kind"] == "Explanation"


def test_json_has_the_placement_the_causes_and_the_clusters(run: Run) -> None:
    fields = run("checkout-deployment", "-n", "shop", "-o", "json").fields

    assert (fields["state"]["name"], fields["state"]["placed"]) == ("placed", "all")
    assert (
        fields["state"]["clusters"]
        == fields["wouldBe"]["placement"]
        == [
            {"name": "ap-south-1", "replicas": 4},
            {"name": "eu-west-1", "replicas": 12},
            {"name": "eu-west-2", "replicas": 8},
        ]
    )
    assert [each["code"] for each in fields["causes"] if each.get("primary")] == ["RegionTie"]
    assert fields["binding"]["policy"] == {
        "kind": "PropagationPolicy",
        "namespace": "shop",
        "name": "checkout",
    }
    by_name = {each["name"]: each for each in fields["clusters"]}
    assert by_name["us-east-1"]["cause"] == "RegionTie"
    assert by_name["us-east-1"]["capacity"]["limitedBy"] == "cpu"
    assert by_name["us-east-2"]["refusals"][0]["evidence"]["effect"] == "NoSchedule"


def test_quiet_prints_the_answer_and_the_steps(run: Run) -> None:
    out = run("checkout-deployment", "-n", "shop", "-q", "--width", "160").out

    assert [line.split()[0] for line in out.splitlines() if not line.startswith("  has")] == [
        "shop/checkout-deployment",
        "PLACED",
        "recomputed",
        "FILTER",
        "SCORE",
        "SELECT",
        "DIVIDE",
    ]


def test_the_workload_names_its_binding(run: Run) -> None:
    assert run("deployment/checkout", "-n", "shop", "-q").out.startswith("shop/checkout-deployment")
    assert run("rb/checkout-deployment", "-n", "shop", "-q").status == 0


def test_an_unknown_binding_names_the_nearest(run: Run) -> None:
    ran = run("chekout-deployment", "-n", "shop")

    assert (ran.status, ran.out) == (2, "")
    assert (
        ran.err
        == "Error: ResourceBinding(shop/chekout-deployment) does not exist. Nearest: checkout-deployment\n"
    )


def test_a_binding_of_another_namespace_names_it(run: Run) -> None:
    ran = run("checkout-deployment", "-n", "pay")

    assert ran.status == 2
    assert "There is one in namespace shop" in ran.err


def test_files_come_in_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["explain", "web", "--clusters", "clusters.yaml"]) == 2
    assert "--clusters and --bindings are used together" in capsys.readouterr().err


def test_a_problem_in_the_input_is_reported_and_the_rest_explained(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("kind: Cluster\napiVersion: cluster.karmada.io/v1alpha1\nmetadata: {}\n")

    ran = run("checkout-deployment", "-n", "shop", "--clusters", str(broken))

    assert ran.status == 2
    assert "broken.yaml" in ran.err
    assert "PLACED" in ran.out


def test_thousands_of_clusters_are_folded_and_unfolded_on_demand(run: Run) -> None:
    clusters = [cluster(f"c{index:04}") for index in range(2000)]
    asked = [binding("web").replicas(3, cpu=1).dynamic_weight().spread("cluster", 1, 3)]

    folded = run("web-deployment", clusters=clusters, bindings=asked).out
    unfolded = run("web-deployment", "--all", clusters=clusters, bindings=asked).out

    assert len(folded.splitlines()) < 60
    assert "1,988 more that pass" in folded
    assert len(unfolded.splitlines()) > 2000


@pytest.mark.parametrize("declared", ["", "free_of_side_effects = True"])
def test_a_plugin_from_outside_shows_its_own_reason(run: Run, tmp_path: Path, declared: str) -> None:
    (tmp_path / "night.py").write_text(PLUGIN.format(declared=declared))
    asked = [binding("web").replicas(2).duplicated().names("m2")]

    ran = run(
        "web-deployment",
        f"--plugin-dir={tmp_path}",
        "-o",
        "json",
        clusters=[cluster("m1"), cluster("m2")],
        bindings=asked,
    )

    row = next(each for each in ran.fields["clusters"] if each["name"] == "m1")
    refusing = [each["plugin"] for each in row["refusals"]]
    assert refusing == (["ClusterAffinity", "NightOnly"] if declared else ["ClusterAffinity"])
    assert row["notCalled"] == ([] if declared else ["NightOnly"])
    assert ran.fields["mismatches"] == []


def test_the_reason_of_a_plugin_from_outside_is_shown_if_it_comes_first(run: Run, tmp_path: Path) -> None:
    (tmp_path / "night.py").write_text(PLUGIN.format(declared=""))

    ran = run(
        "web-deployment",
        f"--plugin-dir={tmp_path}",
        clusters=[cluster("m1")],
        bindings=[binding("web").replicas(2).duplicated()],
    )

    assert ran.status == 1
    assert "NightOnly" in ran.out
    assert "only at night" in ran.out


def test_a_refusal_at_pre_enqueue_gates_the_binding(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(
        "from karmada_scheduler.framework import Result\n"
        "class Gate:\n"
        "    name = 'Gate'\n"
        "    def pre_enqueue(self, context):\n"
        "        return Result.unschedulable('not yet')\n"
    )

    ran = run(
        "web-deployment",
        f"--plugin-dir={tmp_path}",
        "-o",
        "json",
        clusters=[cluster("m1")],
        bindings=[binding("web").replicas(2).duplicated()],
    )

    assert (ran.status, ran.fields["state"]["name"]) == (1, "not decided yet")
    assert (ran.fields["wouldBe"]["outcome"], ran.fields["wouldBe"]["placement"]) == ("gated", [])
    assert ran.fields["causes"][0]["evidence"] == {"plugin": "Gate", "reason": "not yet"}


def test_no_colour_without_a_terminal(run: Run) -> None:
    assert "\x1b" not in run("checkout-deployment", "-n", "shop").out


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        ({"apiVersion": "v1", "kind": "PropagationPolicyList", "items": []}, "there is no policy"),
        (None, "it has no binding; why is not known, because the policies were not read"),
    ],
    ids=["none", "not read"],
)
def test_a_workload_that_no_policy_matches_is_explained_without_a_binding(
    run: Run, tmp_path: Path, policies: dict[str, Any] | None, text: str
) -> None:
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "api"},
    }
    (tmp_path / "workloads.yaml").write_text(yaml.safe_dump(workload))

    (tmp_path / "policies.yaml").write_text(yaml.safe_dump(policies))
    flags = ["--policies", str(tmp_path / "policies.yaml")] if policies else []

    ran = run("deployment/api", "-n", "shop", "--workloads", str(tmp_path / "workloads.yaml"), *flags)

    assert (ran.status, ran.err) == (1, "")
    assert ran.out.splitlines()[1] == f"NOT CLAIMED   {text}"


def test_only_with_a_scheduler_name_a_binding_is_that_of_another_scheduler(run: Run) -> None:
    asked = [binding("web").replicas(2).scheduler("other")]

    ran = run("web-deployment", "-o", "json", bindings=asked)
    as_other = run("web-deployment", "-o", "json", "--scheduler-name", "other", bindings=asked)
    as_ours = run("web-deployment", "-o", "json", "--scheduler-name", "ours", bindings=asked)

    for each in (ran, as_other):
        assert (each.status, each.fields["wouldBe"]["outcome"]) == (1, "placed")
    assert (as_ours.status, as_ours.fields["wouldBe"]) == (1, None)
    assert as_ours.fields["causes"][0]["code"] == "OtherScheduler"


class Plane:
    """A control plane that is read instead of files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.contents = StoredObjects(
            "https://karmada:5443",
            clusters=[each.manifest() for each in fleet()],
            bindings=[placed_checkout().manifest()],
        )
        self.error: Exception | None = None
        self.read_all = False
        self.asked: list[tuple[ControlPlane, NamedBinding | None]] = []
        self.others: list[BindingBuilder] = []
        monkeypatch.setattr(live, "read_live", self._read)
        monkeypatch.setattr(live, "read_bindings", self._read_bindings)

    def _read_bindings(self, plane: ControlPlane, **_: Any) -> Fleet:
        if self.error is not None:
            raise self.error
        return StoredObjects(
            "https://karmada:5443", bindings=[each.manifest() for each in self.others]
        ).read()

    def _read(
        self, plane: ControlPlane, asked: NamedBinding | None = None, *, all_bindings: bool = False, **_: Any
    ) -> Fleet:
        self.asked.append((plane, asked))
        self.read_all = all_bindings
        if self.error is not None:
            raise self.error
        return self.contents.read(asked)


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Plane:
    return Plane(monkeypatch)


def test_without_n_the_namespace_of_the_context_is_used(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = {"name": "c", "context": {"cluster": "k", "namespace": "shop"}}
    clusters = [{"name": "k", "cluster": {"server": "https://karmada:5443"}}]
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(json.dumps({"current-context": "c", "clusters": clusters, "contexts": [context]}))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    assert command.main(["explain", "checkout-deployment", "-q"]) == 0
    assert command.main(["explain", "checkout-deployment", "-q", "-n", "shop"]) == 0

    assert [asked for _, asked in plane.asked] == [
        NamedBinding("checkout-deployment", "shop", is_namespace_given=False),
        NamedBinding("checkout-deployment", "shop"),
    ]


@pytest.mark.parametrize("part", ["context", "cluster", "user"])
def test_an_unknown_part_of_the_kubeconfig_is_named_with_the_nearest(
    plane: Plane, tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    entries = {each: [{"name": f"prod-{each}", each: {}}] for each in ("context", "cluster", "user")}
    entries["context"][0]["context"] = {"cluster": "prod-cluster", "user": "prod-user"}
    entries["cluster"][0]["cluster"] = {"server": "https://karmada:5443"}
    kubeconfig = tmp_path / "config"
    content = {f"{name}s": each for name, each in entries.items()}
    kubeconfig.write_text(json.dumps({"current-context": "prod-context", **content}))

    assert command.main(["explain", "web", "--kubeconfig", str(kubeconfig), f"--{part}=prd-{part}"]) == 2

    assert f"no entry of the name prd-{part}. Nearest: prod-{part}" in capsys.readouterr().err


def test_without_files_the_control_plane_is_read(plane: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--kubeconfig", "karmada.config", "--context", "east", "--width", "160"]

    assert command.main(["explain", "checkout-deployment", "-n", "shop", *flags]) == 0

    assert "recomputed now from https://karmada:5443" in capsys.readouterr().out
    [(read, asked)] = plane.asked
    assert read == ControlPlane(kubeconfig="karmada.config", context="east")
    assert asked == NamedBinding("checkout-deployment", "shop")


@pytest.mark.parametrize(
    "words",
    [
        ["checkout-deployment", "-n", "shop"],
        ["checkout-deployment"],  # no other namespace has the name
        ["shop/checkout-deployment"],
        ["deploy/checkout"],
        ["deploy", "checkout"],
        ["deployments.apps", "checkout", "-n", "shop"],
        ["shop/deployment/checkout"],
        ["shop/rb/checkout-deployment"],
    ],
)
def test_all_spellings_of_a_name_have_the_same_answer(words: list[str], run: Run) -> None:
    assert run(*words).out == run("checkout-deployment", "-n", "shop").out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["shop/deployment/checkout", "-n", "pay"], "is in the namespace shop, and -n names pay"),
        (["a/b/c/d"], "expected NAME, KIND/NAME, NS/NAME or NS/KIND/NAME"),
        (["shop/"], "expected NAME, KIND/NAME, NS/NAME or NS/KIND/NAME"),
        (["deploy", "checkout", "us-east-1"], "explain answers about one binding"),
        (["nowhere/checkout-deployment"], "does not exist"),
    ],
)
def test_a_name_that_means_nothing_is_refused(words: list[str], problem: str, run: Run) -> None:
    ran = run(*words)

    assert (ran.status, ran.out) == (2, "")
    assert problem in ran.err


@pytest.mark.parametrize(
    "error", [LiveError("clusters is forbidden"), NoSuchBindingError("there is no such binding")]
)
def test_an_error_of_the_control_plane_has_the_status_2(
    plane: Plane, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    plane.error = error

    assert command.main(["explain", "checkout-deployment", "-n", "shop"]) == 2

    assert capsys.readouterr() == ("", f"Error: {error}\n")


def test_a_cluster_that_cannot_be_read_is_reported(plane: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    plane.contents.clusters.append({**cluster("m9").manifest(), "spec": {"taints": 5}})

    assert command.main(["explain", "checkout-deployment", "-n", "shop"]) == 2

    captured = capsys.readouterr()
    assert captured.err.startswith("Cluster m9: spec.taints")
    assert "PLACED" in captured.out


def test_policies_that_may_not_be_read_are_a_warning(
    plane: Plane, capsys: pytest.CaptureFixture[str]
) -> None:
    plane.contents.warnings.append("propagationpolicies: forbidden")

    assert command.main(["explain", "checkout-deployment", "-n", "shop"]) == 0

    assert capsys.readouterr().err == "propagationpolicies: forbidden\n"


@pytest.mark.parametrize("gates", [True, False])
def test_other_bindings_are_read_where_decisions_read_them(plane: Plane, gates: bool) -> None:
    flag = f"--feature-gates=WorkloadAffinity={str(gates).lower()}"

    assert command.main(["explain", "checkout-deployment", "-n", "shop", flag]) == 0

    assert plane.read_all is gates


@pytest.mark.parametrize("pending", [0, 8])
def test_other_bindings_are_read_if_a_cluster_reports_more_requests_than_capacity(
    plane: Plane, capsys: pytest.CaptureFixture[str], pending: int
) -> None:
    burst = [
        binding(f"web-{index}").replicas(4, cpu=1).dynamic_weight().on(m1=4).applied()
        .last_scheduled(f"2026-11-22T10:00:0{index}Z")
        for index in range(3)
    ]  # fmt: skip
    plane.contents.bindings[:] = [burst[0].manifest()]
    plane.others = burst
    made = cluster("m1").capacity(cpu=10, pods=1000).allocated({"cpu": 4}).allocating({"cpu": pending})
    plane.contents.clusters[:] = [made.manifest()]

    assert command.main(["explain", "web-0-deployment", "-o", "json"]) == 0

    fields = json.loads(capsys.readouterr().out)
    assert [each["code"] for each in fields["causes"]] == (["BurstOvercommit"] if pending else [])


def test_other_bindings_that_may_not_be_read_are_a_warning(
    plane: Plane, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = binding("web").replicas(4, cpu=1).dynamic_weight().on(m1=4).applied()
    plane.contents.bindings[:] = [asked.last_scheduled("2026-11-22T10:00:00Z").manifest()]
    plane.contents.clusters[:] = [cluster("m1").capacity(cpu=10, pods=1000).allocated({"cpu": 12}).manifest()]

    def refuse(_: ControlPlane, **__: Any) -> Fleet:
        raise LiveError("resourcebindings is forbidden")

    monkeypatch.setattr(live, "read_bindings", refuse)

    assert command.main(["explain", "web-deployment"]) == 0

    captured = capsys.readouterr()
    assert captured.err == "bindings: resourcebindings is forbidden\n"
    assert "OwnReplicasCount" in captured.out
