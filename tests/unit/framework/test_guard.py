"""Guard: what each answer means for the placement, the patch, the condition and the retry, on a fake API server."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.core.guard import MAX_SHOWN, targets_text
from karmada_scheduler.framework import (
    SUCCESS,
    BindContext,
    EvictionTask,
    GuardAnswer,
    GuardContext,
    PluginError,
    Result,
)
from karmada_scheduler.testing import binding, cluster, schedule
from tests.unit.framework.plugins import answering, plugin, raising, with_in_tree
from tests.unit.framework.scheduler_harness import SchedulerHarness

NO = Result.unschedulable("not now", retry_after=30)
ON_M1: dict[str, Any] = {"clusters": [{"name": "m1", "replicas": 2}]}
TO_M2 = {"clusterAffinity": {"clusterNames": ["m2"]}}
NOWHERE = {"clusterAffinity": {"clusterNames": ["m9"]}}
DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
FOREIGN = {
    "fromCluster": "old",
    "producer": "TaintManager",
    "reason": "TaintUntolerated",
    "unknown": {"a": [1]},
}
NO_FIT = "0/2 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint."


def spec_patches(harness: SchedulerHarness) -> list[dict[str, Any]]:
    return [body for kind, _, body in harness.server.requests if kind == "spec"]


def guarding(answer: Any, **more: Any) -> Any:
    return plugin("G", guard=answering(answer), **more)


def test_a_text_names_the_first_targets_and_counts_the_others() -> None:
    targets = tuple(TargetCluster(f"m{number}", 1) for number in range(MAX_SHOWN + 1))
    assert targets_text(targets[:MAX_SHOWN]).endswith(f"m{MAX_SHOWN - 1}:1")
    assert targets_text(targets).endswith(f"m{MAX_SHOWN - 1}:1 and 1 more")


# --- which decisions it sees ---


async def test_guard_sees_each_decision_that_changes_clusters_and_no_other() -> None:
    seen: list[GuardContext] = []

    def guard(context: GuardContext) -> Result:
        seen.append(context)
        return SUCCESS

    harness = SchedulerHarness(plugin("G", guard=guard))
    harness.put("same", placement={"clusterAffinity": {"clusterNames": ["m1"]}}, **ON_M1)
    harness.put("moves", placement=TO_M2, **ON_M1)
    harness.put("nowhere", placement=NOWHERE, **ON_M1)
    await harness.put_and_run("first", placement=TO_M2)
    by_name = {context.binding.key.name: context for context in seen}
    assert sorted(by_name) == ["first", "moves", "nowhere"]
    assert [each.name for each in by_name["moves"].targets or ()] == ["m2"]
    assert by_name["moves"].leaving == {"m1"}
    assert by_name["nowhere"].targets is None
    assert str(by_name["nowhere"].error) == NO_FIT
    assert by_name["nowhere"].leaving == {"m1"}
    assert by_name["first"].leaving == frozenset()


async def test_a_cluster_that_is_being_deleted_is_gone_and_does_not_leave() -> None:
    seen: list[GuardContext] = []

    def guard(context: GuardContext) -> Result:
        seen.append(context)
        return SUCCESS

    harness = SchedulerHarness(plugin("G", guard=guard))
    harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
    await harness.put_and_run(placement=TO_M2, clusters=[{"name": "m1"}])
    assert seen[0].gone == {"m1"}
    assert seen[0].leaving == frozenset()


# --- refusals ---


async def test_a_refused_decision_leaves_the_placement_and_is_retried_when_the_plugin_says() -> None:
    harness = SchedulerHarness(guarding(NO))
    await harness.put_and_run(placement=TO_M2, **ON_M1)
    assert harness.placed() == ["m1"]
    assert spec_patches(harness) == []
    assert harness.condition() == ("Unschedulable", "held at Guard by G: not now")
    assert ("PlacementHeld", "held at Guard by G: not now") in harness.events
    assert harness.queue.delayed == 1
    assert harness.queue.seconds_to_next() == 30.0


async def test_a_decision_that_nothing_fits_is_not_written_if_a_plugin_refuses_it() -> None:
    harness = SchedulerHarness(guarding(NO))
    await harness.put_and_run(placement=NOWHERE, **ON_M1)
    text = f"{NO_FIT} Kept at Guard by G: not now; stays on m1:2"
    assert harness.placed() == ["m1"]
    assert spec_patches(harness) == []
    assert harness.condition() == ("NoClusterFit", text)
    assert [reason for reason, _ in harness.events] == ["ScheduleBindingFailed", "PlacementKept"]
    assert "lastScheduledTime" not in harness.server.stored["web"]["status"]
    assert harness.queue.delayed == 1


@pytest.mark.parametrize(("last", "failures"), [("m2", 0), ("m8", 2)])
async def test_terms_that_failed_are_reported_if_nothing_fits_and_not_if_a_move_is_held(
    last: str, failures: int
) -> None:
    harness = SchedulerHarness(guarding(NO))
    terms = [{"affinityName": f"on-{name}", "clusterNames": [name]} for name in ("m9", last)]
    await harness.put_and_run(placement={"clusterAffinities": terms}, **ON_M1)
    assert harness.placed() == ["m1"]
    reported = {text for _, text in harness.events if "clusterAffiliates index(" in text}
    assert len(reported) == failures


async def test_without_a_delay_of_the_plugin_a_kept_binding_has_the_backoff_of_the_queue() -> None:
    harness = SchedulerHarness(guarding(Result.unschedulable("not now")))
    await harness.put_and_run(placement=NOWHERE, **ON_M1)
    assert harness.queue.delayed == 1


async def test_a_kept_binding_loses_the_clusters_that_are_gone_and_only_those() -> None:
    harness = SchedulerHarness(guarding(NO))
    harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
    await harness.put_and_run(
        placement=NOWHERE, clusters=[{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 1}]
    )
    assert spec_patches(harness)[0] == {"annotations": {}, "clusters": [{"name": "m2", "replicas": 1}]}
    assert harness.placed() == ["m2"]
    assert len(spec_patches(harness)) == 1


async def test_if_all_clusters_are_gone_nothing_is_kept() -> None:
    harness = SchedulerHarness(guarding(NO))
    harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
    await harness.put_and_run(placement=NOWHERE, **ON_M1)
    assert harness.placed() == []
    assert harness.condition()[0] == "NoClusterFit"
    assert "Guard" not in harness.condition()[1]


async def test_reserve_is_not_called_for_a_refused_decision() -> None:
    called: list[str] = []

    def reserve(_: BindContext) -> Result:
        called.append("reserve")
        return SUCCESS

    reserves = plugin("R", reserve=reserve, unreserve=lambda _: called.append("unreserve"))
    harness = SchedulerHarness(guarding(NO), reserves)
    harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
    await harness.put_and_run(placement=TO_M2, **ON_M1)
    assert called == []


@pytest.mark.parametrize(
    ("guard", "text"),
    [
        (answering(Result.error("unknown state")), 'running Guard plugin "G": unknown state'),
        (raising(), 'plugin "G" failed at Guard: RuntimeError: boom'),
        (answering(None), 'plugin "G" returned None at Guard, expected a Result or a GuardAnswer'),
        (
            answering(Result.wait(1)),
            "plugin \"G\" returned 'Wait' at Guard, expected Success, Unschedulable or Error",
        ),
    ],
)
@pytest.mark.parametrize("placement", [TO_M2, NOWHERE], ids=["moves", "nothing fits"])
async def test_a_failure_keeps_the_placement_and_names_the_plugin(
    guard: Any, text: str, placement: dict[str, Any]
) -> None:
    harness = SchedulerHarness(plugin("G", guard=guard))
    await harness.put_and_run(placement=placement, **ON_M1)
    assert harness.placed() == ["m1"]
    assert harness.condition() == ("SchedulerError", text)
    assert harness.queue.delayed == 1


async def test_a_refusal_that_is_not_needed_any_more_is_taken_back_in_the_status() -> None:
    harness = SchedulerHarness(guarding(NO))
    here = {"clusterAffinity": {"clusterNames": ["m1"]}, **DIVIDED}
    harness.put(placement=here)
    applied = Binding.from_manifest(harness.server.stored["web"]).spec.placement
    assert applied is not None
    annotation = {"policy.karmada.io/applied-placement": applied.to_json()}
    harness.server.change("web", annotations=annotation, placement={**NOWHERE, **DIVIDED}, **ON_M1)
    await harness.run()
    assert harness.condition()[0] == "NoClusterFit"
    harness.server.change("web", placement=here)
    await harness.run()
    assert harness.placed() == ["m1"]
    assert harness.condition() == ("Success", "Binding has been scheduled successfully.")
    status = harness.server.stored["web"]["status"]
    assert status["schedulerObservedGeneration"] == harness.server.stored["web"]["metadata"]["generation"]


async def test_a_refusal_may_write_annotations() -> None:
    harness = SchedulerHarness(guarding(GuardAnswer(NO, annotations={"held": "since", "old": None})))
    harness.put(placement=TO_M2, **ON_M1)
    harness.server.change("web", annotations={"old": "x", "other": "y"})
    await harness.run()
    assert harness.placed() == ["m1"]
    assert harness.server.stored["web"]["metadata"]["annotations"] == {"held": "since", "other": "y"}
    await harness.run()
    assert len(spec_patches(harness)) == 1


# --- tasks ---


def task(**fields: Any) -> EvictionTask:
    return EvictionTask(
        "m1", **{"reason": "Rescheduled", "grace_period_seconds": 60, "replicas": 2, **fields}
    )


async def test_tasks_are_written_in_the_patch_of_the_decision_before_those_that_are_stored() -> None:
    harness = SchedulerHarness(guarding(GuardAnswer(tasks=[task(message="why")], annotations={"moved": "1"})))
    await harness.put_and_run(placement=TO_M2, gracefulEvictionTasks=[FOREIGN], **ON_M1)
    (patch,) = spec_patches(harness)
    assert patch["clusters"] == [{"name": "m2", "replicas": 2}]
    assert patch["annotations"]["moved"] == "1"
    assert patch["gracefulEvictionTasks"] == [
        {
            "fromCluster": "m1",
            "purgeMode": "Gracefully",
            "reason": "Rescheduled",
            "message": "why",
            "producer": "ours",
            "replicas": 2,
            "gracePeriodSeconds": 60,
        },
        FOREIGN,
    ]
    text = "Binding has been scheduled successfully. Result: {m2:2}; leaves m1 gracefully"
    assert harness.events == [("ScheduleBindingSucceed", text)]


async def test_a_cluster_that_has_a_task_gets_no_second_one() -> None:
    stored = {**FOREIGN, "fromCluster": "m1"}
    harness = SchedulerHarness(guarding(GuardAnswer(tasks=[task()])))
    await harness.put_and_run(placement=TO_M2, gracefulEvictionTasks=[stored], **ON_M1)
    (patch,) = spec_patches(harness)
    assert "gracefulEvictionTasks" not in patch
    assert harness.server.stored["web"]["spec"]["gracefulEvictionTasks"] == [stored]


async def test_of_several_plugins_the_first_counts_for_a_cluster_and_an_annotation() -> None:
    one = plugin("A", guard=answering(GuardAnswer(tasks=[task()], annotations={"a": "1", "b": "1"})))
    two = plugin(
        "B", guard=answering(GuardAnswer(tasks=[task(reason="Other")], annotations={"b": "2", "c": "2"}))
    )
    harness = SchedulerHarness(one, two)
    await harness.put_and_run(placement=TO_M2, **ON_M1)
    (patch,) = spec_patches(harness)
    assert [each["reason"] for each in patch["gracefulEvictionTasks"]] == ["Rescheduled"]
    assert {name: patch["annotations"][name] for name in "abc"} == {"a": "1", "b": "1", "c": "2"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("m1", "expected an EvictionTask"),
        (EvictionTask("m2"), "the decision does not take the binding off cluster 'm2'"),
        (task(reason=""), "the reason must be 1 to 32 letters"),
        (task(reason="x" * 33), "the reason must be 1 to 32 letters"),
        (task(reason="1x"), "the reason must be 1 to 32 letters"),
        (task(message="x" * 1025), "the message must be a text of at most 1024 characters"),
        (task(grace_period_seconds=0), "grace_period_seconds must be 1 to 2147483647"),
        (task(grace_period_seconds=2**31), "grace_period_seconds must be 1 to 2147483647"),
        (task(message=7), "the message must be a text of at most 1024 characters"),
        (task(grace_period_seconds=True), "grace_period_seconds must be 1 to 2147483647"),
        (task(grace_period_seconds=1.5), "grace_period_seconds must be 1 to 2147483647"),
        (task(replicas=True), "replicas must be 0 to 2147483647"),
        (task(replicas=-1), "replicas must be 0 to 2147483647"),
        (task(purge_mode="Never"), "purge_mode must be Gracefully or Directly"),
    ],
)
async def test_a_task_that_karmada_would_not_accept_is_an_error(given: Any, problem: str) -> None:
    harness = SchedulerHarness(guarding(GuardAnswer(tasks=[given])))
    await harness.put_and_run(placement=TO_M2, **ON_M1)
    reason, text = harness.condition()
    assert reason == "SchedulerError"
    assert problem in text
    assert harness.placed() == ["m1"]


async def test_a_task_may_have_the_longest_grace_period_of_the_api() -> None:
    harness = SchedulerHarness(guarding(GuardAnswer(tasks=[task(grace_period_seconds=2**31 - 1)])))
    await harness.put_and_run(placement=TO_M2, **ON_M1)
    (stored,) = harness.server.stored["web"]["spec"]["gracefulEvictionTasks"]
    assert stored["gracePeriodSeconds"] == 2**31 - 1


OWN = {"fromCluster": "m1", "producer": "ours", "reason": "x", "replicas": 2}


@pytest.mark.parametrize("cancel", [["m2"], ["m1", "m3"], "m1"])
async def test_only_own_tasks_can_be_cancelled(cancel: Any) -> None:
    harness = SchedulerHarness(guarding(GuardAnswer(cancel=cancel)))
    tasks = [OWN, {**OWN, "fromCluster": "m2", "producer": "TaintManager"}]
    await harness.put_and_run(placement=NOWHERE, clusters=[], gracefulEvictionTasks=tasks)
    reason, text = harness.condition()
    assert (reason, harness.placed()) == ("SchedulerError", [])
    assert "clusters with an eviction task of this scheduler" in text


async def test_own_tasks_are_cancelled_for_the_clusters_that_take_the_workload_back() -> None:
    harness = SchedulerHarness(guarding(GuardAnswer(cancel=["m1", "m2"])))
    tasks = [OWN, {**OWN, "fromCluster": "m2"}]
    await harness.put_and_run(
        placement={"clusterAffinity": {"clusterNames": ["m1"]}}, clusters=[], gracefulEvictionTasks=tasks
    )
    assert harness.placed() == ["m1"]
    assert harness.server.stored["web"]["spec"]["gracefulEvictionTasks"] == tasks[1:]


async def test_nothing_is_cancelled_if_a_cluster_fits() -> None:
    harness = SchedulerHarness(guarding(GuardAnswer(cancel=["m1"])))
    await harness.put_and_run(placement=TO_M2, clusters=[], gracefulEvictionTasks=[OWN])
    assert harness.placed() == ["m2"]
    assert harness.server.stored["web"]["spec"]["gracefulEvictionTasks"] == [OWN]


# --- the observed generation ---


def moved(*, ready: int, observed: int = 1) -> dict[str, Any]:
    return {
        "schedulerObservedGeneration": observed,
        "lastScheduledTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success"}],
        "aggregatedStatus": [
            {"clusterName": "m2", "health": "Healthy", "applied": True, "status": {"readyReplicas": ready}}
        ],
    }


def ready_replicas(web: Binding) -> Result:
    items = web.status.aggregated_items
    return SUCCESS if items[0]["status"]["readyReplicas"] == 2 else Result.unschedulable("not ready")


def test_a_refusal_to_observe_is_returned_and_an_error_is_the_plugins() -> None:
    web = binding("web").build()
    refuses = with_in_tree(guarding(SUCCESS, guard_observation=answering(NO)))
    assert refuses.guard.may_observe(web).message == "not now"
    fails = with_in_tree(guarding(SUCCESS, guard_observation=answering(Result.error("broken"))))
    with pytest.raises(PluginError):
        fails.guard.may_observe(web)


async def test_a_generation_that_may_not_be_observed_yet_is_not_written_again_and_again() -> None:
    harness = SchedulerHarness(guarding(SUCCESS, guard_observation=ready_replicas))
    tasks = [{"fromCluster": "m1", "producer": "ours", "reason": "Rescheduled"}]
    harness.put(placement=TO_M2, clusters=[{"name": "m2", "replicas": 2}], gracefulEvictionTasks=tasks)
    applied = Binding.from_manifest(harness.server.stored["web"]).spec.placement
    assert applied is not None
    annotations = {"policy.karmada.io/applied-placement": applied.to_json()}
    harness.server.change("web", status=True, annotations=annotations, **moved(ready=1))
    harness.server.change("web", replicas=2)
    await harness.run()
    before = len(harness.server.requests)
    harness.server.change("web", status=True, aggregatedStatus=moved(ready=0)["aggregatedStatus"])
    await harness.run()
    assert len(harness.server.requests) == before


@pytest.mark.parametrize("divided", [True, False], ids=["Divided", "Duplicated"])
@pytest.mark.parametrize("producers", [["ours"], ["TaintManager"], ["ours", "TaintManager"]])
async def test_the_generation_of_an_own_move_is_observed_when_the_plugin_allows_it(
    producers: list[str], *, divided: bool
) -> None:
    harness = SchedulerHarness(guarding(SUCCESS, guard_observation=ready_replicas))
    placement = {**TO_M2, **(DIVIDED if divided else {})}
    tasks = [{"fromCluster": "m1", "producer": each, "reason": "Rescheduled"} for each in producers]
    harness.put(placement=placement, clusters=[{"name": "m2", "replicas": 2}], gracefulEvictionTasks=tasks)
    applied = Binding.from_manifest(harness.server.stored["web"]).spec.placement
    assert applied is not None
    annotations = {"policy.karmada.io/applied-placement": applied.to_json()}
    harness.server.change("web", status=True, annotations=annotations, **moved(ready=1))
    harness.server.change("web", replicas=2)  # a new generation, as Karmada's stamping of the task
    await harness.run()
    status = harness.server.stored["web"]["status"]
    assert status["schedulerObservedGeneration"] == (1 if "ours" in producers else 2)
    harness.server.change(
        "web", status=True, **moved(ready=2, observed=status["schedulerObservedGeneration"])
    )
    await harness.run()
    assert harness.server.stored["web"]["status"]["schedulerObservedGeneration"] == 2


# --- the test kit ---


def test_the_test_kit_shows_what_guard_plugins_do() -> None:
    web = binding("web").replicas(2).names("m2").on(m1=2).scheduler("ours")
    run = schedule(web, cluster("m1"), cluster("m2"), plugins=[guarding(GuardAnswer(tasks=[task()]))])
    assert run.placed == {"m2": 2}
    assert [each.from_cluster for each in run.binding.spec.graceful_eviction_tasks] == ["m1"]
    assert run.methods_of("G") == ["<lambda>"]
    held = schedule(web, cluster("m1"), cluster("m2"), plugins=[guarding(NO)])
    assert str(held.error) == "held at Guard by G: not now"
    assert held.binding.spec.target_names == {"m1"}
    assert held.retry_after == 30


# --- a placement that is good as it is ---

STAYS = GuardAnswer(Result.unschedulable("the saving is too small", retry_after=30), stays=True)


async def test_a_placement_that_is_good_as_it_is_counts_as_scheduled_and_names_the_plugin() -> None:
    harness = SchedulerHarness(guarding(STAYS))
    key = await harness.put_and_run(placement=TO_M2, **ON_M1)
    assert harness.placed() == ["m1"]
    kept = "Binding has been scheduled successfully. Kept at Guard by G: the saving is too small"
    assert harness.condition() == ("Success", kept)
    status = harness.server.stored["web"]["status"]
    assert status["conditions"][0]["status"] == "True"
    assert status["schedulerObservedGeneration"] == harness.server.stored["web"]["metadata"]["generation"]
    assert [reason for reason, _ in harness.events] == ["PlacementKept"]
    assert spec_patches(harness) == []
    assert not harness.queue.holds(key)
    written = len(harness.server.requests)
    harness.queue.add(key)
    await harness.run()
    assert len(harness.server.requests) == written  # the same answer costs no write


async def test_a_later_move_clears_the_name_of_the_plugin() -> None:
    answers: list[Any] = [STAYS, SUCCESS]
    harness = SchedulerHarness(plugin("G", guard=lambda _: answers.pop(0)))
    key = await harness.put_and_run(placement=TO_M2, **ON_M1)
    harness.queue.add(key)
    await harness.run()
    assert harness.placed() == ["m2"]
    assert harness.condition() == ("Success", "Binding has been scheduled successfully.")


@pytest.mark.parametrize("on", [{"m1": 1}, {"m1": 3}, {"m1": 1, "gone": 1}])
def test_a_placement_that_lacks_something_is_not_good_as_it_is(on: dict[str, int]) -> None:
    run = schedule(
        binding("web").replicas(2).names("m2").dynamic_weight().on(**on),
        cluster("m1"),
        cluster("m2"),
        plugins=with_in_tree(guarding(STAYS)),
    )
    assert run.condition == ("False", "Unschedulable", "held at Guard by G: the saving is too small")


async def test_a_placement_that_no_cluster_fits_is_not_good_as_it_is() -> None:
    harness = SchedulerHarness(guarding(STAYS))
    await harness.put_and_run(placement=NOWHERE, **ON_M1)
    assert harness.condition()[0] == "NoClusterFit"
    assert harness.placed() == ["m1"]


def test_the_kit_and_a_dry_run_have_the_same_condition() -> None:
    run = schedule(
        binding("web").replicas(2).names("m2").on(m1=2),
        cluster("m1"),
        cluster("m2"),
        plugins=with_in_tree(guarding(STAYS)),
    )
    assert run.placed == {"m1": 2}
    assert run.condition == (
        "True",
        "Success",
        "Binding has been scheduled successfully. Kept at Guard by G: the saving is too small",
    )
    stored = run.binding.status.condition("Scheduled")
    assert stored is not None
    assert stored["message"] == run.condition.message
