"""karmada_scheduler.testing runs bindings through all plugins, and has a trace of the steps."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from karmada_scheduler.api.placement import WorkloadAffinity
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import DEFAULT_PLUGIN_SECONDS
from karmada_scheduler.framework import (
    SUCCESS,
    BindContext,
    Binding,
    BindingKey,
    BindingSpec,
    Cluster,
    Cycle,
    FilterContext,
    FitError,
    Handle,
    PeerContext,
    Placement,
    PluginError,
    PreFilterContext,
    PreScoreContext,
    Result,
    ScoreContext,
    Workload,
)
from karmada_scheduler.testing import (
    BindingBuilder,
    FakeHandle,
    binding,
    cluster,
    decide,
    filter_context,
    framework,
    make,
    placed,
    profiles,
    schedule,
    scheduling,
)


def web() -> BindingBuilder:
    """Return a new builder, because its methods change it."""
    return binding("web").replicas(2)


class Ledger:
    """Implements Reserve, Unreserve and PostBind; refuses as configured."""

    name = "Ledger"

    def __init__(self, refusal: Result = SUCCESS) -> None:
        self.refusal = refusal

    def reserve(self, context: BindContext, /) -> Result:
        return self.refusal

    def unreserve(self, context: BindContext, /) -> None:
        """Give back."""

    async def post_bind(self, context: BindContext, /) -> None:
        """Do nothing."""


class Gang:
    """Lets bindings wait until there are two of them."""

    name = "Gang"

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    async def permit(self, context: BindContext, /) -> Result:
        for waiting in self.handle.waiting():
            waiting.allow(self.name)
            return SUCCESS
        return Result.wait(60, "alone")


class Talks:
    """Scores asynchronously."""

    name = "Talks"

    async def pre_score(self, context: PreScoreContext, /) -> Result:
        await asyncio.sleep(0)
        self.best = context.clusters[-1].name
        return SUCCESS

    def score(self, context: ScoreContext, /) -> int:
        return 100 if context.cluster.name == self.best else 0


def test_schedule_runs_all_extension_points_and_writes() -> None:
    handle = FakeHandle()
    run = schedule(web(), cluster("m1"), plugins=[Ledger()], handle=handle)
    assert run.placed == {"m1": 2}
    assert run.condition.reason == "Success"
    assert run.methods_of("Ledger") == ["reserve", "post_bind"]
    assert handle.binding(run.binding.key) == run.binding
    assert [each.name for each in handle.snapshot()] == ["m1"]


def test_a_refusal_keeps_the_placement_and_calls_unreserve() -> None:
    plugin = Ledger(Result.unschedulable("sold out", retry_after=30))
    run = schedule(binding("web").on("m1").names("m2"), cluster("m1"), cluster("m2"), plugins=[plugin])
    assert run.condition == ("False", "Unschedulable", "refused at Reserve by Ledger: sold out")
    assert run.retry_after == 30
    assert run.methods_of("Ledger") == ["reserve", "unreserve"]
    assert [target.name for target in run.binding.spec.clusters] == ["m1"]
    with pytest.raises(AssertionError, match="not placed: refused at Reserve by Ledger: sold out"):
        run.placed  # noqa: B018


def test_a_failed_write_calls_unreserve() -> None:
    run = schedule(web(), cluster("m1"), plugins=[Ledger()], write_fails=OSError("connection lost"))
    assert str(run.error) == "connection lost"
    assert run.methods_of("Ledger") == ["reserve", "unreserve"]


def test_an_unchanged_placement_calls_no_plugin_from_reserve_on() -> None:
    run = schedule(web().on(m1=2).applied(), cluster("m1"), plugins=[Ledger()])
    assert run.placed == {"m1": 2}
    assert run.methods_of("Ledger") == []


def test_a_binding_that_no_cluster_fits_loses_its_placement() -> None:
    run = schedule(binding("web").on("m1").names("m2"), cluster("m1"), plugins=[Ledger()])
    assert run.condition.reason == "NoClusterFit"
    assert run.refused == {"m1": "cluster(s) did not match the placement cluster affinity constraint"}
    assert run.binding.spec.clusters == ()
    assert run.methods_of("Ledger") == []


def test_a_wait_can_be_allowed() -> None:
    run = schedule(web(), cluster("m1"), plugins=[Gang], when_waiting=lambda waiting: waiting.allow("Gang"))
    assert run.placed == {"m1": 2}


def test_a_wait_can_be_rejected() -> None:
    run = schedule(
        web(), cluster("m1"), plugins=[Gang], when_waiting=lambda waiting: waiting.reject("Gang", "not today")
    )
    assert run.condition == ("False", "Unschedulable", "refused at Permit by Gang: not today")


def test_a_wait_without_an_answer_times_out_at_once() -> None:
    run = schedule(web(), cluster("m1"), plugins=[Gang])
    assert (
        run.condition.message
        == "refused at Permit by Gang: rejected due to timeout after waiting 60s at plugin Gang: alone"
    )


async def test_bindings_can_wait_for_each_other() -> None:
    handle = FakeHandle()
    other = binding("other").replicas(1)
    runs = await asyncio.gather(
        *(scheduling(each, cluster("m1"), plugins=[Gang], handle=handle) for each in (web(), other))
    )
    assert [run.placed for run in runs] == [{"m1": 2}, {"m1": 1}]
    assert handle.waiting() == ()


def test_plugins_with_coroutines_can_be_tested() -> None:
    builder = binding("web").replicas(1).spread("cluster", 1, 1)
    assert placed(decide(builder, cluster("m1"), cluster("m2"), plugins=[Talks])) == {"m2": 1}


def test_make_reads_args_as_a_configuration_file() -> None:
    with pytest.raises(ConfigError, match="the plugin takes none"):
        make(Talks, {"speed": 3})


def test_the_trace_has_a_line_for_each_step() -> None:
    run = schedule(
        web().spread("cluster", 1, 1),
        cluster("m1"),
        cluster("m2").taint("a:NoSchedule"),
        cluster("m3").taint("a:NoSchedule"),
        cluster("m4"),
        plugins=[Talks, Ledger],
    )
    assert str(run).splitlines() == [
        "ResourceBinding(default/web-deployment): Success: Binding has been scheduled successfully.",
        "  m2, m3 refused by TaintToleration: cluster(s) had untolerated taint {a:NoSchedule}",
        "  Talks.pre_score: Success",
        "  ClusterAffinity scored: 0 for all",
        "  ClusterLocality scored: 0 for all",
        "  Talks scored: m1:0, m4:100",
        "  DefaultSelector.select: m4",
        "  DefaultAssigner.assign: m4:2",
        "  decided again with that result: what differs",
        "  ClusterLocality scored: m1:0, m4:100",
        "  Ledger.reserve: Success",
        "  DefaultBinder.bind: Success",
        "  Ledger.post_bind",
        "  on m4:2",
    ]


def test_the_trace_has_the_result_of_a_wait() -> None:
    trace = str(schedule(web(), cluster("m1"), plugins=[Gang])).splitlines()
    assert trace[0].endswith(
        "Unschedulable: refused at Permit by Gang: rejected due to timeout after waiting 60s at plugin Gang: alone"
    )
    assert trace[-2:] == ["  Gang.permit: Wait for 60s: alone", "  on no cluster"]


def test_the_trace_has_all_affinity_terms() -> None:
    builder = binding("web").replicas(3).aggregated().term("near", "m3").term("far", "m1")
    trace = str(schedule(builder, cluster("m1"), cluster("m2"))).splitlines()
    affinity = "cluster(s) did not match the placement cluster affinity constraint"
    assert trace[1:6] == [
        "  affinity term near:",
        f"  m1, m2 refused by ClusterAffinity: {affinity}",
        f"  0/2 clusters are available: 2 {affinity}.",
        "  affinity term far:",
        f"  m2 refused by ClusterAffinity: {affinity}",
    ]


def test_the_trace_of_many_clusters_is_shortened() -> None:
    names = [f"m{index:02}" for index in range(30)]
    trace = str(schedule(binding("web").duplicated().replicas(1), *map(cluster, names))).splitlines()
    assert trace[-1].startswith("  on m00:1, m01:1,")
    assert trace[-1].endswith("m19:1 and 10 more")


def test_the_trace_shows_that_the_second_decision_is_the_same() -> None:
    trace = str(schedule(web(), cluster("m1"), plugins=framework(select=["ClusterAffinity"])))
    assert trace.count("decided again with that result: the same") == 1
    assert trace.count("DefaultAssigner.assign") == 1


class Odd:
    """Returns names and numbers, and raises."""

    name = "Odd"

    def pre_filter(self, context: PreFilterContext, /) -> frozenset[str]:
        return frozenset({"m2", "m1"})

    def reserve(self, context: BindContext, /) -> Result:
        raise KeyError("x")

    def unreserve(self, context: BindContext, /) -> None:
        """Give back."""


def test_the_trace_has_names_and_exceptions() -> None:
    trace = str(schedule(web(), cluster("m1"), cluster("m2"), plugins=[Odd])).splitlines()
    assert "  Odd.pre_filter: m1, m2" in trace
    assert trace[-3].startswith('  Odd.reserve: plugin "Odd" failed at Reserve')
    assert trace[-2:] == ["  Odd.unreserve", "  on no cluster"]


def everything() -> BindingBuilder:
    """Return a binding with every field set."""
    return (
        binding("web")
        .binding_uid("b").uid("w").resource_version("7").generation(3).deleting()
        .created("2026-01-01T00:00:00Z")
        .label("example.com/team", "a").labels(app="web").annotation("example.com/note").annotations(space="2")
        .replicas(2, cpu=1).priority_class("high").node_claim(nodeSelector={"disk": "ssd"}).component("c", 1)
        .groups(affinity="g").priority(5).scheduler("mine").suspended().evicted_from("m9").on(m1=2)
        .purge_mode("Gracefully")
        .workload_affinity(affinity="app").observing("near").observed_generation(2).health(m1="Healthy").reports(m1=2)
        .condition(type="Scheduled", status="True")
        .last_scheduled("2026-01-01T00:00:00Z").reschedule_triggered("2026-01-02T00:00:00Z")
    )  # fmt: skip


def test_the_binding_builder_has_all_fields() -> None:
    built, empty = (
        everything().build(),
        Binding(BindingKey("", "", ""), spec=BindingSpec(placement=Placement())),
    )
    for this, that in ((built, empty), (built.spec, empty.spec), (built.status, empty.status)):
        same = [name for name in this.__struct_fields__ if getattr(this, name) == getattr(that, name)]
        assert [name for name in same if name != "unknown_target_fields"] == []  # of a Karmada to come
    assert built.labels.items() >= {"example.com/team": "a", "app": "web"}.items()
    assert dict(built.annotations) == {"example.com/note": "", "space": "2"}
    requirements = built.spec.replica_requirements
    assert requirements is not None
    assert (requirements.priority_class_name, requirements.node_claim) == (
        "high",
        {"nodeSelector": {"disk": "ssd"}},
    )
    assert (built.spec.priority, built.status.aggregated_status) == (5, (("m1", "Healthy"),))
    assert built.spec.placement is not None
    assert built.spec.placement.workload_affinity == WorkloadAffinity("app")


def test_the_cluster_builder_has_all_fields() -> None:
    builder = (
        cluster("m1").uid("u").resource_version("7").generation(3).labels(tier="prod").deleting()
        .provider("p").region("r").zones("z").sync_mode("Pull").taint("a:NoSchedule").grade(0, nodes=1, cpu=1)
        .condition("Ready", "False")
        .ready_nodes(2)
    )  # fmt: skip
    built, empty = builder.build(), Cluster("")
    same = [name for name in built.__struct_fields__ if getattr(built, name) == getattr(empty, name)]
    assert same == ["unreadable_fields"]  # what a builder builds can be read
    ready = built.condition("Ready")
    assert ready is not None
    assert ready.status == "False"


class ByMetadata:
    """Accepts workloads of type space, and records the owner at Reserve."""

    name = "ByMetadata"
    needs_workload = True

    def __init__(self) -> None:
        self.owners: list[str] = []

    def filter(self, context: FilterContext, /) -> Result:
        workload = context.workload
        if workload is None:
            return Result.error(context.workload_problem)
        is_space = workload.annotations.get("type") == "space" and workload.labels["app"] == "sat"
        return SUCCESS if is_space else Result.unschedulable("not of type space")

    def reserve(self, context: BindContext, /) -> Result:
        if context.workload is not None:
            self.owners += [each.name for each in context.workload.owner_references]
        return SUCCESS

    def unreserve(self, context: BindContext, /) -> None: ...


def test_a_builder_sets_the_metadata_of_the_workload() -> None:
    plugin = ByMetadata()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mission", "uid": "u"}
    sat = web().workload(annotations={"type": "space"}, labels={"app": "sat"}, owner_references=[owner])
    run = schedule(sat, cluster("m1"), plugins=[plugin])
    assert run.placed == {"m1": 2}
    assert plugin.owners == ["mission"]
    assert decide(sat, cluster("m1"), plugins=[ByMetadata()]).error is None
    assert ByMetadata().filter(filter_context(sat, cluster("m1"))) == SUCCESS
    other = schedule(web().workload(labels={"app": "web"}), cluster("m1"), plugins=[plugin])
    assert other.refused == {"m1": "not of type space"}


def test_a_builder_sets_the_reason_why_the_workload_is_unknown() -> None:
    run = schedule(web().without_workload("it was deleted"), cluster("m1"), plugins=[ByMetadata])
    assert "it was deleted" in str(run.error)
    silent = schedule(web(), cluster("m1"), plugins=[ByMetadata])
    assert "the test does not set it: binding(...).workload(...)" in str(silent.error)


def test_the_workload_is_that_of_the_resource() -> None:
    other = web().workload(labels={"a": "b"}).resource("batch/v1", "Job", uid="u")
    found = other.workload_answer.workload
    assert found is not None
    assert (found.api_version, found.kind, found.uid, found.name) == ("batch/v1", "Job", "u", "web")


def test_an_undeclared_workload_is_an_error() -> None:
    class Careless(ByMetadata):
        name = "Careless"
        needs_workload = False

    run = schedule(web().workload(annotations={"type": "space"}), cluster("m1"), plugins=[Careless])
    assert "no plugin of this profile has needs_workload = True in its class" in str(run.error)


def test_cached_results_end_with_a_change_of_the_metadata() -> None:
    class Keyed(ByMetadata):
        name = "Keyed"

        def filter_key(self, cycle: Cycle) -> Hashable:
            workload = cycle.workload
            return None if workload is None else workload.annotations.get("type", "")

    plugins = framework(Keyed)
    space = web().workload(annotations={"type": "space"}, labels={"app": "sat"})
    ground = web().workload(annotations={"type": "ground"}, labels={"app": "sat"})
    for _ in range(2):
        assert placed(decide(space, cluster("m1"), plugins=plugins)) == {"m1": 2}
        assert isinstance(decide(ground, cluster("m1"), plugins=plugins).error, FitError)
    assert "it is gone" in str(
        decide(web().without_workload("it is gone"), cluster("m1"), plugins=plugins).error
    )


@pytest.mark.parametrize(
    ("attribute", "value", "text"),
    [
        ("needs_workload", "yes", "needs_workload must be True or False, not 'yes'"),
        ("need_workload", True, "need_workload declares nothing; did you mean needs_workload?"),
        ("needs_workloads", True, "needs_workloads declares nothing; did you mean needs_workload?"),
    ],
)
def test_an_invalid_declaration_is_an_error(attribute: str, value: object, text: str) -> None:
    wrong = type("ByMetadata", (ByMetadata,), {attribute: value})
    with pytest.raises(ConfigError) as problem:
        framework(wrong)
    assert text in str(problem.value)


class Peers:
    """Records the workloads of other bindings that it can read."""

    name = "Peers"
    needs_workload = True

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle, self.seen = handle, list[tuple[str, str | None]]()

    def pre_filter(self, context: PreFilterContext, /) -> Result:
        for each in self.handle.bindings():
            self._note("stored", self.handle.workload(each.key))
        return SUCCESS

    def add_binding(self, context: PeerContext, /) -> Result:
        self._note("add", context.workload)
        return SUCCESS

    def remove_binding(self, context: PeerContext, /) -> Result:
        self._note("remove", context.workload)
        return SUCCESS

    def _note(self, what: str, workload: Workload | None) -> None:
        self.seen.append((what, workload.labels.get("app") if workload else None))


class Undeclared(Peers):
    """Does not declare it."""

    name = "Undeclared"
    needs_workload = False


def peers() -> tuple[FakeHandle, BindingBuilder, BindingBuilder]:
    other = binding("other").workload(labels={"app": "shop"}).on(m1=1)
    return FakeHandle(other), web().workload(labels={"app": "blog"}), other


def test_plugins_see_the_workloads_of_other_bindings() -> None:
    handle, this, other = peers()
    plugin = make(Peers, handle=handle)
    schedule(this, cluster("m1"), plugins=[plugin], handle=handle, in_flight=[other])
    assert plugin.seen[:4] == [("stored", "shop"), ("stored", "blog"), ("remove", "shop"), ("add", "shop")]


@pytest.mark.parametrize("in_flight", [True, False])
def test_undeclared_workloads_of_other_bindings_are_an_error(in_flight: bool) -> None:
    handle, this, other = peers()
    plugin = make(Undeclared, handle=handle)
    if in_flight:
        plugin.pre_filter = lambda context, /: SUCCESS  # type: ignore[method-assign]
    run = schedule(
        this, cluster("m1"), plugins=[plugin], handle=handle, in_flight=[other] if in_flight else []
    )
    assert "UndeclaredWorkloadError: the workload is not read" in str(run.error)


def test_a_waiting_binding_has_its_workload() -> None:
    seen = []
    schedule(
        web().workload(labels={"app": "blog"}),
        cluster("m1"),
        plugins=[Gang, Peers],
        when_waiting=lambda waiting: seen.append(waiting.workload),
    )
    assert [each.labels for each in seen if each] == [{"app": "blog"}]


class Hangs:
    """Sleeps for half a minute at one extension point."""

    name = "Hangs"

    def __init__(self, point: str) -> None:
        self.point = point
        self.undone = 0

    def _sleep(self, point: str) -> None:
        if point == self.point:
            time.sleep(30)

    def filter(self, context: FilterContext, /) -> Result:
        self._sleep("filter")
        return SUCCESS

    def reserve(self, context: BindContext, /) -> Result:
        self._sleep("reserve")
        return SUCCESS

    def unreserve(self, context: BindContext, /) -> None:
        self.undone += 1

    async def permit(self, context: BindContext, /) -> Result:
        if self.point == "permit":
            await asyncio.sleep(30)
        return SUCCESS


@pytest.mark.parametrize(
    ("point", "where"),
    [("filter", "Filter for cluster m1"), ("reserve", "Reserve"), ("permit", "Permit")],
)
def test_a_plugin_that_hangs_ends_with_the_error_of_the_scheduler(point: str, where: str) -> None:
    run = schedule(web(), cluster("m1"), plugins=framework(Hangs(point), timeout=0.05))

    text = f'plugin "Hangs" took longer than 0.05s at {where} and is not called for 2s'
    assert run.condition.reason == "SchedulerError"
    assert run.condition.message.removeprefix("failed to find fit clusters: ") == text
    assert run.binding.spec.clusters == ()
    if point != "filter":
        [answer] = [step.answer for step in run.steps if step.method == point]
        assert isinstance(answer, PluginError)
        assert str(answer) == text


def test_plugins_of_the_kit_have_the_timeout_of_the_scheduler_by_default(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: pyscheduler.karmada.io/v1alpha1\nkind: KarmadaSchedulerConfiguration\n"
        "pluginTimeoutSeconds: 0.05\n"
    )
    decision = decide(web(), cluster("m1"), plugins=framework(Hangs("filter"), timeout=0.05))
    assert str(decision.error).endswith('plugin "Hangs" took longer than 0.05s at Filter for cluster m1')
    assert framework().caller.coroutine_seconds == DEFAULT_PLUGIN_SECONDS
    assert profiles(file)["default-scheduler"].caller.coroutine_seconds == 0.05
    assert framework(timeout=None).caller.coroutine_seconds is None


def test_the_alarm_of_a_test_runner_is_given_back_with_the_time_that_is_left() -> None:
    fired: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: fired.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 600)
        schedule(web(), cluster("m1"), plugins=framework(Hangs("filter"), timeout=0.05))
        assert 590 < signal.getitimer(signal.ITIMER_REAL)[0] <= 599.95
        signal.raise_signal(signal.SIGALRM)
        assert fired == [signal.SIGALRM]
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        schedule(web(), cluster("m1"), plugins=framework(Hangs("filter"), timeout=0.05))
        deadline = time.monotonic() + 60
        while len(fired) < 2 and time.monotonic() < deadline:
            pass
        assert len(fired) == 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_plugins_have_no_timeout() -> None:
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(lambda: schedule(web(), cluster("m1"), plugins=[Ledger()])).result()
    assert run.placed == {"m1": 2}
