"""Remedies that the core does not decide alone: quotas, policies, schedulers, dispatching."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.cli.whynot import ask, search_bounds
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import explaining
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.views.text import Style
from karmada_advisor.views.why_not import why_not_text
from karmada_advisor.whynot.answer import WhyNotQuestion
from karmada_scheduler.command import main
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.cli.stored_objects import StoredObjects
from tests.unit.plan.test_holds import NOW, lease

ID = "propagationpolicy.karmada.io/permanent-id"
POLICY_API = "policy.karmada.io/v1alpha1"


def policy(
    name: str, *clusters: str, selects: str = "web", kind: str = "Deployment", **spec: Any
) -> dict[str, Any]:
    selector = {"apiVersion": "apps/v1", "kind": kind, "name": selects}
    return {
        "apiVersion": POLICY_API,
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default", "labels": {ID: name}},
        "spec": {
            "resourceSelectors": [selector],
            "placement": {"clusterAffinity": {"clusterNames": list(clusters)}},
            **spec,
        },
    }


def claimed(made: BindingBuilder, by: str) -> dict[str, Any]:
    manifest = made.label(ID, by).manifest()
    manifest["metadata"].setdefault("annotations", {}).update(
        {"propagationpolicy.karmada.io/namespace": "default", "propagationpolicy.karmada.io/name": by}
    )
    return manifest


def said(
    folder: Path, capsys: pytest.CaptureFixture[str], *question: str, **files: list[dict[str, Any]]
) -> str:
    """Return the text of the answer over files, on one line."""
    flags = []
    for kind, manifests in files.items():
        path = folder / f"{kind}.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        flags.append(f"--{kind}={path}")
    main([*question, *flags])
    return " ".join(capsys.readouterr().out.split())


def asked(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *question: str,
    command: str = "why-not",
    **files: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the answer over files; clusters m1 and m2 can take 9 cpu each."""
    clusters = [cluster(name).capacity(cpu=9, memory="100Gi", pods=100).manifest() for name in ("m1", "m2")]
    flags = []
    for kind, manifests in {"clusters": clusters, **files}.items():
        path = folder / f"{kind}.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        flags.append(f"--{kind}={path}")
    main([command, *question, *flags, "-o", "json", "--timeout", "1m"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def ops(found: dict[str, Any]) -> list[list[str]]:
    return [[edit["op"] for edit in each["edits"]] for each in found["remedies"]]


def test_a_refusal_by_a_quota_is_cured_by_fewer_replicas_smaller_requests_or_a_higher_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = binding("web").replicas(3, cpu=1).dynamic_weight().generation(1).observed_generation(1)
    made.condition(type="Scheduled", status="False", reason="QuotaExceeded", message="exceeded")
    quota = {
        "apiVersion": POLICY_API,
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "team-a", "namespace": "default"},
        "spec": {"overall": {"cpu": "5"}},
        "status": {"overallUsed": {"cpu": "3"}},
    }

    found = asked(
        tmp_path, capsys, "rb/web-deployment", "--placed", bindings=[made.manifest()], quotas=[quota]
    )

    assert not found["holds"]
    assert found["state"]["name"] == "held"
    assert found["next"]["reason"] == "QuotaExceeded"
    assert ops(found) == [["setReplicas"], ["raiseQuota"], ["setRequest"]]
    fewer, higher, _ = found["remedies"]
    assert fewer["edits"][0]["minimal"]["at"] == 2
    assert fewer["edits"][0]["minimal"]["failsAt"] == 3
    assert higher["edits"][0]["text"] == "raise cpu of the quota team-a to 6 (5 now)"
    assert higher["apply"][0] == {
        "object": {"kind": "FederatedResourceQuota", "namespace": "default", "name": "team-a"},
        "patch": [{"op": "replace", "path": "/spec/overall/cpu", "value": "6"}],
    }


def test_no_placement_is_promised_that_a_quota_which_was_not_read_may_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = binding("web").replicas(6, cpu=1).dynamic_weight().on(m1=2, m2=2).observed_generation(1)
    made.condition(type="Scheduled", status="False", reason="QuotaExceeded", message="exceeded")
    clusters = [cluster(name).capacity(cpu=9, memory="100Gi", pods=100).manifest() for name in ("m1", "m2")]
    files = {"clusters": clusters, "bindings": [made.manifest()]}

    explained = said(tmp_path, capsys, "explain", "web", **files)
    why_not = said(tmp_path, capsys, "why-not", "web", "--placed", **files)

    assert "QuotaRefused" in explained
    assert "Would be" not in explained + why_not
    assert "a decision now would write another one" not in explained
    assert "quotas were not read (--quotas): it may refuse it again" in why_not


@pytest.mark.parametrize(
    ("made", "asked_for", "answer"),
    [
        (
            binding("web").replicas(4).dynamic_weight().on(gone=1, m1=3),
            "gone",
            "gone has 1 of the 4 replicas of default/web-deployment WHY",
        ),
        (binding("web").placement(None), "m2", "m2 has none of default/web-deployment WHY"),
    ],
    ids=["a cluster that is being deleted has replicas", "other clusters have what another binding requires"],
)
def test_what_a_cluster_has_is_what_is_stored(
    made: BindingBuilder, asked_for: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = [cluster(name).manifest() for name in ("m1", "m2")] + [cluster("gone").deleting().manifest()]
    if not made.build().spec.placement:
        requirer = {"namespace": "default", "name": "app", "clusters": [{"name": "m1"}]}
        made.manifest()["spec"]["requiredBy"] = [requirer]
        made.manifest()["metadata"]["labels"] = {}  # no policy claims it

    found = said(tmp_path, capsys, "why-not", "web", asked_for, clusters=clusters, bindings=[made.manifest()])

    assert answer in found


def test_no_replicas_are_proposed_for_a_kind_without_replicas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = binding("tick").dynamic_weight().on(m1=0, m2=0).applied().observed_generation(1)

    found = asked(tmp_path, capsys, "rb/tick-deployment", "m2", "--off", bindings=[made.manifest()])

    assert found["remedies"]
    assert ["setReplicas"] not in ops(found)


@pytest.mark.parametrize(
    ("term", "question", "text"),
    [
        ({"clusterNames": ["m1"]}, ["m2"], "add m2 to clusterNames in affinity term first"),
        (
            {"clusterNames": ["m1", "m2"]},
            ["m2", "--off"],
            "remove m2 from clusterNames in affinity term first",
        ),
        ({}, ["m2", "--off"], "exclude m2 in affinity term first"),
        ({"exclude": ["m1", "m2"]}, ["m2"], "remove m2 from exclude in affinity term first"),
        (
            {"labelSelector": {"matchLabels": {"tier": "prod"}}},
            ["m2"],
            "drop the label tier=prod of the selector in affinity term first",
        ),
    ],
)
def test_an_edit_of_an_affinity_term_says_of_which(
    term: dict[str, Any],
    question: list[str],
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = binding("web").replicas(2).duplicated()
    made.manifest()["spec"]["placement"]["clusterAffinities"] = [{"affinityName": "first", **term}]

    found = asked(tmp_path, capsys, "rb/web-deployment", *question, bindings=[made.manifest()])

    texts = [edit["text"] for remedy in found["remedies"] for edit in remedy["edits"]]
    assert text in texts
    patches = [each["patch"] for remedy in found["remedies"] for each in remedy["apply"]]
    assert "/clusterAffinity" not in str(patches)  # Karmada refuses it next to terms


@pytest.mark.parametrize(
    ("api_version", "kind", "is_custom"),
    [
        ("batch/v1", "CronJob", False),
        ("networking.k8s.io/v1", "Ingress", False),
        ("v1", "ConfigMap", False),
        ("example.com/v1", "Widget", True),
        ("gateway.networking.k8s.io/v1", "Gateway", True),
    ],
)
def test_a_kind_of_kubernetes_itself_needs_no_crd(
    api_version: str, kind: str, is_custom: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = binding("web").replicas(2).duplicated().resource(api_version, kind)
    clusters = [cluster(name).manifest() for name in ("m1", "m2")]
    for each in clusters:
        each["status"]["apiEnablements"] = [
            {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}
        ]

    found = asked(tmp_path, capsys, "rb/web-deployment", "m2", bindings=[made.manifest()], clusters=clusters)

    edits = [edit for each in found["remedies"] for edit in each["edits"]]
    edit = next(each for each in edits if each["op"] == "serveApi")
    assert ("CRD" in edit["text"], "Install" in edit["instead"]) == (is_custom, is_custom)
    assert f"serve {api_version} {kind}" in edit["text"]


@pytest.mark.parametrize("strategy", ["aggregated", "dynamic_weight"])
def test_of_0_replicas_none_is_missing(
    strategy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = getattr(binding("web").replicas(0, cpu=1), strategy)().applied().observed_generation(1)
    made.manifest()["spec"]["rescheduleTriggeredAt"] = "2026-11-02T00:00:00Z"
    made.last_scheduled("2026-11-01T00:00:00Z")
    clusters = [cluster(name).capacity(cpu=1, pods=10).manifest() for name in ("m1", "m2")]

    found = said(tmp_path, capsys, "explain", "web", clusters=clusters, bindings=[made.manifest()])

    assert "0 replicas are wanted: there is nothing to place" in found
    assert "of 0 replicas fit" not in found


_GATE = "quotas count only if karmada-webhook runs with the gate FederatedQuotaEnforcement"
_UNREAD = "whether a FederatedResourceQuota refuses what is placed is not known: quotas were not read"


def quota(cpu: str, used: dict[str, str] | None = None, *, namespace: str = "default") -> dict[str, Any]:
    return {
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "team-a", "namespace": namespace},
        "spec": {"overall": {"cpu": cpu}},
        "status": {"overallUsed": used or {}},
    }


@pytest.mark.parametrize(
    ("quotas", "on", "is_placed", "note"),
    [
        (None, {}, True, _UNREAD),
        ([], {}, True, ""),
        ([quota("9", {"cpu": "1"})], {}, True, ""),
        ([quota("1", {"cpu": "1"})], {}, False, ""),
        ([quota("1", {"cpu": "1"}, namespace="other")], {}, True, ""),
        ([quota("1")], {}, False, _GATE),
        ([quota("1")], {"m1": 1}, True, ""),
    ],
    ids=["not read", "none", "large enough", "too small", "of another", "may count", "does not count"],
)
def test_a_quota_that_counts_refuses_before_it_has_refused_the_binding(
    quotas: list[dict[str, Any]] | None,
    on: dict[str, int],
    is_placed: bool,
    note: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = binding("web").replicas(3, cpu=1).dynamic_weight().on(**on)
    clusters = [cluster("m1").capacity(cpu=9, pods=100).manifest()]
    files: dict[str, Any] = {"clusters": clusters, "bindings": [made.manifest()]}
    files |= {} if quotas is None else {"quotas": quotas}

    found = asked(tmp_path, capsys, "rb/web-deployment", "m1", "--replicas=3", **files)
    explained = said(tmp_path, capsys, "explain", "web", **files)

    assert found["nextHolds"] is is_placed
    assert [each for each in found["notes"] if note not in each] == []
    assert bool(found["notes"]) is bool(note)
    assert ("QuotaLimits" in explained) is not is_placed
    assert ("Would be: m1 3" in explained) is is_placed
    assert note in explained
    if not is_placed:
        assert {op for each in ops(found) for op in each} & {"setReplicas", "raiseQuota", "setRequest"}


def test_preemption_comes_first_where_a_policy_holds_the_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = claimed(binding("web").replicas(3, cpu=1).duplicated().names("m1"), "b-low")
    policies = [policy("b-low", "m1"), policy("b-high", "m2", priority=5)]

    found = asked(tmp_path, capsys, "rb/web-deployment", "m2", bindings=[mine], policies=policies)

    first = found["remedies"][0]
    assert [each["op"] for each in first["edits"]] == ["preempt"]
    assert first["result"] == [{"name": "m2", "replicas": 3}]
    assert "PropagationPolicyPreemption" in first["caution"]
    assert first["apply"][0]["object"]["name"] == "b-high"


def test_preemption_of_an_equal_priority_needs_a_higher_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = claimed(binding("web").replicas(3, cpu=1).duplicated().names("m1"), "b-low")
    policies = [policy("b-low", "m1"), policy("a-same", "m2")]

    found = asked(tmp_path, capsys, "rb/web-deployment", "m2", bindings=[mine], policies=policies)

    assert sorted(ops(found)[0]) == ["preempt", "setPriority"]


def test_the_selector_of_the_nearest_policy_is_corrected_for_a_workload_without_a_binding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "s13-none", "namespace": "default"},
    }
    policies = [policy("a-first", selects="other"), policy("s13", selects="s13-nome")]
    others = [binding("other").replicas(1).duplicated().manifest()]

    for command, question in (("explain", ()), ("why-not", ("--placed",)), ("why-not", ("m1",))):
        found = asked(
            tmp_path, capsys, "deployment/s13-none", *question, command=command,
            bindings=others, policies=policies, workloads=[workload],
        )  # fmt: skip

        [cause] = found["causes"]
        assert cause["code"] == "NotClaimed"
        assert next(iter(cause["evidence"]["nearest"])) == "PropagationPolicy default/s13"
        assert ops(found)[0] == ["correctSelector"]
        assert found["remedies"][0]["apply"][0]["patch"] == [
            {"op": "replace", "path": "/spec/resourceSelectors/0/name", "value": "s13-none"}
        ]


@pytest.mark.parametrize("by", ["policy", "binding"])
def test_dispatching_is_resumed_where_it_is_suspended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    made = binding("web").replicas(2, cpu=1).duplicated().names("m1").on(m1=2).applied().generation(1)
    mine = claimed(made.observed_generation(1), "web")
    mine["spec"]["suspension"] = {"dispatching": True}
    spec: dict[str, Any] = {"suspension": {"dispatching": True}} if by == "policy" else {}

    found = asked(
        tmp_path,
        capsys,
        "rb/web-deployment",
        command="explain",
        bindings=[mine],
        policies=[policy("web", "m1", **spec)],
    )

    [remedy] = [each for each in found["remedies"] if each["edits"][0]["op"] == "resumeDispatching"]
    assert remedy["apply"][0]["object"]["kind"] == (
        "PropagationPolicy" if by == "policy" else "ResourceBinding"
    )
    assert remedy["result"] == [{"name": "m1", "replicas": 2}]


def test_a_cluster_does_not_get_what_a_quota_refuses_at_the_next_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = binding("web").replicas(3, cpu=1).duplicated().generation(1).observed_generation(1)
    made.condition(type="Scheduled", status="False", reason="QuotaExceeded", message="exceeded")
    due = binding("due").replicas(1).duplicated().manifest()

    found = asked(tmp_path, capsys, "--cluster", "m1", bindings=[made.manifest(), due])

    assert found["atOnce"] == 1
    assert [(each["code"], each["names"]) for each in found["groups"]] == [
        ("QuotaRefused", ["default/web-deployment"])
    ]


def test_no_replica_that_runs_is_stopped_because_of_a_quota(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = binding("web").replicas(4, cpu=1).dynamic_weight().on(m1=2).applied().generation(2)
    made.observed_generation(2).last_scheduled("2026-11-22T10:00:00Z")
    made.condition(type="Scheduled", status="False", reason="QuotaExceeded", message="exceeded")
    quota = {
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "team-a", "namespace": "default"},
        "spec": {"overall": {"cpu": "2"}},
        "status": {"overallUsed": {"cpu": "2"}},
    }

    found = asked(
        tmp_path, capsys, "rb/web-deployment", "--placed", bindings=[made.manifest()], quotas=[quota]
    )

    assert "raise cpu of the quota team-a to 4 (2 now)" in [
        edit["text"] for each in found["remedies"] for edit in each["edits"]
    ]
    replicas = [
        edit["minimal"]["at"]
        for each in found["remedies"]
        for edit in each["edits"]
        if edit["op"] == "setReplicas"
    ]
    assert replicas == []


def test_a_label_of_the_nearest_policy_is_corrected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = {"name": "web", "namespace": "default", "labels": {"app": "front"}}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    policies = [policy("a-other"), policy("front")]
    for each, label in zip(policies, ("other", "frnot"), strict=True):
        [selector] = each["spec"]["resourceSelectors"]
        del selector["name"]
        selector["labelSelector"] = {"matchLabels": {"app": label}}
    others = [binding("other").replicas(1).duplicated().manifest()]

    found = asked(
        tmp_path, capsys, "deployment/web", command="explain", bindings=others, policies=policies,
        workloads=[workload],
    )  # fmt: skip

    assert found["causes"][0]["text"] == (
        "no policy matches it; nearest: PropagationPolicy default/front, but its labelSelector wants app=frnot, and it has "
        "app=front"
    )
    assert found["remedies"][0]["apply"][0]["patch"] == [
        {"op": "replace", "path": "/spec/resourceSelectors/0/labelSelector/matchLabels/app", "value": "front"}
    ]


@pytest.mark.parametrize("command", ["explain", "why-not"])
@pytest.mark.parametrize(
    ("named", "codes"),
    [("hgh", ["PriorityClassMissing"]), ("high", ["NotClaimed"]), ("system-node-critical", ["NotClaimed"])],
    ids=["missing", "given", "of every API server"],
)
def test_priority_classes_among_the_files_of_workloads_are_those_that_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, named: str, codes: list[str]
) -> None:
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
    }
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    priority = {"priorityClassSource": "KubePriorityClass", "priorityClassName": named}
    question = ("deployment/web", "--placed") if command == "why-not" else ("deployment/web",)

    found = asked(
        tmp_path, capsys, *question, command=command, bindings=[claimed(binding("other"), "p")],
        policies=[policy("p", "m1", schedulePriority=priority)], workloads=[web, high],
    )  # fmt: skip

    assert [each["code"] for each in found["causes"]] == codes


def test_nothing_is_promised_where_the_plugins_of_the_scheduler_are_not_known() -> None:
    asked = binding("web").replicas(4).names("m1").scheduler("my")
    clusters = [cluster(name).capacity(cpu=9).manifest() for name in ("m1", "m2")]
    fleet = StoredObjects("https://x", clusters, [asked.manifest()]).read()
    fleet.leases, fleet.at = [lease("my", "2026-11-22T14:19:55Z", "my")], NOW
    question = WhyNotQuestion.of("m2", placed=False, off=False, replicas=1)
    with explaining(fleet, Rules(), ControlPlane()) as using:
        found = ask(using, asked.build().key, question, search_bounds())
        explanation = explain(using.inputs_of(asked.build()))

    assert [each.code for each in found.causes] == ["PluginsNotKnown"]
    assert ([each.code for each in explanation.causes], explanation.would_be) == (["PluginsNotKnown"], None)
    assert (found.remedies, found.next_holds) == ((), False)
    text = why_not_text(found, Style(100))
    assert "No change is promised." in text
    assert "was tried" not in text
