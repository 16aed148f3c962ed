"""What each flag does to the objects, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karmada_advisor.fleet.rules import Rules
from karmada_advisor.whatif.plan.answer import changed_rules
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.fleet_rules import fingerprint
from karmada_advisor.whatif.plan.objects import ChangeError
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import CORDON_TAINT, POLICY_ID_LABEL
from karmada_scheduler.testing import binding, cluster
from tests.unit.plan.asking import objects_of
from tests.unit.plan.fleet import policy


def draft(*manifests: Any) -> Draft:
    """Return a draft over a cordoned cluster m1, a cluster m2, and a workload."""
    m1 = cluster("m1").region("eu").labels(tier="prod").taint(f"{CORDON_TAINT}:NoSchedule")
    m1.allocated({"cpu": "400", "pods": 100})
    web = binding("web", namespace="shop").replicas(4, cpu=1)
    return Draft(objects_of([m1.manifest(), cluster("m2").manifest(), web.manifest(), *manifests]))


def parsed(made: Draft, name: str = "m1") -> Cluster:
    return Cluster.from_manifest(made.after.clusters[name])


def test_the_objects_before_the_change_stay_as_they_are() -> None:
    before = draft().after
    one = Draft(before)
    one.uncordon("m1")
    one.room("m1", "cpu=+20")
    one.scale("shop/web", 9)
    assert Draft(before).after == before
    assert fingerprint(before, "") == fingerprint(draft().after, "")


def test_uncordon_removes_the_taint_of_cordon_and_raises_the_generation() -> None:
    made = draft()
    made.uncordon("m1")
    assert parsed(made).taints == ()
    assert parsed(made).generation == 2
    assert made.shown[0].text == "uncordoned"


def test_cordon_sets_the_taint_once() -> None:
    made = draft()
    made.cordon("m1")
    assert [str(each) for each in parsed(made).taints] == [f"{CORDON_TAINT}:NoSchedule"]


@pytest.mark.parametrize(
    ("written", "taints"),
    [
        ("a=b:NoSchedule", ["cluster.karmada.io/unschedulable:NoSchedule", "a=b:NoSchedule"]),
        ("a:NoExecute", ["cluster.karmada.io/unschedulable:NoSchedule", "a:NoExecute"]),
        (f"{CORDON_TAINT}-", []),
        (f"{CORDON_TAINT}:NoSchedule-", []),
    ],
)
def test_a_taint_is_added_or_removed(written: str, taints: list[str]) -> None:
    made = draft()
    made.taint("m1", written)
    assert [str(each) for each in parsed(made).taints] == taints


def test_a_label_is_set_changed_and_removed() -> None:
    made = draft()
    made.label("m1", "zone=a")
    made.label("m1", "tier=test")
    made.label("m1", "zone-")
    assert parsed(made).labels == {"tier": "test"}
    assert [each.text for each in made.shown] == [
        "+ label zone=a",
        "label tier: prod -> test",
        "- label zone=a",
    ]


@pytest.mark.parametrize(
    ("written", "free"),
    [("cpu=+20", 620), ("cpu=-100", 500), ("cpu=50", 50), ("+20cpu", 620), ("cpu=+500m", 600.5)],
)
def test_what_is_free_can_be_changed(written: str, free: float) -> None:
    made = draft()
    made.room("m1", written)
    summary = parsed(made).resource_summary
    assert summary is not None
    assert summary.left("cpu").milli_value == free * 1000
    assert parsed(made).generation == 1  # the status only: no event for the scheduler


def test_several_resources_change_at_once() -> None:
    made = draft()
    made.room("m1", "cpu=+20,memory=-64Gi,pods=7")
    summary = parsed(made).resource_summary
    assert summary is not None
    assert (summary.left("pods").value, summary.left("memory").value) == (7, (1000 - 64) * 2**30)


def test_a_new_cluster_is_like_another_one_and_empty() -> None:
    made = draft()
    made.add("m9", "m1")
    found, like = parsed(made, "m9"), parsed(made)
    assert (found.region, found.labels, found.api_kinds) == (like.region, like.labels, like.api_kinds)
    assert found.resource_summary is not None
    assert found.resource_summary.left("cpu").value == 1000


def test_a_deleted_cluster_is_being_deleted_so_that_its_bindings_leave() -> None:
    made = draft()
    made.delete("cluster", "", "m1")
    assert parsed(made).deleting
    assert made.shown[0].text == "is gone (0 replicas of 0 bindings)"


def test_a_file_without_status_keeps_what_the_cluster_reports() -> None:
    made = draft()
    file = cluster("m1").region("us").manifest()
    del file["status"]
    made.put(file)
    assert parsed(made).region == "us"
    assert parsed(made).resource_summary is not None
    assert parsed(made).generation == 2


def test_a_file_that_changes_nothing_is_shown_as_equal() -> None:
    made = draft(policy("prod-batch"))
    made.put(policy("prod-batch"))
    assert [(each.sign, each.text) for each in made.shown] == [("=", "")]


def test_a_policy_keeps_its_id_and_gets_the_defaults_of_the_webhook() -> None:
    made = draft(policy("prod-batch"))
    edited = policy("prod-batch", {"spreadConstraints": [{"maxGroups": 3}]})
    del edited["metadata"]["labels"]
    made.put(edited)
    [stored] = (made.after.policies or {}).values()
    assert stored["metadata"]["labels"] == policy("prod-batch")["metadata"]["labels"]
    assert stored["spec"]["placement"]["spreadConstraints"] == [
        {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 3}
    ]


@pytest.mark.parametrize(
    ("group", "kind"), [("policy", "OverridePolicy"), ("networking", "MultiClusterService"), ("new", "New")]
)
def test_a_kind_of_karmada_that_is_not_read_is_named_once(group: str, kind: str) -> None:
    made = draft()
    for name in "ab":
        made.put({"apiVersion": f"{group}.karmada.io/v1", "kind": kind, "metadata": {"name": name}})
    assert made.shown == []
    assert made.notes == [f"{kind} is not read: what it does to replicas and placements is not judged"]


@pytest.mark.parametrize(
    "name", ["shop/web", "shop/web-deployment", "shop/Deployment/web", "shop/deployment/web"]
)
def test_a_workload_is_named_by_itself_its_kind_or_its_binding(name: str) -> None:
    made = draft()
    made.scale(name, 30)
    assert made.shown[0].object == "Deployment/shop/web"
    assert made.shown[0].text == "replicas 4 -> 30"


def test_a_name_of_two_workloads_is_ambiguous() -> None:
    other = binding("web", namespace="shop").resource("apps/v1", "StatefulSet").manifest()
    other["metadata"]["name"] = "web-statefulset"
    with pytest.raises(
        ChangeError, match="is ambiguous: Deployment/shop/web, StatefulSet/shop/web; write NS/KIND"
    ):
        draft(other).scale("shop/web", 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.put({"kind": "Cluster"}),
        lambda made: made.without("m3"),
        lambda made: made.delete("Deployment", "shop", "wob"),
        lambda made: made.room("m1", "cpu="),
        lambda made: made.add_cluster(binding("x").manifest()),
        lambda made: made.put(policy("prod-batch") | {"spec": {"placement": []}}),
    ],
)
def test_a_change_that_is_wrong_is_an_error(change: Callable[[Draft], object]) -> None:
    with pytest.raises(ChangeError):
        change(draft())


def test_the_fingerprint_ignores_what_no_decision_reads() -> None:
    one = cluster("m1").resource_version("7").manifest()
    other = cluster("m1").resource_version("8").manifest()
    other["status"]["nodeSummary"] = {"totalNum": 3}
    assert fingerprint(objects_of([one]), "") == fingerprint(objects_of([other]), "")
    fuller = cluster("m1").capacity(cpu=3).manifest()
    assert fingerprint(objects_of([one]), "") != fingerprint(objects_of([fuller]), "")
    assert fingerprint(objects_of([one]), "gates") != fingerprint(objects_of([one]), "")


@pytest.mark.parametrize("is_read", [True, False])
def test_a_deleted_template_takes_its_binding_with_it(is_read: bool) -> None:
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
    }
    made = draft(*([template] if is_read else []))
    made.delete("deployment", "shop", "web")
    assert (made.after.bindings, made.after.templates) == ({}, {})
    assert [(each.sign, each.object) for each in made.shown] == [("-", "Deployment/shop/web")]


OF_SHOP: dict[str, Any] = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
    },
}


def test_an_edit_is_a_merge_patch_of_the_object() -> None:
    made = draft(OF_SHOP)
    key = next(iter(made.after.policies or {}))
    before = (made.after.policies or {})[key]
    made.edit(
        "propagationpolicy", "shop", "web", {"spec": {"priority": 5, "placement": {"clusterAffinity": None}}}
    )
    after = (made.after.policies or {})[key]
    assert after["spec"]["priority"] == 5
    assert "clusterAffinity" not in after["spec"]["placement"]
    assert [each["name"] for each in after["spec"]["resourceSelectors"]] == ["web"]
    assert after["metadata"]["generation"] == before["metadata"].get("generation", 0) + 1
    assert made.shown[0].sign == "~"
    made.edit("Cluster", "", "m2", {"metadata": {"labels": {"tier": "test"}}})
    assert parsed(made, "m2").labels["tier"] == "test"


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (("PropagationPolicy", "shop", "wob", {}), "PropagationPolicy/shop/wob does not exist"),
        (("Cluster", "", "m3", {}), "Cluster/m3 does not exist. Nearest: Cluster/m"),
        (("Cluster", "", "m2", {"metadata": {"name": "m4"}}), "the patch of Cluster m2 changes its name"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(edit: Any, text: str) -> None:
    with pytest.raises(ChangeError, match=text):
        draft().edit(*edit)


def test_a_cluster_that_is_not_ready_has_the_taint_of_karmada_until_it_is_ready() -> None:
    made = draft()
    made.ready("m2", is_ready=False)
    assert [str(each) for each in parsed(made, "m2").taints] == ["cluster.karmada.io/not-ready:NoSchedule"]
    made.ready("m2", is_ready=True)
    assert parsed(made, "m2").taints == ()
    ready = [each for each in made.after.clusters["m2"]["status"]["conditions"] if each["type"] == "Ready"]
    assert [each["status"] for each in ready] == ["True"]


def test_a_rebalance_asks_for_a_reschedule_after_the_last_scheduling() -> None:
    made = draft()
    made.rebalance("shop/web")
    [binding_after] = made.after.bindings.values()
    assert binding_after["spec"]["rescheduleTriggeredAt"] == "2000-01-01T00:00:01Z"
    with pytest.raises(ChangeError, match="rebalance: workload shop/wob has no binding"):
        made.rebalance("shop/wob")


def job(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "job", "namespace": "shop"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "after", "text"),
    [
        ({"parallelism": 2}, {"parallelism": 3}, "replicas 2 -> 3"),
        ({"parallelism": 1, "completions": 4}, {"parallelism": 3, "completions": 4}, "replicas 1 -> 3"),
        (
            {"parallelism": 1, "completions": 2},
            {"parallelism": 3, "completions": 2},
            "replicas 1 -> 2 (parallelism 3, completions 2)",
        ),
        ({}, {"parallelism": 3, "completions": 1}, "replicas 1 -> 1 (parallelism 3, completions 1)"),
    ],
)
def test_a_scaled_job_keeps_its_completions_which_bound_its_replicas(
    spec: dict[str, int], after: dict[str, int], text: str
) -> None:
    made = draft(job(**spec))
    made.scale("shop/job", 3)
    template = next(each for key, each in made.after.templates.items() if key.name == "job")
    assert (template["spec"], made.shown[-1].text) == (after, text)


def test_other_completions_are_refused_as_by_the_api_server_unless_the_job_is_indexed() -> None:
    stored = job(parallelism=2, completions=4)
    with pytest.raises(ChangeError, match=r"Job job: spec.completions cannot change from 4 to 6"):
        draft(stored).put(job(parallelism=2, completions=6))
    with pytest.raises(ChangeError, match="the API server refuses it"):
        draft(stored).edit("Job", "shop", "job", {"spec": {"completions": 6}})
    draft(stored).put(job(parallelism=3, completions=4))
    elastic = {"completionMode": "Indexed", "parallelism": 6, "completions": 6}
    draft(job(**{**elastic, "parallelism": 4, "completions": 4})).put(job(**elastic))


@pytest.mark.parametrize(
    ("version", "kind"), [("batch/v1", "CronJob"), ("rbac.authorization.k8s.io/v1", "ClusterRole")]
)
def test_a_kind_without_replicas_is_not_scaled(version: str, kind: str) -> None:
    made = draft({"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "shop"}})
    with pytest.raises(ChangeError, match=f"scale: {kind}/shop/x has no replicas"):
        made.scale("shop/x", 3)


def test_a_new_policy_gets_an_id_and_keeps_one_that_it_has() -> None:
    made = draft()
    made.put(OF_SHOP)
    [(key, stored)] = (made.after.policies or {}).items()
    identifier = stored["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"]
    assert identifier
    made.put({**OF_SHOP, "spec": {**OF_SHOP["spec"], "priority": 3}})
    assert (made.after.policies or {})[key]["metadata"]["labels"] == stored["metadata"]["labels"]


def rebalancer(created: str = "", **status: Any) -> dict[str, Any]:
    metadata = {"name": "r", **({"creationTimestamp": created} if created else {})}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}
    done = {"observedWorkloads": [{"workload": workload, **status}]} if status else {}
    spec = {"workloads": [workload]}
    return {"kind": "WorkloadRebalancer", "metadata": metadata, "spec": spec, "status": done}


@pytest.mark.parametrize(
    ("written", "is_asked", "note"),
    [
        (rebalancer(), True, ""),
        (rebalancer("2026-11-03T00:00:00Z"), True, ""),
        (rebalancer("2026-11-01T00:00:00Z"), False, "is older than the last scheduling of 1 binding"),
        (rebalancer("2026-11-03T00:00:00Z", result="Successful"), False, "done by it already: 1 workload"),
        (rebalancer("2026-11-03T00:00:00Z", result="Failed"), True, ""),
    ],
    ids=["new", "created since", "older", "done", "failed"],
)
def test_a_workload_rebalancer_acts_once_and_from_its_creation_on(
    written: dict[str, Any], is_asked: bool, note: str
) -> None:
    made = draft()
    [(key, stored)] = made.after.bindings.items()
    made.after.bindings[key] = {**stored, "status": {"lastScheduledTime": "2026-11-02T00:00:00Z"}}
    made.put(written)
    assert ("rescheduleTriggeredAt" in made.after.bindings[key]["spec"]) == is_asked
    assert note in "; ".join(made.notes)
    assert bool(made.notes) == bool(note)


def test_what_no_policy_claims_is_neither_scaled_nor_moved_by_a_rebalance() -> None:
    free = binding("free", namespace="shop").replicas(4).label(POLICY_ID_LABEL, "").manifest()
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": "shop"}}
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 4}}
    made = draft(free, job, {**template, "metadata": {"name": "free", "namespace": "shop"}})
    made.scale("shop/free", 9)
    assert made.after.bindings == made.before.bindings
    assert [each.get("spec") for each in made.after.templates.values()] == [None, {"replicas": 9}]
    made.rebalance("shop/free")
    made.rebalance("shop/job")
    assert made.notes == [
        "no policy claims Deployment/shop/free: it stays as it is unless one claims it then",
        "no policy claims Deployment/shop/free: --rebalance moves nothing until one does",
        "Job/shop/job has no binding: --rebalance moves nothing",
    ]
    made.put(policy("prod-batch"))  # it may claim it
    made.scale("shop/free", 7)
    assert {each["spec"].get("replicas") for each in made.after.bindings.values()} == {4, 7}


def test_rules_of_which_nothing_is_changed_are_the_same_so_that_no_restart_is_planned() -> None:
    assert changed_rules(Rules(), Rules()) == Rules()
