"""Gang: all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import BindingBuilder, FakeHandle, Run, binding, cluster, schedule, scheduling
from tests.docs.conftest import Example


@pytest.fixture
def handle() -> FakeHandle:
    return FakeHandle()


@pytest.fixture
def gang(example: Example, handle: FakeHandle) -> Framework:
    return example("gang", handle=handle)


def member(name: str, *, namespace: str = "default", gang: str = "training") -> BindingBuilder:
    return binding(name, namespace=namespace).workload(labels={"gang": gang}).replicas(1)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


async def go(builder: BindingBuilder, gang: Framework, handle: FakeHandle) -> Run:
    return await scheduling(builder, cluster("m1"), plugins=gang, handle=handle)


async def test_three_members_of_a_gang_are_placed_together(gang: Framework, handle: FakeHandle) -> None:
    first = [asyncio.create_task(go(member(name), gang, handle)) for name in ("a", "b")]
    await until(lambda: len(handle.waiting()) == 2)
    runs = [await go(member("c"), gang, handle), *await asyncio.gather(*first)]
    assert [run.placed for run in runs] == [{"m1": 1}] * 3
    assert handle.waiting() == ()


async def test_a_later_member_does_not_wait(gang: Framework, handle: FakeHandle) -> None:
    await test_three_members_of_a_gang_are_placed_together(gang, handle)
    assert (await go(member("d"), gang, handle)).placed == {"m1": 1}


def test_a_single_member_waits_until_its_timeout(gang: Framework, handle: FakeHandle) -> None:
    run = schedule(member("a"), cluster("m1"), plugins=gang, handle=handle)
    assert (
        run.condition.message
        == "refused at Permit by Gang: rejected due to timeout after waiting 60s at plugin Gang: 1 of 3 have a place"
    )
    assert "Gang.permit: Wait for 60s: 1 of 3 have a place" in str(run)


async def test_when_one_member_is_refused_the_others_are_rejected(
    gang: Framework, handle: FakeHandle
) -> None:
    waiting = [asyncio.create_task(go(member(name), gang, handle)) for name in ("a", "b")]
    await until(lambda: len(handle.waiting()) == 2)
    handle.waiting()[0].reject("Gang", "the first has no place any more")
    runs = await asyncio.gather(*waiting)
    assert [run.condition.message for run in runs] == [
        "refused at Permit by Gang: the first has no place any more",
        "refused at Permit by Gang: default/a-deployment of the same gang did not get its place",
    ]


async def test_other_gangs_and_namespaces_do_not_count(gang: Framework, handle: FakeHandle) -> None:
    others = [member("a"), member("b", namespace="other"), member("c", gang="serving")]
    tasks = [asyncio.create_task(go(each, gang, handle)) for each in others]
    await until(lambda: len(handle.waiting()) == 3)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_member_whose_write_failed_is_not_counted(gang: Framework, handle: FakeHandle) -> None:
    waiting = [asyncio.create_task(go(member(name), gang, handle)) for name in ("a", "b")]
    await until(lambda: len(handle.waiting()) == 2)
    broken = OSError("connection lost")
    failed = await scheduling(member("c"), cluster("m1"), plugins=gang, handle=handle, write_fails=broken)
    assert str(failed.error) == "connection lost"
    await asyncio.gather(*waiting)
    [plugin] = [each for each in gang.plugins.unique if each.name == "Gang"]
    assert plugin.allowed == set()  # type: ignore[attr-defined]
    assert (await go(member("c"), gang, handle)).placed == {"m1": 1}


def test_a_binding_without_the_label_is_not_delayed(gang: Framework, handle: FakeHandle) -> None:
    web = binding("web").workload().replicas(1)
    assert schedule(web, cluster("m1"), plugins=gang, handle=handle).placed == {"m1": 1}


def test_placed_members_count_after_a_restart(gang: Framework, handle: FakeHandle) -> None:
    for name in ("a", "b"):
        handle.put(member(name).on("m1").build())
        handle.put_workload(member(name).build().key, member(name).workload_answer.workload)
    assert schedule(member("c"), cluster("m1"), plugins=gang, handle=handle).placed == {"m1": 1}


def test_a_member_with_an_unknown_workload_is_not_placed(gang: Framework, handle: FakeHandle) -> None:
    lost = binding("a").without_workload("Deployment default/a was deleted").replicas(1)
    run = schedule(lost, cluster("m1"), plugins=gang, handle=handle)
    assert "Deployment default/a was deleted" in str(run.error)
    assert run.binding.spec.clusters == ()
