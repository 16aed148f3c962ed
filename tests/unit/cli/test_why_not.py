"""The command why-not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karmada_advisor.fleet import live
from karmada_scheduler.command import main
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.cli.stored_objects import StoredObjects
from tests.unit.explain.fleet import billing, checkout, fleet


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    placed = checkout().on(**{"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8}).applied()
    placed.last_scheduled("2026-11-22T10:00:00Z")
    return write(tmp_path, fleet(), [placed, billing()])


def write(folder: Path, clusters: list[ClusterBuilder], bindings: list[BindingBuilder]) -> list[str]:
    for name, builders in (("clusters", clusters), ("bindings", bindings)):
        items = [each.manifest() for each in builders]
        (folder / f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return ["--clusters", str(folder / "clusters.json"), "--bindings", str(folder / "bindings.json")]


def test_the_text_has_cause_changes_and_what_was_tried(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["why-not", "-n", "shop", "checkout-deployment", "us-east-1", *files, "--timeout", "60s"]) == 0
    )

    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].startswith("shop/checkout-deployment   PLACED   ap-south-1 4, eu-west-1 12, eu-west-2 8")
    assert lines[1] == "us-east-1 has none of the 24 replicas of shop/checkout-deployment"
    assert any(line.startswith("WHY      RegionTie: ") for line in lines)
    assert any(line.startswith("AND NOW  NothingAsks: ") for line in lines)
    assert "33 replicas (24 now); 32 is not enough" in out
    assert "-> eu-west-1 13, eu-west-2 9, us-east-1 2   moves 4" in out
    assert "Without effect (tried): " in out
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("width", ["80", "100", "160"])
def test_lines_are_as_wide_as_asked_for(
    files: list[str], width: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["why-not", "-n", "shop", "checkout-deployment", "us-east-1", *files, "--width", width])

    assert max(map(len, capsys.readouterr().out.splitlines())) <= int(width)


def test_a_binding_that_is_placed_nowhere_gets_changes_without_the_cluster_too(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", "-n", "pay", "deployment/billing", "us-east-2", *files]) == 0

    out = capsys.readouterr().out
    assert "WHY      UntoleratedTaint: " in out
    assert "Changes that put replicas on us-east-2." in out
    assert "Changes that place the binding without us-east-2:" in out


def test_a_cluster_that_has_replicas_is_no_question(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", "-n", "shop", "checkout-deployment", "eu-west-1", *files]) == 0

    assert capsys.readouterr().out == (
        "shop/checkout-deployment   PLACED   ap-south-1 4, eu-west-1 12, eu-west-2 8\n"
        "eu-west-1 has 12 of the 24 replicas of shop/checkout-deployment\n"
    )


def test_the_next_decision_may_use_the_cluster_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path, [cluster("m1")], [binding("web").replicas(2, cpu=1).dynamic_weight()])

    assert main(["why-not", "web-deployment", "m1", *files]) == 1

    assert capsys.readouterr().out == (
        "default/web-deployment   NOT PLACED, not decided yet   no decision yet; decides: default-scheduler\n"
        "m1 would get 2 of the 2 replicas of default/web-deployment. Would be: m1 2 (a decision now).\n"
    )


def test_no_change_is_found_for_a_cluster_that_is_being_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = [cluster("m1").deleting(), cluster("m2")]
    files = write(tmp_path, clusters, [binding("web").replicas(2, cpu=1).dynamic_weight()])

    assert main(["why-not", "web-deployment", "m1", *files]) == 1

    assert (
        "None found: no set of up to 4 changes that this search knows reaches it" in capsys.readouterr().out
    )


def test_a_search_that_ends_by_its_bound_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = (
        binding("web")
        .replicas(2, cpu=1)
        .dynamic_weight()
        .affinity(labelSelector={"matchLabels": dict.fromkeys("abcd", "x")})
    )
    files = write(tmp_path, [cluster("m1").taint("a:NoSchedule")], [made])

    assert main(["why-not", "web-deployment", "m1", *files, "--max-runs", "2"]) == 1

    assert "None found within --max-runs 2; a wider search may find one." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["checkout-deploymnt", "us-east-1"], "does not exist. Nearest: checkout-deployment"),
        (["checkout-deployment", "us-east-3"], "cluster us-east-3 does not exist. Nearest: us-east-"),
        (["checkout-deployment"], "name a cluster, or use --placed"),
        (
            ["checkout-deployment", "us-east-1", "--feature-gates", "Nope=true"],
            "unrecognized feature gate: Nope",
        ),
    ],
)
def test_bad_input_has_no_answer(
    files: list[str], arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", "-n", "shop", *arguments, *files]) == 2

    shown = capsys.readouterr()
    assert error in shown.err
    assert shown.out == ""


def test_the_reverse_question_names_the_nearest_cluster(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", "--cluster", "eu-wst-1", *files]) == 2

    assert "cluster eu-wst-1 does not exist. Nearest: eu-west-1" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-3", "many", "2147483648"])
def test_a_number_of_replicas_that_no_workload_has_is_refused(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["why-not", "web", "m1", "--replicas", number])

    assert exit_.value.code == 2
    assert f"expected a number from 1 to 2147483647, got '{number}'" in capsys.readouterr().err


def test_the_largest_number_of_replicas_has_an_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = binding("web").replicas(2, cpu=1).dynamic_weight()
    files = write(tmp_path, [cluster("m1").capacity(cpu=9), cluster("m2").capacity(cpu=9)], [made])

    assert main(["why-not", "web-deployment", "m1", "--replicas", "2147483647", *files]) in {0, 1}

    assert "m1 has fewer than 2147483647 of the 2 replicas" in capsys.readouterr().out


def test_an_object_that_cannot_be_read_is_named_and_the_rest_is_answered(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(files[3])
    listed = json.loads(path.read_text())
    listed["items"].append(
        {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": {"name": "x"}}
    )
    path.write_text(json.dumps(listed))

    assert main(["why-not", "-n", "shop", "checkout-deployment", "us-east-1", *files]) == 2

    shown = capsys.readouterr()
    assert "metadata.namespace: is missing" in shown.err
    assert "RegionTie" in shown.out


@pytest.mark.parametrize(
    ("text", "valid"), [("2s", True), ("500ms", True), ("1m", True), ("0", False), ("x", False)]
)
def test_the_timeout_is_a_time(files: list[str], text: str, *, valid: bool) -> None:
    arguments = ["why-not", "-n", "shop", "checkout-deployment", "eu-west-1", *files, "--timeout", text]
    if valid:
        assert main(arguments) == 0
        return
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_all_bindings_that_a_cluster_does_not_have_are_grouped_by_cause(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", "--cluster", "us-east-1", *files]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "us-east-1, of 2 bindings: 0 are on it, 0 get it at the next decision, 0 would after"
    )
    assert [line.split()[:3] for line in lines[4:]] == [
        ["1", "AffinityMismatch", "filter"],
        ["1", "RegionTie", "select"],
    ]
    assert lines[4].endswith("pay/billing-deployment")


def test_the_reverse_question_counts_what_a_rebalance_would_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    placed = binding("web").replicas(4, cpu=1).dynamic_weight().on(m1=4).applied()
    fresh = binding("new").replicas(4, cpu=1).dynamic_weight()
    files = write(
        tmp_path, [cluster("m1"), cluster("m2")], [placed.last_scheduled("2026-11-22T10:00:00Z"), fresh]
    )

    assert main(["why-not", "--cluster", "m2", *files, "-o", "json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["present"], found["atOnce"], found["afterRebalance"]) == (
        "WhyNotCluster",
        0,
        1,
        1,
    )
    assert [(each["code"], each["names"]) for each in found["groups"]] == [
        ("NothingAsks", ["default/web-deployment"])
    ]


@pytest.mark.parametrize("arguments", [[], ["web-deployment", "--cluster", "m1"]])
def test_the_question_is_either_about_a_binding_or_about_a_cluster(
    files: list[str], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", *arguments, *files]) == 2

    assert "--cluster" in capsys.readouterr().err


def test_configuration_is_changed_only_where_it_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(
        tmp_path, [cluster("m1").taint("a:NoSchedule")], [binding("web").replicas(2, cpu=1).dynamic_weight()]
    )
    asked = ["why-not", "web-deployment", "m1", *files, "-o", "json"]

    main(asked)
    without = json.loads(capsys.readouterr().out)
    assert main([*asked, "--allow", "configuration"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert all(each["flags"] == [] for each in without["remedies"])
    [configured] = [each for each in found["remedies"] if each["flags"]]
    assert configured["flags"] == ["--plugins=*,-TaintToleration"]
    assert configured["apply"] == []
    assert configured["result"] == [{"name": "m1", "replicas": 2}]


def test_a_gate_that_makes_the_decision_fail_is_no_change_although_the_placement_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By components the binding fits on m1; by replicas it fits nowhere, and stays on m2."""
    web = binding("web").replicas(500, cpu=1).component("a", 1, cpu=1).component("b", 1, cpu=1).aggregated()
    web.names("m1").spread("cluster", 1, 1).on(m2=500)
    gate = "--feature-gates=MultiplePodTemplatesScheduling"
    asked = ["why-not", "web-deployment", "m2", "--allow", "configuration", "-o", "json"]

    clusters = [cluster("m1").capacity(cpu=10), cluster("m2").capacity(cpu=10)]
    main([*asked, *write(tmp_path, clusters, [web]), f"{gate}=true"])

    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["next"]["result"]] == ["m1"]
    assert f"{gate}=false" not in [flag for each in found["remedies"] for flag in each["flags"]]


@pytest.fixture
def no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control plane on which bindings may be read and not be listed."""
    contents = StoredObjects(
        "https://karmada:5443",
        clusters=[each.manifest() for each in fleet()],
        bindings=[billing().manifest()],
        unlisted=["resourcebindings is forbidden"],
    )
    monkeypatch.setattr(live, "read_live", lambda _, asked, **__: contents.read(asked))


@pytest.mark.usefixtures("no_lists")
def test_without_the_permission_to_list_bindings_the_answer_does_not_count_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["why-not", "-n", "pay", "deployment/billing", "us-east-2"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "resourcebindings is forbidden\n"
    assert "other bindings not checked" in captured.out
    assert "Note: Not all bindings were read, so it is not known how many others" in captured.out

    main(["why-not", "-n", "pay", "deployment/billing", "us-east-2", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert [note.partition(" ")[0] for note in found["notes"]] == ["Not", "whether"]  # nor quotas
    by_side = {edit["side"]: each["touches"] for each in found["remedies"] for edit in each["edits"]}
    assert by_side["cluster"] == {"bindings": 1, "checked": False}
    assert by_side["policy"] == {"bindings": 1, "checked": False}


@pytest.mark.usefixtures("no_lists")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["-n", "pay", "deployment/billing", "us-east-2", "--feature-gates", "WorkloadAffinity=true"],
            "no answer",
        ),
        (["--cluster", "us-east-2"], "resourcebindings is forbidden"),
    ],
)
def test_where_other_bindings_are_needed_the_permission_to_list_them_is_too(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", *arguments]) == 2

    assert text in capsys.readouterr().err


@pytest.mark.usefixtures("no_lists")
def test_with_a_guard_that_counts_the_moves_of_other_bindings_the_permission_to_list_them_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "PlacementGuard"}]}},
    }
    kind = {"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**kind, "profiles": [profile]}))
    arguments = ["-n", "pay", "deployment/billing", "us-east-2", "--config", str(config)]
    assert main(["why-not", *arguments]) == 2
    assert "no answer" in capsys.readouterr().err
