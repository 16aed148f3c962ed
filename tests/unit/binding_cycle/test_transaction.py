"""Binding transactions: what they write, what they undo, and what they return."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import NotLeadingError, TransactionResult, ending_of
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework import SUCCESS, BindContext, FitError, PluginError, Result
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster, decide, framework
from tests.unit.framework.plugins import coroutine, plugin

NO = Result.unschedulable("not today")
CONFLICT = ApiError("the object has been modified", code=409, reason="Conflict")


class FakeWriter:
    """Stores decisions in memory; ``written_by_plugin`` has the binding that a plugin wrote by itself."""

    def __init__(self) -> None:
        self.writes: list[Decision] = []
        self.failure: Exception | None = None
        self.changes_something = True
        self.is_leading = True
        self.written_by_plugin: Binding | None = None

    def ensure_leading(self) -> None:
        if not self.is_leading:
            raise NotLeadingError("not leading")

    async def write(self, binding: Binding, decision: Decision) -> TransactionResult:
        if self.failure is not None:
            raise self.failure
        if not self.changes_something:
            return TransactionResult(binding)
        self.writes.append(decision)
        stored = replace(binding, spec=replace(binding.spec, clusters=decision.targets or ()))
        return TransactionResult(stored, was_written=True)

    async def read_back(self, binding: Binding, decision: Decision) -> Binding | None:
        if self.failure is not None:
            raise self.failure
        return self.written_by_plugin


class TransactionHarness:
    """A decision about one binding, with a fake writer and a Reserve plugin that records its calls."""

    def __init__(self, *plugins: Any, names: str = "m1", changes_result: bool = True) -> None:
        self.calls: list[str] = []
        self.may_be_stored: list[bool] = []
        self.writer = FakeWriter()
        ledger = plugin("Ledger", reserve=self._reserve, unreserve=self._unreserve)
        builder = binding("web").names(names).duplicated()
        self.binding = builder.build()
        self.decision = decide(builder, cluster("m1"))
        self.transaction = BindingTransaction(
            self.binding,
            self.decision,
            plugins=framework(ledger, *plugins).binding,
            writer=self.writer,
            changes_result=changes_result,
        )

    def _reserve(self, _: BindContext) -> Result:
        self.calls.append("reserve")
        return SUCCESS

    def _unreserve(self, context: BindContext) -> None:
        self.calls.append("unreserve")
        self.may_be_stored.append(context.may_be_stored)

    async def wait(self, waits: Mapping[str, Result]) -> Result:
        raise AbandonedError("outdated", reschedule=True)

    async def run(self) -> TransactionResult:
        self.transaction.reserve()
        return await self.transaction.run(self.wait)


@pytest.fixture
def without_collections() -> Iterator[None]:
    """Only reference counts free objects."""
    gc.disable()
    yield
    gc.enable()


async def test_a_result_that_was_written_is_returned_as_written_and_stays_reserved() -> None:
    harness = TransactionHarness()
    result = await harness.run()
    assert (result.was_written, result.error) == (True, None)
    assert [each.name for each in result.stored.spec.clusters] == ["m1"]
    assert harness.calls == ["reserve"]


async def test_a_patch_without_a_change_succeeds_and_counts_as_not_written() -> None:
    harness = TransactionHarness()
    harness.writer.changes_something = False
    assert await harness.run() == TransactionResult(harness.binding, was_written=False)
    assert harness.calls == ["reserve"]


async def test_after_a_refused_reserve_nothing_is_planned_and_only_the_refusal_is_returned() -> None:
    harness = TransactionHarness(plugin("P", reserve=lambda _: NO, unreserve=lambda _: None))
    assert not harness.transaction.reserve()
    assert harness.transaction.targets is None
    result = await harness.transaction.run(harness.wait)
    assert (str(result.error), result.was_written) == ("refused at Reserve by P: not today", False)
    assert harness.writer.writes == []
    assert harness.calls == ["reserve", "unreserve"]


@pytest.mark.parametrize(
    "failure", [CONFLICT, NotLeadingError("not leading")], ids=["refused", "not leading"]
)
async def test_a_failed_write_is_undone_and_returned(failure: Exception) -> None:
    harness = TransactionHarness()
    harness.writer.failure = failure
    assert await harness.run() == TransactionResult(harness.binding, error=failure)
    assert harness.calls == ["reserve", "unreserve"]


@pytest.mark.parametrize(
    ("failure", "plugins", "may_be_stored"),
    [
        pytest.param(CONFLICT, (), False, id="refused"),
        pytest.param(ApiError("no answer"), (), True, id="no-answer"),
        pytest.param(NotLeadingError("not leading"), (), False, id="not-sent"),
        pytest.param(AbandonedError("m1 was deleted", reschedule=True), (), False, id="abandoned"),
        pytest.param(ZeroDivisionError("a bug"), (), True, id="a-bug"),
        pytest.param(None, (plugin("P", permit=coroutine(NO)),), False, id="before-the-write"),
        pytest.param(None, (plugin("B", bind=coroutine(SUCCESS)),), False, id="a-plugin-did-not-write"),
        pytest.param(
            ApiError("no answer"),
            (plugin("B", bind=coroutine(SUCCESS)),),
            True,
            id="what-a-plugin-wrote-is-unknown",
        ),
    ],
)
async def test_unreserve_says_whether_the_decision_may_be_stored(
    failure: Exception | None, plugins: tuple[Any, ...], may_be_stored: bool
) -> None:
    harness = TransactionHarness(*plugins)
    harness.writer.failure = failure
    with contextlib.suppress(ZeroDivisionError):
        await harness.run()
    assert harness.may_be_stored == [may_be_stored]


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_transaction_that_ended_is_in_no_reference_cycle(
    is_refused: bool, without_collections: None
) -> None:
    harness = TransactionHarness()
    harness.writer.failure = ApiError("conflict", code=409, reason="Conflict") if is_refused else None
    await harness.run()
    harness.writer.failure = None  # its traceback has a frame of the fake writer
    ended = weakref.ref(harness.transaction)
    del harness.transaction
    assert ended() is None


async def test_a_decision_that_is_outdated_after_permit_is_undone_and_returned() -> None:
    harness = TransactionHarness(plugin("P", permit=coroutine(Result.wait(60))))
    result = await harness.run()
    assert isinstance(result.error, AbandonedError)
    assert harness.calls == ["reserve", "unreserve"]


async def test_an_unexpected_error_is_undone_and_raised() -> None:
    harness = TransactionHarness()
    harness.writer.failure = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        await harness.run()
    assert harness.calls == ["reserve", "unreserve"]


async def test_a_plugin_that_writes_by_itself_has_written_the_result() -> None:
    harness = TransactionHarness(plugin("B", bind=coroutine(SUCCESS)))
    harness.writer.written_by_plugin = harness.binding
    assert await harness.run() == TransactionResult(harness.binding, was_written=True)
    assert harness.writer.writes == []


async def test_success_of_a_bind_plugin_without_a_write_is_an_error() -> None:
    harness = TransactionHarness(plugin("B", bind=coroutine(SUCCESS)))
    result = await harness.run()
    assert isinstance(result.error, PluginError)
    assert harness.calls == ["reserve", "unreserve"]


async def test_a_plugin_that_fails_after_the_write_changes_nothing() -> None:
    async def bind(context: BindContext) -> Result:
        await context.patch()
        raise RuntimeError("too late")

    harness = TransactionHarness(plugin("B", bind=bind))
    result = await harness.run()
    assert (result.was_written, result.error) == (True, None)
    assert harness.calls == ["reserve"]


async def test_a_cancellation_after_the_write_is_raised() -> None:
    async def bind(context: BindContext) -> Result:
        await context.patch()
        written.set()
        await asyncio.Event().wait()
        return SUCCESS

    written = asyncio.Event()
    harness = TransactionHarness(plugin("B", bind=bind))
    attempt = asyncio.create_task(harness.run())
    await written.wait()
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert harness.may_be_stored == [True]


async def test_no_plugin_writes_after_the_process_stopped_leading() -> None:
    harness = TransactionHarness()
    harness.writer.is_leading = False
    result = await harness.run()
    assert isinstance(result.error, NotLeadingError)
    assert harness.may_be_stored == [False]


def test_plugins_do_not_run_for_a_decision_that_changes_only_the_status() -> None:
    assert not TransactionHarness(changes_result=False).transaction.runs_plugins


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (AbandonedError("outdated", reschedule=True), "abandoned"),
        (NotLeadingError("not leading"), "not leading"),
        (PluginError("no"), "refused"),
        (CONFLICT, "conflict"),
        (ApiError("no answer"), "not written"),
        (ZeroDivisionError("a bug"), "failed"),
    ],
)
def test_records_name_the_way_in_which_a_transaction_failed(error: Exception, name: str) -> None:
    assert ending_of(error) == name


async def test_a_decision_that_no_cluster_fits_is_written_without_plugins() -> None:
    harness = TransactionHarness(plugin("P", permit=coroutine(NO)), names="nowhere")
    assert isinstance(harness.decision.error, FitError)
    assert not harness.transaction.runs_plugins
    result = await harness.run()
    assert (result.was_written, result.stored.spec.clusters) == (True, ())
    assert harness.calls == []
