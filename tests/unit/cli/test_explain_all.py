"""``explain -A`` has all bindings by state and cause, and ``--watch`` follows one until it is placed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.cli import overview_question
from karmada_advisor.cli.explain import PAUSE_SECONDS, watched
from karmada_advisor.explain.model import BindingHead, Explanation, Provenance, Tense
from karmada_advisor.explain.overview import ExplanationSummary
from karmada_advisor.state.model import BindingState, Placed, StateName, Target
from karmada_scheduler import command
from karmada_scheduler.testing import BindingBuilder, binding
from tests.document_schema import document_schema
from tests.unit.explain.fleet import failed_billing, fleet, placed_checkout
from tests.unit.views.test_schema import problems

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "explanationsummary.v1alpha1.json"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return put(tmp_path, [placed_checkout(), failed_billing(), binding("new", namespace="pay").replicas(1)])


def put(folder: Path, bindings: Sequence[BindingBuilder]) -> list[str]:
    for kind, builders in (("clusters", fleet()), ("bindings", bindings)):
        (folder / f"{kind}.yaml").write_text(
            "\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders)
        )
    return [f"--{kind}={folder}/{kind}.yaml" for kind in ("clusters", "bindings")]


def test_all_bindings_are_shown_by_state_and_cause_the_worst_first(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["explain", "-A", *files, "--width=160"]) == 1

    first, replicas, _, unread, *groups = capsys.readouterr().out.splitlines()
    assert unread == "templates without a binding are not in it, as they were not read (--workloads)"
    assert first == "3 bindings on 8 clusters: 1 placed, 1 not decided yet, 1 not placed"
    assert replicas == "replicas: 31 wanted, 24 placed, 24 running"
    shown = [line for line in groups if line]
    assert shown[0].startswith("    1  NOT PLACED (NoClusterFit)   ClusterUnknown: ")
    assert shown[1].strip() == "pay/billing-deployment"
    assert shown[2].startswith("    1  NOT PLACED, not decided yet")
    assert shown[-1] == "`explain -n pay billing-deployment` says more about one."


@pytest.mark.parametrize(
    ("flags", "total", "status"),
    [
        (["-n", "shop"], 1, 0),
        (["-n", "pay"], 2, 1),
        (["--policy", "shop/checkout"], 1, 0),
        (["--on", "eu-west-1"], 1, 0),
    ],
)
def test_a_namespace_a_policy_or_a_cluster_narrows_the_list(
    files: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], total: int, status: int
) -> None:
    assert command.main(["explain", *flags, *files, "-o", "json"]) == status

    fields = json.loads(capsys.readouterr().out)
    assert (fields["kind"], fields["total"]) == ("ExplanationSummary", total)
    assert (
        list(problems(fields, document_schema(ExplanationSummary), document_schema(ExplanationSummary))) == []
    )


def test_the_schema_in_the_repository_is_that_of_the_model() -> None:
    assert json.loads(SCHEMA.read_text()) == document_schema(ExplanationSummary)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--on", "eu-wst-1"], "cluster eu-wst-1 does not exist. Nearest: eu-west-1"),
        (["-n", "shpo"], "namespace shpo does not exist. Nearest: shop"),
        (["-n", "nowhere", "-o", "json"], "namespace nowhere does not exist"),
        (
            ["--policy", "chekout", "--policies", "POLICIES"],
            "policy chekout does not exist. Nearest: checkout",
        ),
        (["web", "-A"], "give the name of one binding, or -A"),
        (["-A", "--watch"], "are about one binding"),
        (["web", "-n", "pay", "--watch"], "--watch needs a control plane"),
    ],
)
def test_flags_that_do_not_go_together_or_name_nothing_are_refused(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], text: str
) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text(json.dumps(policy("checkout", "checkout")))
    flags = [str(policies) if each == "POLICIES" else each for each in flags]
    assert command.main(["explain", *flags, *files]) == 2
    assert text in capsys.readouterr().err


def explanation(name: StateName, *targets: Target) -> Explanation:
    state = BindingState(name, Placed.ALL if targets else Placed.NONE, targets, 2)
    return Explanation(
        BindingHead("ResourceBinding", "shop", "web", 1, 2, {}), state, Provenance(Tense.RECOMPUTED, "")
    )


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def watch(found: Iterator[Explanation], seconds: float) -> tuple[list[str], float]:
    lines: list[str] = []
    time = Time()
    watched(
        lambda: next(found),
        lines.append,
        seconds=seconds,
        clock=lambda: time.now,
        now=lambda: datetime(2026, 11, 24, 10, 0, int(time.now), tzinfo=UTC),
        sleep=time.sleep,
    )
    return lines, time.now


def test_watching_shows_each_change_once_and_ends_when_the_binding_is_placed() -> None:
    waiting, done = explanation(StateName.NOT_DECIDED_YET), explanation(StateName.PLACED, Target("m1", 2))

    lines, took = watch(iter([waiting, waiting, done]), 60)

    assert lines == [
        "10:00:00  NOT PLACED, not decided yet",
        f"10:00:0{2 * PAUSE_SECONDS:.0f}  PLACED   m1 2",
    ]
    assert took == 2 * PAUSE_SECONDS


def test_watching_ends_after_its_time() -> None:
    waiting = explanation(StateName.NOT_DECIDED_YET)

    lines, took = watch(iter([waiting] * 9), 5)

    assert (len(lines), took) == (1, 5)


@pytest.mark.parametrize(("is_required", "status", "on_cluster"), [(True, 0, 1), (False, 1, 0)])
def test_a_follower_is_the_same_alone_in_a_list_and_on_its_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_required: bool, status: int, on_cluster: int
) -> None:
    made = binding("settings", namespace="shop").placement(None)
    made.manifest()["metadata"]["labels"] = {"resourcebinding.karmada.io/depended-by-7f9fb9dff": "x"}
    if is_required:
        on = [{"name": "us-east-1", "replicas": 2}]
        made.manifest()["spec"]["requiredBy"] = [
            {"namespace": "shop", "name": "app-deployment", "clusters": on}
        ]
    given = put(tmp_path, [made])

    for flags in (["-n", "shop", "settings-deployment"], ["-A"]):
        assert command.main(["explain", *flags, *given, "-o", "json"]) == status
    capsys.readouterr()
    assert command.main(["explain", "--on", "us-east-1", *given, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == on_cluster


@pytest.mark.parametrize(("purge_mode", "total"), [("Gracefully", 1), ("Directly", 0)])
def test_an_old_copy_is_on_its_cluster_until_its_eviction_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], purge_mode: str, total: int
) -> None:
    made = placed_checkout().evicted_from("us-east-1")
    made.manifest()["spec"]["gracefulEvictionTasks"][0]["purgeMode"] = purge_mode

    _, found = overview(capsys, "--on", "us-east-1", *put(tmp_path, [made]))

    assert found["total"] == total


IN_STATES = {
    "placed": placed_checkout(),
    "being deleted": placed_checkout().deleting(),
    "moving": placed_checkout().evicted_from("us-east-1"),
    "out of date": placed_checkout().generation(2).replicas(50),
    "held": placed_checkout().suspended(),
    "not placed": failed_billing(),
    "not decided yet": binding("new").replicas(1),
    "nothing to place": binding("idle").replicas(0, cpu=1).observed_generation(1),
    "no placement": binding("attached").placement(None),
}


@pytest.mark.parametrize(("state", "made"), IN_STATES.items(), ids=IN_STATES)
def test_a_binding_has_the_same_exit_status_alone_and_in_a_list(
    state: str, made: BindingBuilder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if state == "no placement":
        made.manifest()["metadata"]["labels"] = {}  # no policy claims it
    given, key = put(tmp_path, [made]), made.build().key

    alone, found = overview(capsys, f"{key.namespace}/{key.name}", *given)
    status, listed = overview(capsys, "-A", *given)

    assert (found["state"]["name"], [*listed["counts"]]) == (state, [state])
    assert status == alone


@pytest.mark.parametrize(
    ("flags", "total", "status"),
    [
        (["-l", "propagationpolicy.karmada.io/permanent-id"], 3, 1),
        (["-A", "-l", "!propagationpolicy.karmada.io/permanent-id"], 0, 0),
        (["-n", "shop", "-l", "propagationpolicy.karmada.io/permanent-id"], 1, 0),
        (["-n", "pay", "-l", "tier=nothing"], 0, 0),
    ],
)
def test_labels_narrow_the_list(
    files: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], total: int, status: int
) -> None:
    assert command.main(["explain", *flags, *files, "-o", "json"]) == status
    assert json.loads(capsys.readouterr().out)["total"] == total


def test_labels_and_a_name_exclude_each_other(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["explain", "web", "-l", "a=b", *files]) == 2
    assert "or -A, -l, --policy or --on, not both" in capsys.readouterr().err


def test_the_names_of_what_is_not_placed_can_be_given_to_explain_again(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["explain", "-A", "-o", "name", *files]) == 1
    names = capsys.readouterr().out.split()
    assert names == [
        "resourcebinding.work.karmada.io/billing-deployment",
        "resourcebinding.work.karmada.io/new-deployment",
    ]
    for each in names:
        assert command.main(["explain", "-q", each, *files]) == 1
        assert capsys.readouterr().out.startswith(f"pay/{each.rpartition('/')[2]}")


def test_within_one_namespace_names_are_those_of_kubectl(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(["explain", "-n", "pay", "-o", "name", *files])
    assert capsys.readouterr().out.split()[0] == "resourcebinding.work.karmada.io/billing-deployment"
    command.main(["explain", "shop/checkout-deployment", "-o", "name", *files])
    assert capsys.readouterr().out == "resourcebinding.work.karmada.io/checkout-deployment\n"


AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


def policy(name: str, selects: str, kind: str = "Deployment", **metadata: str) -> dict[str, object]:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {
            "resourceSelectors": [{"apiVersion": version, "kind": kind, "name": selects}],
            "placement": {},
        },
    }


def template(
    name: str, kind: str = "Deployment", version: str = "apps/v1", **metadata: object
) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop", **metadata}}


def lists(folder: Path, **objects: Sequence[dict[str, object]]) -> list[str]:
    """Return flags for files of objects."""
    folder.mkdir(exist_ok=True)
    for kind, manifests in objects.items():
        (folder / f"{kind}.yaml").write_text("\n".join(f"---\n{json.dumps(each)}" for each in manifests))
    return [f"--{kind}={folder}/{kind}.yaml" for kind in objects]


def overview(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, dict[str, Any]]:
    status = command.main(["explain", *flags, "-o", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_bindings_with_one_message_are_grouped_by_the_cause_of_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def failed(name: str, **placement: Any) -> BindingBuilder:
        found = binding(name, namespace="shop").replicas(2).placement({"clusterAffinity": placement})
        return found.condition(type="Scheduled", status="False", reason="NoClusterFit", message="0/8 fit")

    region = {
        "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu-wst"]}]}
    }
    files = put(
        tmp_path,
        [
            failed("a", clusterNames=["us-esat-1"]),
            failed("b", **region),
            failed("c", clusterNames=["us-esat-1"]),
            failed("d", labelSelector={"matchLabels": {"tier": "gold"}}),
        ],
    )
    status, found = overview(capsys, "-A", *files)
    groups = {
        group["cause"]["text"]: [each["name"] for each in group["bindings"]] for group in found["groups"]
    }
    assert (status, found["undecided"], len(groups)) == (1, 0, 3)
    assert groups["clusterNames: us-esat-1 does not exist, nearest: us-east-1"] == [
        "a-deployment",
        "c-deployment",
    ]


def test_other_amounts_are_no_other_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = [
        binding(f"large{number}", namespace="shop")
        .replicas(number * 100_000, cpu="1")
        .placement({"replicaScheduling": AGGREGATED})
        .condition(type="Scheduled", status="False", reason="Unschedulable", message=f"short of {number}")
        for number in (1, 2)
    ]
    _, found = overview(capsys, "-A", *put(tmp_path, large))
    [group] = found["groups"]
    assert (group["cause"]["code"], group["count"], group["example"]) == ("NotEnoughRoom", 2, True)


def test_what_is_not_decided_in_time_is_counted_and_grouped_by_what_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview_question, "_CAUSES_SECONDS", 0.0)
    bindings = [
        binding(name, namespace="shop")
        .replicas(1)
        .placement({"clusterAffinity": {"clusterNames": ["nowhere"]}})
        .condition(type="Scheduled", status="False", reason="NoClusterFit", message="0/8 fit")
        for name in ("a", "b", "c")
    ]
    _, found = overview(capsys, "-A", *put(tmp_path, bindings))
    assert found["undecided"] == 2
    assert [(each["count"], each["cause"] is None) for each in found["groups"]] == [(2, True), (1, False)]


@pytest.mark.parametrize(
    ("orphan", "text"),
    [
        (template("orphan"), "nearest: PropagationPolicy shop/orphan, but its name is orphaned"),
        (template("orphan", "Job", "batch/v1"), "no policy matches it; nearest: "),
        (template("orphan", "StatefulSet"), "no policy matches it; nearest: "),
    ],
)
def test_a_workload_that_no_policy_claims_is_in_lists_and_runs_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], orphan: dict[str, object], text: str
) -> None:
    files = put(tmp_path, [placed_checkout()])
    files += lists(
        tmp_path, policies=[policy("orphan", "orphaned")], workloads=[template("checkout"), orphan]
    )
    for flags in (["-A"], ["-n", "shop"]):
        status, found = overview(capsys, *flags, *files)
        assert (status, found["total"], found["templates"], found["knowsTemplates"]) == (1, 1, 1, True)
        [group] = found["groups"]
        assert (group["bindings"][0]["name"], text in group["cause"]["text"]) == ("orphan", True)
    command.main(["explain", "-A", "-o", "name", *files])
    assert capsys.readouterr().out == f"{str(orphan['kind']).lower()}/orphan\n"


@pytest.mark.parametrize(
    "other",
    [
        template("settings", "ConfigMap", "v1"),
        template(
            "web-1",
            "ReplicaSet",
            ownerReferences=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
        ),
        template("gone", deletionTimestamp="2026-11-24T08:00:00Z"),
        template("proxy", "DaemonSet", namespace="kube-system"),
    ],
)
def test_what_runs_nothing_of_its_own_needs_no_binding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: dict[str, object]
) -> None:
    files = put(tmp_path, [placed_checkout()])
    files += lists(tmp_path, policies=[policy("checkout", "checkout")], workloads=[other])
    status, found = overview(capsys, "-A", *files)
    assert (status, found["templates"], found["groups"]) == (0, 0, [])


@pytest.mark.parametrize("flag", [["--all"], ["-o", "wide"]])
def test_an_unfolded_overview_lists_all_bindings_with_state_and_clusters(
    files: list[str], capsys: pytest.CaptureFixture[str], flag: list[str]
) -> None:
    command.main(["explain", "-A", *files, *flag])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["NAME", "STATE", "CLUSTERS"] in rows
    assert any(row[:3] == ["shop/checkout-deployment", "PLACED", "ap-south-1"] for row in rows)


@pytest.mark.parametrize(
    ("name", "status"), [("checkout", 0), ("shop/checkout", 0), ("chekout", 2), ("both", 2)]
)
def test_the_name_of_a_workload_is_enough_if_one_kind_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, status: int
) -> None:
    both = binding("both", namespace="shop").replicas(1).manifest()
    other = {**both, "metadata": {**both["metadata"], "name": "both-statefulset"}}
    files = put(tmp_path, [placed_checkout()])
    files += lists(tmp_path / "more", bindings=[both, other])
    flags = [] if "/" in name else ["-n", "shop"]
    assert command.main(["explain", name, *flags, "--no-remedies", *files]) == status
    if name == "both":
        assert "both-deployment, both-statefulset. Name one of them" in capsys.readouterr().err


def test_wide_answers_break_no_line_and_fold_no_list(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for flags in (["pay/billing-deployment", "--no-remedies"], ["-A"]):
        command.main(["explain", *flags, *files, "-o", "wide", "--width=40"])
        wide = capsys.readouterr().out
        command.main(["explain", *flags, *files, "--all", "--width=4000"])
        assert wide == capsys.readouterr().out
        assert max(map(len, wide.splitlines())) > 100


@pytest.mark.parametrize("name", ["deploy/broken", "broken-deployment", "broken"])
def test_a_binding_of_a_file_that_cannot_be_read_is_not_said_to_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    broken = binding("broken", namespace="shop").replicas(3)
    broken.manifest()["spec"]["replicas"] = "three"
    given = put(tmp_path, [placed_checkout(), broken])

    assert command.main(["explain", "-n", "shop", name, *given]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "replicas not known UNKNOWN the object cannot be read: spec.replicas: expected an integer" in out
    assert command.main(["why-not", "-n", "shop", name, "eu-west-1", *given]) == 2
    err = capsys.readouterr().err
    assert "ResourceBinding(shop/broken-deployment) cannot be read: spec.replicas" in err
    assert "does not exist" not in err
