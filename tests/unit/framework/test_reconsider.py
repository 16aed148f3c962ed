"""Reconsider: which proposals are tried, and what each answer means for the binding, on a fake API server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from karmada_pyscheduler.scheduler.reconsideration import CHANGE_SECONDS, Reconsiderations, _differs
from karmada_scheduler.config.features import RULES, FeatureGates
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.reconsider import within_proposed_terms
from karmada_scheduler.framework import SUCCESS, Proposal, ReconsiderContext, ReplicaEstimate, Result, Terms
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster, framework, schedule
from tests.unit.framework.plugins import answering, plugin, raising
from tests.unit.framework.scheduler_harness import SchedulerHarness

BACK = Proposal("Back")
STATUS: dict[str, Any] = {
    "schedulerObservedGeneration": 1,
    "schedulerObservingAffinityName": "second",
    "lastScheduledTime": "2026-01-01T00:00:00Z",
    "conditions": [
        {
            "type": "Scheduled",
            "status": "True",
            "reason": "Success",
            "message": "Binding has been scheduled successfully.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def placement(first: str = "m1", second: str = "m2", *, kind: str = "Divided") -> dict[str, Any]:
    return {
        "clusterAffinities": [
            {"affinityName": "first", "clusterNames": [first]},
            {"affinityName": "second", "clusterNames": [second]},
        ],
        "replicaScheduling": {"replicaSchedulingType": kind, "replicaDivisionPreference": "Aggregated"},
    }


class Reconsidered(SchedulerHarness):
    """A scheduler with a binding that is settled on m2, its second term."""

    def __init__(
        self,
        *plugins: Any,
        status: dict[str, Any] | None = None,
        priorities: bool = False,
        gates: FeatureGates | None = None,
        **spec: Any,
    ) -> None:
        super().__init__(*plugins, priorities=priorities, feature_gates=gates or FeatureGates())
        self.reconsiderations.start()
        self.settle("web", status, **spec)

    def settle(self, name: str, status: dict[str, Any] | None = None, **spec: Any) -> None:
        spec = {"placement": placement(), "clusters": [{"name": "m2", "replicas": 2}], **spec}
        applied = self.bindings.get(self.put(name, **spec))
        assert applied is not None
        assert applied.spec.placement is not None
        self.server.change(
            name, annotations={"policy.karmada.io/applied-placement": applied.spec.placement.to_json()}
        )
        self.server.change(name, status=True, **{**STATUS, **(status or {})})

    async def look(self, *, seconds: float = 30.0) -> None:
        self.sleep(seconds)
        await self.reconsiderations.look()
        await self.run()

    def count(self, result: str) -> float:
        found = self.metrics.registry.get_sample_value(
            "karmada_scheduler_failback_total", {"plugin": "R", "result": result}
        )
        return found or 0.0

    def term(self) -> str:
        found: str = self.server.stored["web"]["status"]["schedulerObservingAffinityName"]
        return found


async def reconsidered(*plugins: Any, **options: Any) -> Reconsidered:
    """Return a scheduler that has looked once at its settled binding."""
    harness = Reconsidered(*plugins, **options)
    await harness.look()
    return harness


def proposing(proposal: Any = BACK, answer: Any = SUCCESS, **more: Any) -> Any:
    return plugin("R", propose=answering(proposal), reconsider=answering(answer), **more)


# --- what is written ---


async def test_a_proposal_that_succeeds_and_is_wanted_is_written_with_its_term() -> None:
    harness = await reconsidered(proposing())
    assert (harness.placed(), harness.term()) == (["m1"], "first")
    assert harness.condition()[0] == "Success"
    assert harness.count("accepted") == 1
    attempts = harness.metrics.registry.get_sample_value(
        "karmada_scheduler_schedule_attempts_total",
        {"result": "scheduled", "schedule_type": "ReconcileSchedule"},
    )
    assert attempts == 1


@pytest.mark.parametrize("kind", ["Divided", "Duplicated"])
async def test_nothing_is_written_of_a_proposal_that_its_plugin_declines(kind: str) -> None:
    harness = await reconsidered(
        proposing(answer=Result.unschedulable("not yet")), placement=placement(kind=kind)
    )
    assert harness.server.requests == []
    assert harness.count("declined") == 1
    assert harness.reconsiderations.waiting == 1


async def test_a_declined_proposal_has_its_reason_and_the_remaining_wait_until_it_is_accepted() -> None:
    answers = [Result.unschedulable("not yet", retry_after=90.0), SUCCESS]
    harness = Reconsidered(plugin("R", propose=answering(BACK), reconsider=lambda _: answers.pop(0)))
    key = next(iter(harness.bindings)).key
    assert harness.reconsiderations.refusal(key) is None
    await harness.look()
    harness.sleep(20)
    assert harness.reconsiderations.refusal(key) == ("R", "not yet", 70.0)
    await harness.look()
    assert harness.reconsiderations.refusal(key) is None


async def test_nothing_is_written_of_a_proposal_that_fails_whatever_its_plugin_returns() -> None:
    seen: list[ReconsiderContext] = []

    def reconsider(context: ReconsiderContext) -> Result:
        seen.append(context)
        return SUCCESS

    harness = await reconsidered(
        plugin("R", propose=answering(BACK), reconsider=reconsider), placement=placement("m9")
    )
    assert harness.server.requests == []
    assert harness.count("missed") == 1
    (context,) = seen
    assert (context.targets, context.affinity_name, context.held) == (None, "", False)
    assert "0/2 clusters are available" in str(context.error)


async def test_a_guard_plugin_sees_the_proposal_and_may_hold_it_without_a_trace_in_the_condition() -> None:
    seen: list[ReconsiderContext] = []

    def reconsider(context: ReconsiderContext) -> Result:
        seen.append(context)
        return SUCCESS

    def guard(context: Any) -> Result:
        return Result.unschedulable("no") if context.proposal is BACK else SUCCESS

    harness = await reconsidered(
        plugin("R", propose=answering(BACK), reconsider=reconsider), plugin("G", guard=guard)
    )
    assert harness.server.requests == []
    assert harness.count("held") == 1
    (context,) = seen
    assert context.held
    assert [each.name for each in context.targets or ()] == ["m1"]
    assert (context.affinity_name, str(context.error)) == ("first", "held at Guard by G: no")


async def test_a_proposal_about_the_term_in_force_is_an_ordinary_decision() -> None:
    harness = await reconsidered(proposing(Proposal("Again", Terms.IN_FORCE)), replicas=2)
    assert harness.placed() == ["m2"]
    assert harness.count("accepted") == 1
    assert harness.server.requests == []


@pytest.mark.parametrize(
    ("kept", "clusters"),
    [
        pytest.param({"m1": 1, "m2": 2}, {"m1": 1, "m2": 5}, id="some leave"),
        pytest.param({"m2": 2}, {"m2": 6}, id="all leave a cluster"),
        pytest.param({}, {"m2": 6}, id="all are divided again"),
        pytest.param({"m1": 9, "m2": 2, "m9": 3}, {"m1": 4, "m2": 2}, id="no more stay than there are"),
        pytest.param(None, {"m1": 4, "m2": 2}, id="all stay"),
    ],
)
async def test_what_a_proposal_does_not_keep_is_divided_again_in_one_write(
    kept: dict[str, int] | None, clusters: dict[str, int]
) -> None:
    guarded: list[tuple[Any, Any]] = []

    def guard(context: Any) -> Result:
        guarded.append((dict(context.binding.spec.clusters), dict(context.targets)))
        return SUCCESS

    def estimate(context: Any) -> ReplicaEstimate:
        return ReplicaEstimate({"m1": 0})

    both = [{"name": "m1", "replicas": 4}, {"name": "m2", "replicas": 2}]
    weighted = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    }
    on_both = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}, "replicaScheduling": weighted}
    harness = Reconsidered(
        proposing(Proposal("Again", Terms.IN_FORCE, kept)),
        plugin("G", guard=guard, estimate_replicas=estimate),
        replicas=6,
        clusters=both,
        placement=on_both,
    )
    await harness.look()
    assert harness.count("accepted") == 1
    stored = {each["name"]: each["replicas"] for each in harness.server.stored["web"]["spec"]["clusters"]}
    assert stored == clusters
    changes = clusters != {"m1": 4, "m2": 2}
    assert guarded == ([({"m1": 4, "m2": 2}, clusters)] if changes else [])
    assert [kind for kind, *_ in harness.server.requests].count("spec") == changes


async def test_without_an_earlier_term_a_proposal_is_a_miss() -> None:
    harness = await reconsidered(
        proposing(), placement=placement("m2", "m1"), status={"schedulerObservingAffinityName": "first"}
    )
    assert harness.count("missed") == 1


async def test_nobody_gives_way_for_a_proposal() -> None:
    asked: list[Any] = []

    def post_filter(context: Any) -> Result:
        asked.append(context)
        return SUCCESS

    harness = await reconsidered(proposing(), plugin("P", post_filter=post_filter), placement=placement("m9"))
    assert harness.count("missed") == 1
    assert asked == []


# --- which proposals are tried ---


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"suspension": {"scheduling": True}}, {}),
        ({"gracefulEvictionTasks": [{"fromCluster": "m9", "producer": "x", "reason": "y"}]}, {}),
        ({}, {"conditions": [{**STATUS["conditions"][0], "status": "False"}]}),
        ({}, {"schedulerObservedGeneration": 0}),
        ({"clusters": []}, {}),
    ],
)
async def test_a_binding_that_is_not_settled_is_not_reconsidered(
    spec: dict[str, Any], status: dict[str, Any]
) -> None:
    harness = await reconsidered(proposing(), status=status, **spec)
    assert sum(map(harness.count, ("accepted", "declined", "missed", "held", "failed"))) == 0


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_binding_that_has_to_leave_one_of_its_clusters_is_not_reconsidered(*, leaves: bool) -> None:
    on_both = [{"name": "m2", "replicas": 2}, {"name": "m1", "replicas": 2}]
    harness = Reconsidered(proposing(), placement=placement(kind="Duplicated"), clusters=on_both)
    await harness.reconsiderations.look()
    if leaves:
        harness.cluster("m2", version=7, deletionTimestamp="2026-01-01T00:00:00Z")
    await harness.run()
    assert harness.count("accepted") == (not leaves)


@pytest.mark.parametrize("gate", [answering(Result.unschedulable("closed")), raising()])
async def test_a_binding_that_pre_enqueue_plugins_keep_out_is_not_reconsidered(gate: Any) -> None:
    harness = await reconsidered(proposing(), plugin("P", pre_enqueue=gate))
    assert harness.server.requests == []
    assert harness.count("accepted") == 0


async def test_an_event_does_not_try_a_proposal() -> None:
    harness = Reconsidered(proposing())
    await harness.run()
    assert harness.placed() == ["m2"]


async def test_a_proposal_that_is_withdrawn_before_its_turn_is_not_tried() -> None:
    proposals: list[Proposal | None] = [None, BACK]
    harness = Reconsidered(plugin("R", propose=lambda _: proposals.pop(), reconsider=answering(SUCCESS)))
    harness.queue.pop()
    harness.queue.done(next(iter(harness.bindings)).key)
    await harness.look()
    assert harness.placed() == ["m2"]


async def test_proposals_are_made_at_the_interval_of_the_plugin() -> None:
    made = proposing()
    type(made).reconsider_seconds = 300.0
    harness = Reconsidered(made)
    await harness.reconsiderations.look()
    await harness.run()
    assert harness.placed() == ["m1"]
    harness.server.change("web", clusters=[{"name": "m2", "replicas": 2}])
    harness.server.change("web", status=True, **STATUS | {"schedulerObservedGeneration": 3})
    await harness.run()
    await harness.look(seconds=299)
    assert harness.placed() == ["m2"]
    await harness.look(seconds=1)
    assert harness.placed() == ["m1"]


@pytest.mark.parametrize(("name", "is_tried"), [("m1", True), ("m7", False)])
async def test_between_two_intervals_a_change_of_a_matching_cluster_tries_a_proposal(
    name: str, *, is_tried: bool
) -> None:
    harness = await reconsidered(proposing(answer=Result.unschedulable("not yet")))
    harness.cluster(name, version=7, generation=7)
    await harness.look(seconds=1)
    assert harness.count("declined") == 1 + is_tried


async def test_a_change_of_a_cluster_concerns_only_bindings_that_had_a_proposal() -> None:
    asked: list[str] = []

    def propose(about: Any) -> Proposal | None:
        asked.append(about.key.name)
        return BACK if about.key.name == "web" else None

    no = Result.unschedulable("not yet")
    harness = Reconsidered(plugin("R", propose=propose, reconsider=answering(no)))
    harness.put("other", placement=placement())
    await harness.look()
    asked.clear()
    harness.cluster("m1", version=7, generation=7)
    harness.sleep(1)
    await harness.reconsiderations.look()
    assert asked == ["web"]


async def test_a_binding_that_is_suspended_does_not_wait_any_more() -> None:
    harness = await reconsidered(proposing(answer=Result.unschedulable("not yet")))
    assert harness.reconsiderations.waiting == 1
    harness.server.change("web", suspension={"scheduling": True})
    await harness.look()
    assert harness.reconsiderations.waiting == 0


async def test_a_binding_about_which_nothing_is_proposed_any_more_does_not_wait() -> None:
    proposals = [BACK, BACK]
    no = Result.unschedulable("not yet")
    made = plugin("R", propose=lambda _: proposals.pop() if proposals else None, reconsider=answering(no))
    harness = await reconsidered(made)
    assert harness.reconsiderations.waiting == 1
    await harness.look()
    assert harness.reconsiderations.waiting == 0
    assert harness.reconsiderations.refusal(next(iter(harness.bindings)).key) is None


@pytest.mark.parametrize(("answer", "place"), [(SUCCESS, ["m1"]), (Result.unschedulable("not yet"), ["m2"])])
async def test_a_proposal_whose_decision_waits_is_written_if_its_plugin_accepts_it(
    answer: Result, place: list[str]
) -> None:
    async def pre_score(_: object) -> Result:
        await asyncio.sleep(0)
        return SUCCESS

    harness = await reconsidered(proposing(answer=answer), plugin("Waits", pre_score=pre_score))
    assert harness.placed() == place


async def test_a_priority_that_changes_while_a_proposal_is_decided_counts_for_the_decision_after_it() -> None:
    added: list[int] = []

    async def pre_score(_: object) -> Result:
        if not added:
            harness.server.change("web", schedulePriority={"priority": 9})
        await asyncio.sleep(0)
        return SUCCESS

    no = Result.unschedulable("not yet")
    harness = Reconsidered(
        proposing(answer=no),
        plugin("Waits", pre_score=pre_score),
        placement=placement(kind="Duplicated"),
        priorities=True,
    )
    add = harness.queue.add

    def noted(key: Any, priority: int = 0) -> None:
        added.append(priority)
        add(key, priority)

    harness.sleep(30)
    await harness.reconsiderations.look()
    harness.queue.add = noted
    await harness.run()
    assert len(added) > 1
    assert set(added) == {9}


async def test_a_priority_that_changes_while_a_proposal_waits_for_an_empty_queue_counts() -> None:
    harness = Reconsidered(proposing(), priorities=True)
    await harness.run()

    async def wait_idle(*, timeout: float) -> None:
        del timeout
        key = harness.put("other", schedulePriority={"priority": 5})
        assert harness.queue.holds(key)
        harness.server.change("web", schedulePriority={"priority": 9})

    harness.queue.wait_idle = wait_idle
    harness.sleep(30)
    await harness.reconsiderations.look()
    key, _ = harness.queue.pop()
    assert key.name == "web"


async def test_a_binding_that_had_a_proposal_before_is_not_asked_about_when_a_cluster_changes() -> None:
    proposals, asked = [BACK, BACK], list[str]()

    def propose(about: Any) -> Proposal | None:
        asked.append(about.key.name)
        return proposals.pop() if proposals else None

    no = Result.unschedulable("not yet")
    harness = await reconsidered(plugin("R", propose=propose, reconsider=answering(no)))
    await harness.look()
    asked.clear()
    harness.cluster("m1", version=7, generation=7)
    harness.sleep(1)
    await harness.reconsiderations.look()
    assert asked == []


async def test_a_binding_that_another_scheduler_gets_is_not_looked_at_when_a_cluster_changes() -> None:
    harness = await reconsidered(proposing(answer=Result.unschedulable("not yet")))
    harness.server.change("web", schedulerName="another")
    harness.cluster("m1", version=7, generation=7)
    await harness.look(seconds=1)
    assert harness.reconsiderations.waiting == 0
    assert harness.count("declined") == 1


async def test_a_binding_with_a_proposal_is_a_candidate_until_it_is_deleted() -> None:
    harness = await reconsidered(proposing(answer=Result.unschedulable("not yet")))
    (key,) = harness.bindings.keys()
    harness.sleep(30)
    await harness.reconsiderations.look()
    assert list(harness.reconsiderations._candidates) == [key]
    harness.bindings.remove(key, 10**9)
    harness.sleep(30)
    await harness.reconsiderations.look()
    assert not harness.reconsiderations._candidates
    assert harness.reconsiderations.waiting == 0
    assert harness.reconsiderations.refusal(key) is None


async def test_free_resources_of_a_cluster_try_no_proposal() -> None:
    harness = await reconsidered(proposing(answer=Result.unschedulable("not yet")))
    harness.cluster("m1", version=7)
    await harness.look(seconds=1)
    assert harness.count("declined") == 1


@pytest.mark.parametrize(("status", "is_tried"), [("False", True), ("True", False)])
async def test_a_cluster_that_becomes_ready_or_not_tries_a_proposal(status: str, *, is_tried: bool) -> None:
    harness = await reconsidered(proposing(answer=Result.unschedulable("not yet")))
    old = harness.clusters.get("m1")
    new = cluster("m1").condition("Ready", status).build()
    harness.reconsiderations.on_cluster(old, new)
    harness.reconsiderations.on_cluster(new, new)
    await harness.look(seconds=1)
    before = old.condition("Ready") if old is not None else None
    assert harness.count("declined") == 1 + (is_tried or before is None)


def test_a_cluster_that_begins_or_ends_to_report_whether_it_is_ready_differs() -> None:
    ready = cluster("m1").condition("Ready", "True").build()
    silent = replace(ready, conditions=())
    assert _differs(silent, ready)
    assert _differs(ready, silent)
    assert not _differs(silent, silent)


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_cluster_that_is_added_or_deleted_tries_a_proposal(*, is_deleted: bool) -> None:
    harness = await reconsidered(proposing(answer=Result.unschedulable("not yet")))
    found = harness.clusters.get("m1")
    harness.reconsiderations.on_cluster(*((found, None) if is_deleted else (None, found)))
    await harness.look(seconds=1)
    assert harness.count("declined") == 2


async def test_proposals_are_looked_for_at_the_shortest_interval_and_after_a_pause_that_collects_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    intervals, pauses, timeout, sleep = list[float](), list[float](), asyncio.timeout, asyncio.sleep

    def elapsed(seconds: float) -> asyncio.Timeout:
        intervals.append(seconds)
        return timeout(0)

    async def slept(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "timeout", elapsed)
    monkeypatch.setattr(asyncio, "sleep", slept)
    made = proposing()
    type(made).reconsider_seconds = 5.0
    harness = SchedulerHarness()
    reconsiderations = Reconsiderations(
        bindings=harness.bindings,
        queue=harness.queue,
        profiles=Profiles({"ours": framework(made), "theirs": framework()}),
        metrics=harness.metrics.plugins,
        clock=lambda: 0.0,
    )
    reconsiderations.start()
    await reconsiderations._wait()
    assert (intervals, pauses) == ([5.0], [])
    reconsiderations.on_cluster(None, cluster("m1").build())
    await reconsiderations._wait()
    await reconsiderations._wait()
    assert pauses == [CHANGE_SECONDS]


async def test_changes_before_the_start_are_not_kept() -> None:
    harness = SchedulerHarness(proposing())
    harness.cluster("m1", version=7, generation=7)
    assert not harness.reconsiderations._changed_clusters
    harness.reconsiderations.start()
    harness.cluster("m1", version=8, generation=8)
    assert list(harness.reconsiderations._changed_clusters) == ["m1"]


async def test_a_proposal_waits_until_the_queue_is_idle() -> None:
    harness = Reconsidered(proposing())
    while (popped := harness.queue.pop()) is not None:
        harness.queue.done(popped[0])
    idle, waits = asyncio.Event(), list[float]()

    async def wait_idle(*, timeout: float) -> None:
        waits.append(timeout)
        await idle.wait()

    harness.queue.wait_idle = wait_idle
    key = next(iter(harness.bindings)).key
    looking = asyncio.create_task(harness.reconsiderations.look())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not harness.queue.holds(key)
    idle.set()
    await looking
    assert harness.queue.holds(key)
    assert waits == [1.0]


async def test_proposals_are_enqueued_one_by_one() -> None:
    harness = Reconsidered(proposing(answer=Result.unschedulable("not yet")))
    for number in range(5):
        harness.settle(f"b{number}")
    await harness.run()
    add, due = harness.queue.add, list[int]()

    def counted(key: Any, priority: int = 0) -> None:
        due.append(len(harness.queue))
        add(key, priority)

    harness.queue.add = counted
    scheduling = asyncio.create_task(harness.scheduler.run())
    await asyncio.sleep(0)
    await harness.reconsiderations.look()
    scheduling.cancel()
    assert len(due) == 6
    assert max(due) <= 1, "another binding that becomes due waits for one proposal, not for all"


async def test_many_bindings_are_looked_at_in_parts() -> None:
    harness = Reconsidered(proposing(None))
    for number in range(450):
        harness.put(f"b{number}", placement=placement())
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    turns = 0
    await harness.reconsiderations.look()
    counting.cancel()
    assert turns == 2


async def test_an_accepted_proposal_is_logged_and_a_declined_one_only_for_debugging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        await Reconsidered(proposing(answer=Result.unschedulable("not yet"))).look()
    assert "is decided again" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO):
        await Reconsidered(proposing()).look()
    assert "is decided again, as R proposes: Back" in caplog.text


@pytest.mark.parametrize(
    ("intervals", "used"), [((5, 300), 5), ((0.1,), 1), (("soon",), 30), ((True,), 30), ((None,), 30)]
)
def test_the_shortest_interval_counts_and_one_that_is_no_number_is_the_usual_one(
    intervals: tuple[Any, ...], used: float
) -> None:
    plugins = []
    for number, interval in enumerate(intervals):
        made = plugin(f"R{number}", propose=answering(None), reconsider=answering(SUCCESS))
        type(made).reconsider_seconds = interval
        plugins.append(made)
    assert framework(*plugins).reconsider.seconds == used


async def test_the_first_plugin_with_a_proposal_counts() -> None:
    none = plugin("None", propose=answering(None), reconsider=raising())
    last = plugin("Last", propose=raising(), reconsider=raising())
    harness = await reconsidered(none, proposing(), last)
    assert harness.count("accepted") == 1


def test_a_proposed_decision_that_ends_in_another_term_is_an_error() -> None:
    web = binding("web").term("a", "m1").term("b", "m2").build()
    decision = Decision(web.key, affinity_name="b")
    assert within_proposed_terms(decision, web, range(2)) is decision
    assert "continues with term b" in str(within_proposed_terms(decision, web, range(1)).error)
    failed = replace(decision, error=SchedulingError("no"))
    assert within_proposed_terms(failed, web, range(1)) is failed


# --- errors ---


@pytest.mark.parametrize(
    "proposal",
    [
        "Back",
        Proposal(""),
        Proposal("not a word"),
        Proposal("x" * 33),
        Proposal("B", "first"),  # type: ignore[arg-type]
        Proposal("B", kept={"m2": -1}),
        Proposal("B", kept=["m2"]),  # type: ignore[arg-type]
    ],
)
async def test_an_invalid_proposal_is_none(proposal: Any, caplog: pytest.LogCaptureFixture) -> None:
    harness = await reconsidered(proposing(proposal))
    assert harness.server.requests == []
    assert "expected a Proposal with a reason, or None" in caplog.text


async def test_a_plugin_that_fails_does_not_disturb_the_binding(caplog: pytest.LogCaptureFixture) -> None:
    harness = await reconsidered(plugin("R", propose=raising(), reconsider=raising(), start_term=raising()))
    harness.server.change("web", replicas=4)
    await harness.run()
    assert harness.server.stored["web"]["spec"]["clusters"] == [{"name": "m2", "replicas": 4}]
    assert "No proposal about" in caplog.text


@pytest.mark.parametrize("answer", [None, Result.error("broken"), Result.wait(5)])
async def test_an_invalid_answer_keeps_the_placement(answer: Any) -> None:
    harness = await reconsidered(proposing(answer=answer))
    assert harness.server.requests == []
    assert harness.count("failed") == 1


@pytest.mark.parametrize("methods", [{"propose": answering(None)}, {"reconsider": answering(None)}])
def test_a_plugin_needs_both_methods(methods: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"propose|reconsider"):
        schedule(binding("web"), cluster("m1"), plugins=[type("R", (), {"name": "R", **methods})])


# --- the first decision after a proposal ---


async def test_a_declined_proposal_does_not_replace_the_decision_that_an_event_requires() -> None:
    harness = Reconsidered(
        proposing(answer=Result.unschedulable("not yet")), placement=placement(kind="Duplicated")
    )
    harness.cluster("m2", version=5, generation=5, deletionTimestamp="2026-01-01T00:00:00Z")
    await harness.look()
    assert harness.placed() == []


async def test_a_decision_begins_with_the_term_that_a_plugin_returns() -> None:
    harness = Reconsidered(proposing(None, start_term=answering("first")))
    await harness.run()
    assert (harness.placed(), harness.term()) == (["m1"], "first")


@pytest.mark.parametrize(("rules", "term"), [("1.19", ""), ("1.19", "first"), ("1.18", "first")])
async def test_a_failed_decision_removes_nothing_whatever_term_it_begins_with(rules: str, term: str) -> None:
    """The first term does not fit, and the one in use fails for another reason; the decision is repeated."""
    harness = Reconsidered(
        proposing(None, start_term=answering(term)),
        gates=FeatureGates(rules=RULES[rules]),
        placement={
            **placement("gone"),
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}],
        },
        rescheduleTriggeredAt="2027-01-01T00:00:00Z",
    )
    await harness.run()
    assert (harness.placed(), harness.term(), harness.condition()[0]) == (["m2"], "second", "NoClusterFit")
    before = len(harness.events)
    await harness.run(after=1000)
    assert len(harness.events) > before


@pytest.mark.parametrize("name", ["", "unknown", "second", None])
async def test_a_term_that_the_binding_does_not_have_changes_nothing(name: Any) -> None:
    harness = Reconsidered(proposing(None, start_term=answering(name)))
    await harness.run()
    assert harness.server.requests == []


def test_a_run_of_the_test_kit_does_not_ask() -> None:
    run = schedule(
        binding("web").replicas(2).dynamic_weight(),
        cluster("m1"),
        plugins=[plugin("R", propose=raising(), reconsider=raising())],
    )
    assert run.placed == {"m1": 2}


@pytest.mark.parametrize("has_terms", [True, False])
async def test_a_plugin_for_affinity_terms_is_called_only_where_there_are_some(*, has_terms: bool) -> None:
    called: list[str] = []

    def noting(method: str, answer: Any) -> Any:
        def noted(_: Any) -> Any:
            called.append(method)
            return answer

        return noted

    async def post_bind(_: Any) -> None:
        called.append("post_bind")

    made = plugin(
        "R",
        propose=noting("propose", None),
        reconsider=answering(SUCCESS),
        start_term=noting("start_term", ""),
        guard=noting("guard", SUCCESS),
        reserve=noting("reserve", SUCCESS),
        unreserve=noting("unreserve", None),
        post_bind=post_bind,
    )
    type(made).only_with_terms = True
    before, after = ({"clusterAffinity": {"clusterNames": [name]}} for name in ("m2", "m1"))
    harness = Reconsidered(made, placement=placement() if has_terms else before)
    await harness.run()
    harness.server.change("web", placement=placement("m1", "m1") if has_terms else after)
    called.clear()
    await harness.run()
    assert harness.placed() == ["m1"]
    at_points = ["propose", "start_term", "guard", "reserve", "post_bind"]
    assert list(dict.fromkeys(called)) == (at_points if has_terms else ["propose"])
    called.clear()
    await harness.look()
    assert ("propose" in called) is has_terms
