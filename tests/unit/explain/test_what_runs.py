"""What runs on the clusters of a binding, and why that is something else than what is assigned."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.model import Cause, Explanation
from karmada_advisor.explain.situation import Situation
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_advisor.state.model import ReplicaCounts, StateName
from karmada_advisor.state.reading import Facts, lacks_a_decision
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster
from tests.unit.explain.asking import inputs_of

RETAIN = "resourcetemplate.karmada.io/retain-replicas"


def running(count: int) -> BindingBuilder:
    """Return a binding of 4 replicas of which a cluster reports another number."""
    made = (
        binding("web")
        .replicas(4, cpu=1)
        .dynamic_weight()
        .on(m1=4)
        .applied()
        .last_scheduled("2026-11-22T10:00:00Z")
    )
    made.observed_generation(1).condition(type="Scheduled", status="True", reason="Success")
    made.manifest()["status"]["aggregatedStatus"] = [
        {"clusterName": "m1", "applied": True, "health": "Healthy", "status": {"replicas": count}}
    ]
    return made


def event(reason: str, message: str) -> dict[str, Any]:
    return {
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": "binding-controller"},
    }


def first(made: BindingBuilder, **fields: Any) -> Cause:
    return causes_of_binding(Situation(replace(inputs_of(made, cluster("m1"), cluster("m2")), **fields)))[0]


def explained(made: BindingBuilder, **fields: Any) -> Explanation:
    return explain(replace(inputs_of(made, cluster("m1"), cluster("m2")), **fields))


@pytest.mark.parametrize("reason", ["SyncWorkFailed", "ApplyOverridePolicyFailed"])
def test_a_failed_write_of_the_work_explains_another_number(reason: str) -> None:
    found = first(running(2), events=[event(reason, "no such path")])

    assert (found.code, found.evidence["running"]) == ("OtherNumber", {"m1": 2})
    assert f"{reason}: no such path" in found.text


def test_the_label_that_retains_replicas_explains_another_number() -> None:
    labelled, unread = (first(running(7), template_labels=labels).text for labels in ({RETAIN: "true"}, None))

    assert f"the template has the label {RETAIN}" in labelled
    assert f"not looked at: override policies of replicas and the label {RETAIN}" in unread
    assert "assigned at 2026-11-22T10:00:00Z" in unread


def test_a_work_that_is_missing_is_made_again_by_a_change_of_the_template() -> None:
    made = running(4).on(m1=2, m2=2)
    made.manifest()["status"]["aggregatedStatus"][0]["status"]["replicas"] = 2

    found = first(made)

    assert (found.code, found.evidence["clusters"]) == ("NotOurs", ["m2"])
    assert "only when the template changes" in found.text


def test_a_detector_that_cannot_write_the_binding_is_the_first_cause() -> None:
    message = 'priorityclasses.scheduling.k8s.io "gold" not found'

    found = explained(running(4), events=[event("ApplyPolicyFailed", message)])

    assert (found.state.name, found.is_good) == (StateName.OUT_OF_DATE, False)
    assert found.causes[0].code == "ApplyPolicyFailed"
    assert message in found.state.text
    assert not lacks_a_decision(found.state, running(4).build())


def test_a_binding_that_the_detector_finds_again_when_it_creates_it_is_not_out_of_date() -> None:
    message = (
        'Apply policy(default/web) failed: resourcebindings.work.karmada.io "web-deployment" already exists'
    )

    found = explained(running(4), events=[event("ApplyPolicyFailed", message)])

    assert (found.state.name, found.is_good) == (StateName.PLACED, True)


def test_a_template_that_wants_other_replicas_than_its_binding_is_the_first_cause() -> None:
    differs, same = (
        explained(running(4), facts=Facts(template_replicas={f"Deployment/{namespace}/web": wanted}))
        for namespace, wanted in (("default", 10), ("default", 4))
    )

    assert (differs.state.name, differs.causes[0].code) == (StateName.OUT_OF_DATE, "TemplateDiffers")
    assert "the template wants 10 replicas and its binding has 4" in differs.state.text
    assert same.is_good


def test_a_follower_that_does_not_run_has_that_as_its_first_cause() -> None:
    made = binding("settings").placement(None)
    made.manifest()["spec"]["requiredBy"] = [
        {"namespace": "default", "name": "app", "clusters": [{"name": "m1", "replicas": 2}]}
    ]
    made.manifest()["status"]["aggregatedStatus"] = [
        {"clusterName": "m1", "applied": False, "appliedMessage": "denied"}
    ]

    assert first(made).code == "NotApplied"


def test_what_nothing_requires_any_more_is_left_over_and_may_be_deleted() -> None:
    made = binding("settings").placement(None).label("resourcebinding.karmada.io/depended-by-7f9fb9dff", "x")

    assert "kubectl delete resourcebinding -n default settings" in first(made).text


def test_copies_that_are_preserved_are_noted() -> None:
    made, plain = running(4), running(4)
    made.manifest()["spec"]["preserveResourcesOnDeletion"] = True

    assert any("preserveResourcesOnDeletion" in note for note in explained(made).notes)
    assert not any("preserveResourcesOnDeletion" in note for note in explained(plain).notes)


def started(ready: int | None, **report: Any) -> BindingBuilder:
    """Return a binding of 4 replicas that Karmada calls healthy, of which so many are ready."""
    made = running(4)
    status = {"replicas": 4, "updatedReplicas": 4, "observedGeneration": 1, "generation": 1}
    made.manifest()["status"]["aggregatedStatus"][0] |= {
        "status": status if ready is None else {**status, "readyReplicas": ready},
        **report,
    }
    return made


@pytest.mark.parametrize(("ready", "running_now"), [(3, 3), (0, 0), (None, 0)])
def test_a_healthy_workload_of_which_less_is_ready_than_assigned_is_not_running(
    ready: int | None, running_now: int
) -> None:
    found = explained(started(ready))

    assert (found.state.name, found.is_good) == (StateName.NOT_RUNNING, False)
    assert (found.causes[0].code, found.causes[0].text) == (
        "NotStarted",
        f"applied, {running_now} of 4 ready on m1",
    )
    assert found.state.replicas == ReplicaCounts(4, 4, running_now)


def test_what_a_plugin_knows_of_replicas_that_have_not_started_is_noted() -> None:
    reason = "Clusters available replicas 0 are not enough; such replicas waited for a node on m1 5 s ago"
    proposal = {"plugin": "StartedCapacity", "reason": reason, "dueInSeconds": 97.2}
    texts = [
        note
        for ready in (3, 4)
        for note in explained(started(ready), process=ProcessView(proposal=proposal)).notes
        if "proposes" in note
    ]

    placement = "StartedCapacity proposes another placement, which is not written"
    assert texts == [f"{placement}: {reason}, in 97 s if nothing changes"]


def test_a_workload_whose_replicas_are_all_ready_runs() -> None:
    found = explained(started(4))

    assert (found.state.name, found.state.replicas) == (StateName.PLACED, ReplicaCounts(4, 4, 4))


def test_a_kind_that_reports_no_ready_replicas_is_not_counted_as_not_running() -> None:
    made = started(None)
    made.manifest()["spec"]["resource"] |= {"apiVersion": "example.com/v1", "kind": "App"}

    found = explained(made)

    assert (found.state.name, found.state.replicas) == (StateName.PLACED, ReplicaCounts(4, 4, 0, 4))


def test_replicas_that_are_too_many_are_counted_once_and_those_of_a_silent_cluster_are_not_known() -> None:
    made = started(9).on(m1=2, m2=2)

    assert explained(made).state.replicas == ReplicaCounts(4, 4, 2, 2)


def test_what_has_no_cluster_is_wanted_and_not_placed() -> None:
    assert explained(binding("web").replicas(4)).state.replicas == ReplicaCounts(4)
    assert explained(binding("web").replicas(0)).state.replicas == ReplicaCounts()
