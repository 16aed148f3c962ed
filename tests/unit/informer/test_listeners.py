"""What ends the wait of a binding at Permit, and which failures enqueue it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karmada_pyscheduler.informer.requeue import PermitListener, on_failure_of_another, only_assigned
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError, WaitingBindings
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import cluster
from tests import manifests

BINDING = Binding.from_manifest(manifests.binding())
CLUSTER = cluster("m1").build()


async def ended(event: str) -> str:
    """Return why the wait of a binding for m1 ends by an event, "" if it does not."""
    waiting = WaitingBindings()
    listener = PermitListener(waiting, ["ours"])
    task = asyncio.create_task(waiting.wait(BINDING, frozenset({"m1"}), {"P": 60}))
    await asyncio.sleep(0)
    match event:
        case "it-is-deleted":
            listener.binding_changed(BINDING, None)
        case "it-changes":
            listener.binding_changed(BINDING, replace(BINDING, generation=9))
        case "it-is-another-scheduler's":
            other = replace(BINDING, spec=replace(BINDING.spec, scheduler_name="other"))
            listener.binding_changed(BINDING, other)
        case "its-status-changes":
            listener.binding_changed(BINDING, replace(BINDING, resource_version="9"))
        case "its-cluster-is-being-deleted":
            listener.cluster_changed(CLUSTER, replace(CLUSTER, deleting=True))
        case "its-cluster-is-gone":
            listener.cluster_changed(CLUSTER, None)
        case "its-cluster-changes":
            listener.cluster_changed(CLUSTER, replace(CLUSTER, generation=9))
        case "another-cluster-is-gone":
            listener.cluster_changed(replace(CLUSTER, name="m2"), None)
        case "nothing":
            listener.binding_changed(None, None)
            listener.cluster_changed(None, None)
    await asyncio.sleep(0)
    for each in waiting.all():
        each.allow("P")
    try:
        await task
    except AbandonedError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ("it-is-deleted", "deleted"),
        ("it-changes", "changed"),
        ("it-is-another-scheduler's", "handed over"),
        ("its-status-changes", ""),
        ("its-cluster-is-being-deleted", "m1"),
        ("its-cluster-is-gone", "m1"),
        ("its-cluster-changes", ""),
        ("another-cluster-is-gone", ""),
        ("nothing", ""),
    ],
)
async def test_a_wait_ends_when_its_decision_is_out_of_date(event: str, why: str) -> None:
    found = await ended(event)
    assert why in found
    assert bool(found) == bool(why)


@pytest.mark.parametrize("kind", ["ours", "another's", "unclaimed", "deleted"])
def test_for_a_listener_of_our_bindings_all_others_are_deleted(kind: str) -> None:
    ours = replace(BINDING, spec=replace(BINDING.spec, scheduler_name="ours"))
    new: Binding | None = None
    match kind:
        case "ours":
            new = ours
        case "another's":
            new = replace(BINDING, spec=replace(BINDING.spec, scheduler_name="other"))
        case "unclaimed":
            new = replace(ours, labels={})
    seen: list[object] = []
    only_assigned(lambda old, new: seen.extend((old, new)), ["ours"])(ours, new)
    assert seen == [ours, new if kind == "ours" else None]


FAILURE = {"type": "Scheduled", "status": "False", "reason": "SchedulerError", "message": "late"}


def with_condition(condition: dict[str, Any]) -> Binding:
    status = replace(BINDING.status, conditions=(condition,) if condition else ())
    return replace(BINDING, status=status, spec=replace(BINDING.spec, priority=7))


@pytest.mark.parametrize(
    ("before", "after", "is_enqueued"),
    [
        pytest.param({}, FAILURE, True, id="a-first-failure"),
        pytest.param({**FAILURE, "status": "True"}, FAILURE, True, id="after-a-success"),
        pytest.param({**FAILURE, "message": "before"}, FAILURE, True, id="another-failure"),
        pytest.param(FAILURE, FAILURE, False, id="the-same-failure"),
        pytest.param(FAILURE, {**FAILURE, "status": "True"}, False, id="a-success"),
        pytest.param(FAILURE, {}, False, id="none-any-more"),
        pytest.param({}, {**FAILURE, "type": "FullyApplied"}, False, id="another-condition"),
    ],
)
@pytest.mark.parametrize("is_own", [False, True])
def test_a_failure_that_another_process_reports_enqueues_the_binding(
    before: dict[str, Any], after: dict[str, Any], *, is_enqueued: bool, is_own: bool
) -> None:
    enqueued: list[tuple[object, int]] = []
    listen = on_failure_of_another(lambda *added: enqueued.append(added), lambda _: is_own)
    listen(with_condition(before), with_condition(after))
    assert enqueued == [(BINDING.key, 7)] * (is_enqueued and not is_own)


def test_a_failure_of_a_new_or_deleted_binding_is_its_own_event() -> None:
    listen = on_failure_of_another(lambda *_: pytest.fail("enqueued"), lambda _: False)
    failed = with_condition(FAILURE)
    listen(None, failed)
    listen(failed, None)
    listen(replace(BINDING, uid="another"), failed)
