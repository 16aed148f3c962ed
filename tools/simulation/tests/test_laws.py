"""Each law of the judge has a past that breaks it alone; those of guards are in ``test_guard_laws``."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from karmada_pyscheduler.client.http_connection import Response
from karmada_pyscheduler.client.karmada import RESOURCE_BINDINGS
from karmada_scheduler.api.binding import Binding, BindingKey
from tools.apiserver_model import Request, Write
from tools.simulation import capacity_law, estimate_law, flat, guard_laws, invariants, priority_law, retry_law
from tools.simulation.actions import LEASE, placement
from tools.simulation.environment import START
from tools.simulation.estimators import EstimatorCall
from tools.simulation.generate_rounds import BLOCKS
from tools.simulation.network import Sent
from tools.simulation.plan import Plan, Step
from tools.simulation.plugin_kit import Call
from tools.simulation.process import SchedulerProcess
from tools.simulation.run import Run, _quiet
from tools.simulation.tests.test_guard_laws import CASES

PLAN = Plan(
    seed="1",
    setup={"records": True},
    faults_end=10.0,
    settle=70.0,
    steps=(
        Step(at=0.0, action="put_cluster", arguments={"name": "m0", "region": "", "cpu": 9}),
        Step(at=0.0, action="put_cluster", arguments={"name": "m1", "region": "", "cpu": 9}),
        Step(
            at=1.0, action="create_binding", arguments={"name": "b", "replicas": 2, "strategy": "duplicated"}
        ),
    ),
)
KEY = ("default", "b")


@contextmanager
def at_rest(plan: Plan = PLAN) -> Iterator[Run]:
    """Yield a run in which one process has placed one binding on two clusters, before it is judged at rest."""
    run = Run(plan)
    with _quiet(run):
        run.simulation.at(0.0, lambda: run._start(0))
        for step in PLAN.steps:
            run.simulation.at(step.at, partial(run._take, step.action, step.arguments))
        run.simulation.run(PLAN.faults_end + 10)
        run.judge.rest_begins()
        run.judge.rest_ends()
        assert not run.judge.violations
        try:
            yield run
        finally:
            for process in run.starts[0]:
                process.dispose()
            for page in run.pages:
                page.dispose()
            run.setup.close()


def leader(run: Run) -> SchedulerProcess:
    found = run.leader()
    assert found is not None
    return found


def stored(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(run.model.state("ResourceBinding")[KEY])
    return found


def sent(run: Run, *, version: str = "7", by: str = "", path: str = "/b", method: str = "PATCH") -> None:
    """Let a process send a request about the binding."""
    body = orjson.dumps({"metadata": {"resourceVersion": version} if version else {}})
    request = Request(method=method, path=path, query={}, body=body, user="")
    kind = f"{method} resourcebindings"
    run.judge.on_request(Sent(0, by or leader(run).identity, run.simulation.now, kind, request))


def store(run: Run, *, is_cached: bool, **spec: Any) -> None:
    """Change the stored binding, without an event for the scheduler."""
    changed = stored(run)
    changed["spec"].update(spec)
    changed.setdefault("status", {})["aggregatedStatus"] = []
    run.model.put(changed)
    application = leader(run).application
    assert application is not None
    if is_cached:
        application.state.bindings.put(Binding.from_manifest(stored(run)))


def a_write_without_a_version(run: Run) -> None:
    sent(run, version="")


def a_write_by_somebody_who_never_led(run: Run) -> None:
    sent(run, by="nobody")


def the_same_request_again_and_again(run: Run) -> None:
    for _ in range(60):
        sent(run, method="GET")


def a_cluster_is_left_for_no_reason(run: Run) -> None:
    before = stored(run)
    after = {**before, "spec": {**before["spec"], "clusters": [{"name": "m1", "replicas": 2}]}}
    raw = orjson.dumps(before), orjson.dumps(after)
    run.judge._harm.check(Write(0, 9, START, "", "ResourceBinding", KEY, "", *raw, None, "", b""))


def a_key_is_in_no_queue(run: Run) -> None:
    store(run, is_cached=True, replicas=5)
    run.judge.check_keys()
    run.judge.check_keys()


def a_change_is_not_decided(run: Run) -> None:
    store(run, is_cached=True, replicas=5)
    run.judge.rest_ends()


def a_change_is_not_cached(run: Run) -> None:
    store(run, is_cached=False)
    run.judge.rest_ends()


def a_write_at_rest(run: Run) -> None:
    run.judge.scheduler_writes += 1
    run.judge.rest_ends()


def nobody_leads(run: Run) -> None:
    run.actions.take("delete_lease", {})
    run.judge.rest_ends()


def a_reservation_is_left(run: Run) -> None:
    leader(run).scene.books.append(Counter({BindingKey("ResourceBinding", *KEY): 1}))
    run.judge.rest_ends()


def a_record_is_missing(run: Run) -> None:
    application = leader(run).application
    assert application is not None
    assert application.records is not None
    application.records.store.forget(BindingKey("ResourceBinding", *KEY))
    run.judge.rest_ends()


def the_page_has_lost_a_binding(run: Run) -> None:
    run._start_page()
    run.simulation.run(run.simulation.now + 15)
    run.judge.rest_ends()
    assert not run.judge.violations
    run.pages[-1].watcher.fleet.remove(RESOURCE_BINDINGS, stored(run))
    run.judge.rest_ends()


def an_exception_is_logged(run: Run) -> None:
    error = ValueError("x")
    record = logging.LogRecord("x", logging.ERROR, "", 1, "boom", (), (ValueError, error, None))
    run.judge.on_exception(record)


def a_process_goes_on_after_its_signal(run: Run) -> None:
    run.judge.check_stopped(run.running())


def a_container_grows(run: Run) -> None:
    run.judge.measured = BLOCKS - 1
    process = leader(run)
    sizes = flat.sizes_of(process)
    name = next(each for each in sizes if each.endswith("._waiting"))
    run.judge._sizes[process.name] = [Counter({**sizes, name: sizes[name] + more}) for more in (-20, -10)]
    run.judge.measure()


def a_refused_attempt_is_made_again_too_soon(run: Run) -> None:
    key = BindingKey("ResourceBinding", *KEY)
    leader(run).scene.calls += [Call(10.0, key), Call(10.0, key, 5.0), Call(11.0, key)]
    run.judge.rest_ends()


def changed_result(run: Run, name: str, clusters: list[dict[str, Any]], **spec: Any) -> tuple[Write, Sent]:
    """Return a write of the clusters of a binding like the stored one, which has no clusters before."""
    before = stored(run)
    before["metadata"]["name"] = name
    before["spec"].update(clusters=[], **spec)
    after = {**before, "spec": {**before["spec"], "clusters": clusters}}
    raw = orjson.dumps(before), orjson.dumps(after)
    write = Write(0, 9, START, "", "ResourceBinding", ("default", name), "", *raw, None, "", b"")
    request = Request(method="PATCH", path=f"/{name}", query={}, body=b"{}", user="")
    return write, Sent(0, leader(run).identity, run.simulation.now, "PATCH resourcebindings", request)


def an_estimate_is_not_used(run: Run) -> None:
    now = run.simulation.now
    for name, number in (("m0", 3), ("m1", 6)):
        leader(run).estimator_calls.by_cluster[name] = [EstimatorCall(now, now, number)]
    for first, second in ((3, 6), (5, 4)):
        assert not run.judge.violations
        clusters = [{"name": "m0", "replicas": first}, {"name": "m1", "replicas": second}]
        write, by = changed_result(run, "a", clusters, replicas=9, placement=placement("dynamic"))
        run.judge._answers.on_write(write, by)


def more_is_placed_than_fits(run: Run) -> None:
    spec = {
        "placement": placement("dynamic"),
        "replicaRequirements": {"resourceRequest": {"cpu": "2"}},
    }
    for name, replicas in (("a", 2), ("b", 2), ("c", 1)):
        assert not run.judge.violations
        write, by = changed_result(run, name, [{"name": "m0", "replicas": replicas}], **spec)
        run.judge._answers.on_write(write, by)
        assert write.after is not None
        run.judge._answers.on_response(by, Response(200, {}, write.after))


def a_lower_priority_is_taken_first(run: Run) -> None:
    application = leader(run).application
    assert application is not None
    for name, queued, priority in (("a", 9, 1), ("c", 5, 7)):
        changed = stored(run)
        changed["metadata"] |= {"name": name, "uid": name}
        changed["spec"]["schedulePriority"] = {"priority": priority}
        application.state.bindings.put(Binding.from_manifest(changed))
        application.state.queue.add(BindingKey("ResourceBinding", "default", name), queued)
    assert application.state.queue.pop() is not None


PASTS: dict[str, Callable[[Run], None]] = {
    "guarded": a_write_without_a_version,
    "fenced": a_write_by_somebody_who_never_led,
    "polite": the_same_request_again_and_again,
    "no harm": a_cluster_is_left_for_no_reason,
    "no lost key": a_key_is_in_no_queue,
    "converged": a_change_is_not_decided,
    "cached": a_change_is_not_cached,
    "quiet": a_write_at_rest,
    "alive": nobody_leads,
    "balanced": a_reservation_is_left,
    "recorded": a_record_is_missing,
    "shown": the_page_has_lost_a_binding,
    "no exception": an_exception_is_logged,
    "stops": a_process_goes_on_after_its_signal,
    "flat": a_container_grows,
    "in time": a_refused_attempt_is_made_again_too_soon,
    "estimated": an_estimate_is_not_used,
    "no overcommit": more_is_placed_than_fits,
    "by priority": a_lower_priority_is_taken_first,
}
SETUPS: dict[str, dict[str, Any]] = {
    "estimated": {"estimators": "partial"},
    "no overcommit": {"gates": {"SchedulingOvercommitProtection": True}},
    "by priority": {"gates": {"PriorityBasedScheduling": True}},
}
"""What is around the scheduler, for laws that need something there."""


@pytest.mark.parametrize("law", PASTS)
def test_a_past_breaks_the_law_that_it_tells_of_and_no_other(law: str) -> None:
    with at_rest(replace(PLAN, setup=SETUPS.get(law, PLAN.setup))) as run:
        PASTS[law](run)
        assert {each.invariant for each in run.judge.violations} == {law}


def test_every_law_of_the_judge_has_a_past_that_breaks_it_alone() -> None:
    broken_alone = {*PASTS, *(broken[0] for _, broken in CASES.values() if len(broken) == 1)}
    laws: set[str] = set()
    for module in (invariants, guard_laws, retry_law, estimate_law, capacity_law, priority_law):
        assert module.__file__ is not None
        text = Path(module.__file__).read_text(encoding="utf-8")
        laws |= set(re.findall(r'\b_?add\(\s*"([^"{]+)",', text))
        for pair in re.findall(r'law = "([^"]+)" if .* else "([^"]+)"', text):
            laws |= set(pair)
    assert len(laws) > 15
    assert laws - broken_alone == set()


def write_lease(run: Run, holder: str, *, by: str) -> None:
    """Let somebody give the Lease a holder: a process, or "" for nobody in particular."""
    lease = run.model.get("Lease", *LEASE)
    assert lease is not None
    before = orjson.dumps(lease)
    lease["spec"]["holderIdentity"] = holder
    request = Request(method="PUT", path="/lease", query={}, body=b"{}", user="")
    write = Write(0, 9, START, "", "Lease", LEASE, "", before, orjson.dumps(lease), None, "", b"")
    run.model.put(lease)
    run.judge._on_lease(write, Sent(1, by, run.simulation.now, "PUT leases", request) if by else None)


@pytest.mark.parametrize(
    ("by", "new_holder", "later", "broken"),
    [
        ("another", "another", 1.0, True),
        ("another", "", 1.0, True),
        ("another", "another", 15.5, False),
        ("the holder", "", 1.0, False),
    ],
    ids=["taken", "released", "taken when it has expired", "released by its holder"],
)
def test_the_lease_of_another_is_neither_taken_nor_released_before_it_has_expired(
    by: str, new_holder: str, later: float, broken: bool
) -> None:
    with at_rest() as run:
        identity = leader(run).identity
        run.simulation.now = run.judge._renewed[identity] + later
        write_lease(run, new_holder, by=identity if by == "the holder" else by)
        assert [each.invariant for each in run.judge.violations] == ["fenced"] * broken


@pytest.mark.parametrize("is_restored", [True, False], ids=["restored", "written again"])
def test_a_record_of_the_lease_that_comes_back_is_not_renewed_by_that(*, is_restored: bool) -> None:
    with at_rest() as run:
        identity, backup = leader(run).identity, run.model.backup()
        run.simulation.now = run.judge._renewed[identity] + 15.5
        write_lease(run, "", by="")
        if is_restored:
            run.model.restore(backup)
        else:
            write_lease(run, identity, by="")
        write_lease(run, "another", by="another")
        assert not run.judge.violations
