"""What an upgrade to Karmada 1.19 breaks, said before it: the command on files, and its exit status."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.testing import BindingBuilder, binding
from tests.commands import Ran, run
from tests.unit.core.test_decisions_of_1_19 import AFTER, BACKUP, BEFORE, FULL, ROOMY, TAINTED

UPGRADE = ("--current-decisions-of=1.18", "--decisions-of=1.19")
ON_1_19 = ("--current-decisions-of=1.19", "--decisions-of=1.19")
Manifest = dict[str, Any]


def web(**options: Any) -> Manifest:
    """Return the binding of web in the term backup, which a policy claims."""
    found = (
        binding("web", namespace="shop")
        .replicas(6, cpu=1)
        .aggregated()
        .term("primary", "p")
        .term("backup", "b")
    )
    found.on(b=6).observing("backup").last_scheduled(BEFORE)
    return claimed(found, **options)


def claimed(found: BindingBuilder, *, triggered: str = "", spread: bool = False, **spec: Any) -> Manifest:
    if triggered:
        found.reschedule_triggered(triggered)
    if spread:
        found.spread("cluster", 2, 3)
    manifest = found.applied().condition(type="Scheduled", status="True", reason="Success").manifest()
    manifest["metadata"]["labels"] = {"propagationpolicy.karmada.io/permanent-id": "pid-web"}
    manifest["metadata"].setdefault("annotations", {}).update(
        {"propagationpolicy.karmada.io/name": "web", "propagationpolicy.karmada.io/namespace": "shop"}
    )
    manifest["spec"] |= spec
    return manifest


def policy(of: Manifest, **spec: Any) -> Manifest:
    """Return the policy that claims a binding."""
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "pid-web"},
        },
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "placement": of["spec"]["placement"],
            **spec,
        },
    }


def priority(name: str) -> Manifest:
    return {"priorityClassSource": "KubePriorityClass", "priorityClassName": name}


PRIORITY_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "gold"},
    "value": 7,
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "labels": {"propagationpolicy.karmada.io/permanent-id": "pid-web"},
        "annotations": {
            "propagationpolicy.karmada.io/name": "web",
            "propagationpolicy.karmada.io/namespace": "shop",
        },
    },
    "spec": {
        "replicas": 6,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}


class Asked:
    """Runs ``plan`` on files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, name: str, *manifests: Manifest) -> str:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
        return str(path)

    def __call__(
        self,
        *flags: str,
        bindings: Sequence[Manifest],
        policies: Sequence[Manifest] = (),
        workloads: Sequence[Manifest] = (DEPLOYMENT, PRIORITY_CLASS),
        clusters: Sequence[Any] = (ROOMY, BACKUP),
    ) -> Ran:
        return run(
            "plan",
            *("--clusters", self.file("clusters", *(each.manifest() for each in clusters))),
            *("--bindings", self.file("bindings", *bindings)),
            *("--policies", self.file("policies", *policies)),
            *("--workloads", self.file("workloads", *workloads)),
            *("-o", "json", *flags),
        )


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def codes(ran: Ran) -> list[tuple[str, str]]:
    return [(each["code"], each["object"]) for each in ran.fields["warnings"]]


def test_an_upgrade_of_a_fleet_that_suffers_from_nothing_ends_well(asked: Asked) -> None:
    found = web()
    ran = asked(*UPGRADE, bindings=[found], policies=[policy(found, schedulePriority=priority("gold"))])
    assert (ran.status, codes(ran)) == (0, [])
    assert ran.fields["counts"]["moved"] == 0
    assert {"object": "--decisions-of", "text": "1.18 -> 1.19"}.items() <= ran.fields["changes"][-1].items()


@pytest.mark.parametrize(
    ("mode", "nearest", "consequence"),
    [
        ("Graciously", "Gracefully", "never ends a deletion of the policy"),
        ("Immediately", "Directly", "makes no binding for new workloads"),
    ],
)
def test_an_old_purge_mode_is_named_with_what_it_becomes(
    asked: Asked, mode: str, nearest: str, consequence: str
) -> None:
    found, failover = web(), {"application": {"purgeMode": mode, "decisionConditions": {}}}
    ran = asked(*UPGRADE, bindings=[found], policies=[policy(found, failover=failover)])
    (warning,) = ran.fields["warnings"]
    assert (ran.status, warning["code"], warning["nearest"]) == (1, "PurgeModeRefused", nearest)
    assert warning["field"] == "spec.failover.application.purgeMode"
    assert consequence in warning["text"]
    assert asked("--cordon=p", bindings=[found], policies=[policy(found, failover=failover)]).status == 0


def test_the_purge_modes_of_bindings_and_of_their_eviction_tasks_count(asked: Asked) -> None:
    found = web(
        failover={"application": {"purgeMode": "Immediately"}},
        gracefulEvictionTasks=[
            {"fromCluster": "x", "purgeMode": "Graciously", "reason": "r", "producer": "p"}
        ],
    )
    ran = asked(*UPGRADE, bindings=[found], policies=[policy(found)])
    assert codes(ran) == [("PurgeModeRefused", "ResourceBinding/shop/web-deployment")] * 2
    fields = [each["field"] for each in ran.fields["warnings"]]
    assert fields == ["spec.failover.application.purgeMode", "spec.gracefulEvictionTasks[0].purgeMode"]


def test_a_missing_priority_class_is_named_with_the_nearest(asked: Asked) -> None:
    found = web()
    given: dict[str, Any] = {
        "bindings": [found],
        "policies": [policy(found, schedulePriority=priority("golf"))],
    }
    ran = asked(*UPGRADE, **given)
    (warning,) = ran.fields["warnings"]
    assert (ran.status, warning["code"], warning["nearest"]) == (1, "PriorityClassMissing", "gold")
    assert "updates none" in warning["text"]
    off = asked(*UPGRADE, "--feature-gates=PriorityBasedScheduling=false", **given)
    assert (off.status, codes(off)) == (0, [])


def test_where_priority_classes_were_not_read_a_note_says_so(asked: Asked) -> None:
    found = web()
    given: dict[str, Any] = {
        "bindings": [found],
        "policies": [policy(found, schedulePriority=priority("golf"))],
    }
    ran = asked(*UPGRADE, **given, workloads=[DEPLOYMENT])
    assert codes(ran) == []
    assert "whether the PriorityClasses that policies name exist is not known" in " ".join(
        ran.fields["notes"]
    )
    assert "PriorityClasses" not in " ".join(asked("--cordon=p", **given).fields["notes"])


def test_a_pending_reschedule_in_a_later_term_returns_at_its_next_decision(asked: Asked) -> None:
    found = web(triggered=AFTER)
    ran = asked(*UPGRADE, bindings=[found], policies=[policy(found)])
    assert "1 binding with a pending reschedule in a later affinity term" in " ".join(ran.fields["notes"])
    assert [(each["effect"], each["after"][0]["name"]) for each in ran.fields["bindings"]] == [("moved", "p")]


def test_what_a_workload_rebalancer_would_lose_is_named(asked: Asked) -> None:
    found = web(spread=True)
    given: dict[str, Any] = {"bindings": [found], "policies": [policy(found)], "clusters": [TAINTED, BACKUP]}
    ran = asked(*UPGRADE, **given)
    assert (ran.status, codes(ran)) == (1, [("RescheduleRemoves", "ResourceBinding/shop/web-deployment")])
    assert "remove b:6, because the first term primary does not fit" in ran.fields["warnings"][0]["text"]
    assert asked(*UPGRADE, **{**given, "clusters": [FULL, BACKUP]}).status == 0
    now = asked(*ON_1_19, "--rebalance=shop/web", **given)
    assert (now.status, codes(now)) == (1, [("RescheduleRemoves", "ResourceBinding/shop/web-deployment")])
    assert codes(asked("--rebalance=shop/web", **given)) == []
    assert codes(asked(*ON_1_19, "--cordon=p", **given)) == []


@pytest.mark.parametrize("change", ["--scale=shop/web=7", "-f"])
def test_a_binding_whose_priority_class_is_missing_is_not_updated(asked: Asked, change: str) -> None:
    found = web()
    stored = policy(found, schedulePriority=priority("golf"))
    edited = copy.deepcopy(stored)
    edited["spec"]["placement"]["clusterAffinities"] = [{"affinityName": "primary", "clusterNames": ["p"]}]
    flags = [change] if change != "-f" else ["-f", asked.file("edited", edited)]
    given: dict[str, Any] = {"bindings": [found], "policies": [stored]}
    ran = asked(*ON_1_19, *flags, **given)
    assert ran.fields["counts"]["moved"] == 0
    if change == "-f":
        assert ("PriorityClassMissing", "PropagationPolicy/shop/web") in codes(ran)
    else:
        (held,) = ran.fields["bindings"]
        assert (held["effect"], held["held"]["by"]) == ("held", "detector")
        assert "PriorityClass golf, which does not exist" in held["held"]["reason"]
        assert held["held"]["targets"] == []
    assert asked(*flags, **given).fields["counts"]["moved"] == 1


def test_a_policy_with_an_old_purge_mode_is_refused_where_karmada_is_1_19(asked: Asked) -> None:
    found = web()
    edited = policy(
        found,
        propagateDeps=True,
        failover={"application": {"purgeMode": "Graciously", "decisionConditions": {}}},
    )
    given: dict[str, Any] = {"bindings": [found], "policies": [policy(found)]}
    ran = asked(*ON_1_19, "-f", asked.file("edited", edited), **given)
    assert ("PurgeModeRefused", "PropagationPolicy/shop/web") in codes(ran)
    assert codes(asked("-f", asked.file("edited", edited), **given)) == []


def test_a_rebalance_returns_to_the_first_term(asked: Asked) -> None:
    found = web()
    given: dict[str, Any] = {"bindings": [found], "policies": [policy(found)]}
    (moved,) = asked(*ON_1_19, "--rebalance=shop/web", **given).fields["bindings"]
    assert (moved["effect"], [each["name"] for each in moved["after"]]) == ("moved", ["p"])
    assert asked("--rebalance=shop/web", **given).fields["counts"]["moved"] == 0
