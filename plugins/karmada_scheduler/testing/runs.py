"""Runs a binding through all plugins, from PreFilter to PostBind, without a control plane.

    run = schedule(binding("web").replicas(4).dynamic_weight(), cluster("m1"), cluster("m2"), plugins=[Ledger()])
    assert run.placed == {"m1": 2, "m2": 2}
    assert run.methods_of("Ledger") == ["reserve"]

``print(run)`` prints a trace of the run. Writes stay in memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypedDict, TypeVar, Unpack

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.binding_cycle.result import TransactionResult
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core import condition
from karmada_scheduler.core.condition import ConditionSpec
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.dryrun.result import as_written
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Plugin, PluginError, Result, WaitingBinding
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.circuit_breaker import CircuitBreakers
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.waiting_bindings import timeout_message
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import trace
from karmada_scheduler.testing.bindings import BindingBuilder
from karmada_scheduler.testing.clusters import ClusterBuilder
from karmada_scheduler.testing.decisions import snapshot
from karmada_scheduler.testing.handles import FakeHandle
from karmada_scheduler.testing.setups import framework
from karmada_scheduler.testing.trace import Call, Step
from karmada_scheduler_plugins.registry import in_tree

Context = TypeVar("Context")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Run:
    """The result of scheduling a binding.

    Attributes:
        decision: The decision, with its attempts.
        binding: The binding as stored afterwards.
        error: Why it was not placed; None if it was.
        calls: The calls of plugins, in order, each with its attempt.
    """

    decision: Decision
    binding: Binding
    error: Exception | None
    calls: Sequence[Call] = field(repr=False)

    @property
    def steps(self) -> list[Step]:
        """The calls of plugins, in order."""
        return [call.step for call in self.calls]

    @property
    def placed(self) -> dict[str, int]:
        """Replicas by cluster, in the order in which they are written; fails the test if it was not placed."""
        assert self.error is None, f"not placed: {self.error}"
        return {target.name: target.replicas for target in self.binding.spec.clusters}

    @property
    def condition(self) -> ConditionSpec:
        """The Scheduled condition as users read it: status, reason, message."""
        return condition.condition_of(replace(self.decision, error=self.error))

    @property
    def retry_after(self) -> float:
        """Seconds after which a plugin requests another attempt; 0 if none does."""
        return float(getattr(self.error, "retry_after", 0.0)) or self.decision.retry_after

    @property
    def refused(self) -> dict[str, str]:
        """The clusters that did not pass the filters, with the reason."""
        results = self._attempt.diagnosis.result_by_cluster
        return {name: result.message for name, result in results.items()}

    @property
    def scores(self) -> dict[str, dict[str, int]]:
        """Final scores times weight, by plugin and cluster."""
        return trace.scores_of(self._attempt)

    def methods_of(self, plugin: str) -> list[str]:
        """Return the methods of a plugin that were called, in order."""
        return [step.method for step in self.steps if step.plugin == plugin]

    @property
    def _attempt(self) -> TermAttempt:
        return self.decision.attempts[-1] if self.decision.attempts else TermAttempt()

    def __str__(self) -> str:
        return "\n".join(trace.lines(self.binding, self.error, self.decision, self.calls))


class Circumstances(TypedDict, total=False):
    """Options of ``schedule`` and ``scheduling``.

    Attributes:
        plugins: Objects or classes that follow the in-tree plugins, or a framework from ``framework`` or ``profiles``.
            They have the scheduler's timeout, unless the framework has another.
        handle: The handle of the plugins; classes among ``plugins`` are made with it.
        gates: Feature gates.
        in_flight: Bindings that are decided and not yet written, for PreFilter extensions. ``handle`` has
            their stored version.
        write_fails: The error of the API server's response to the write.
        reconsiders: Whether to try what a Reconsider plugin proposes, instead of what an event requires;
            ``run.decision.reconsidered`` has what became of it.
    """

    plugins: Framework | Sequence[Plugin | type[Plugin]]
    handle: FakeHandle
    gates: FeatureGates
    in_flight: Sequence[BindingBuilder]
    write_fails: Exception
    reconsiders: bool


def schedule(
    binding: BindingBuilder,
    *clusters: ClusterBuilder,
    when_waiting: Callable[[WaitingBinding], None] | None = None,
    **circumstances: Unpack[Circumstances],
) -> Run:
    """Run a binding through all plugins.

    Args:
        binding: The binding to schedule.
        clusters: The clusters of the control plane.
        when_waiting: Called when the binding waits at Permit; may allow or reject it. If it does neither,
            the wait times out at once.
        circumstances: See ``Circumstances``.
    """

    def then(waiting: WaitingBinding, waits: Mapping[str, Result]) -> None:
        if when_waiting is not None:
            when_waiting(waiting)
        plugin, first = min(waits.items(), key=lambda item: item[1].timeout)
        waiting.reject(plugin, timeout_message(plugin, first.timeout, first.message))

    return asyncio.run(_run(binding, clusters, then, circumstances))


async def scheduling(
    binding: BindingBuilder, *clusters: ClusterBuilder, **circumstances: Unpack[Circumstances]
) -> Run:
    """Do what ``schedule`` does, in a coroutine: several bindings can wait at Permit at the same time.

    A waiting binding is allowed or rejected through ``handle.waiting``; its timeout is a real time.
    """
    return await _run(binding, clusters, lambda _waiting, _waits: None, circumstances)


async def _run(
    builder: BindingBuilder,
    clusters: Sequence[ClusterBuilder],
    then: Callable[[WaitingBinding, Mapping[str, Result]], None],
    circumstances: Circumstances,
) -> Run:
    binding, handle = builder.build(), circumstances.get("handle") or FakeHandle()
    gates = circumstances.get("gates") or FeatureGates()
    plugins = circumstances.get("plugins") or ()
    given = plugins if isinstance(plugins, Framework) else framework(*plugins, gates=gates, handle=handle)
    recorder = _Recorder(given.caller, exempt=in_tree(gates))
    recorded = Framework(given.plugins, extenders=given.extenders, caller=recorder)
    handle.show(snapshot(*clusters))
    handle.put(binding)
    handle.declare_workload(needed=recorded.needs_workload)
    handle.put_workload(binding.key, builder.workload_answer.workload)
    for peer in circumstances.get("in_flight", ()):
        if (workload := peer.workload_answer.workload) is not None:
            handle.put_workload(peer.build().key, workload)
    algorithm = SchedulingAlgorithm(
        gates, [GeneralEstimator(gates)], stored=handle.binding, stored_workload=handle.workload
    )
    decision = await algorithm.decide(
        binding,
        handle.clusters,
        recorded,
        in_flight=[peer.build() for peer in circumstances.get("in_flight", ())],
        workload=builder.workload_answer,
        proposed=recorded.reconsider.propose(binding) if circumstances.get("reconsiders") else None,
    )
    stored = as_written(binding, decision, datetime.fromtimestamp(handle.now(), UTC))
    transaction = BindingTransaction(
        binding,
        decision,
        plugins=recorded.binding,
        writer=_Writer(handle, stored, circumstances.get("write_fails")),
        changes_result=(stored.spec, stored.annotations) != (binding.spec, binding.annotations),
    )
    if not transaction.runs_plugins:
        handle.put(stored)
        return Run(decision, stored, decision.error, recorder.calls)

    async def wait(waits: Mapping[str, Result]) -> Result:
        return await handle.wait(
            binding,
            {plugin: result.timeout for plugin, result in waits.items()},
            lambda waiting: then(waiting, waits),
            {plugin: result.message for plugin, result in waits.items()},
        )

    transaction.reserve()
    try:
        result = await transaction.run(wait)
    except Exception as error:  # noqa: BLE001 (a test may let the write fail with any exception)
        return Run(decision, binding, error, recorder.calls)
    return Run(decision, result.stored, result.error or decision.error, recorder.calls)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Stores bindings in a handle."""

    handle: FakeHandle
    stored: Binding
    failure: Exception | None

    def ensure_leading(self) -> None:
        """Do nothing."""

    async def write(self, _binding: Binding, _decision: Decision) -> TransactionResult:
        """Store the binding, or raise the error that the test set."""
        if self.failure is not None:
            raise self.failure
        self.handle.put(self.stored)
        return TransactionResult(self.stored, was_written=True)

    async def read_back(self, binding: Binding, _decision: Decision) -> Binding:
        """Return the binding as it was: a plugin that writes by itself writes elsewhere."""
        return binding


class _Recorder(PluginCaller):
    """Calls plugins as the scheduler does, and records their results."""

    def __init__(self, caller: PluginCaller, *, exempt: Collection[str]) -> None:
        """Take the timeouts of a caller, and the plugins that are called after a timeout as well."""
        super().__init__(
            timeout=caller.timeout,
            coroutine_seconds=caller.coroutine_seconds,
            breakers=CircuitBreakers(clock=time.monotonic, exempt=exempt),
            interrupts=caller.interrupts,
        )
        self.calls: list[Call] = []

    def call(
        self, plugin: Plugin, point: Point, function: Callable[[Context], Answer], context: Context
    ) -> Answer:
        try:
            answer = super().call(plugin, point, function, context)
        except PluginError as error:
            self._keep(plugin, function, context, error)
            raise
        self._keep(plugin, function, context, answer)
        return answer

    async def call_async(
        self, plugin: Plugin, point: Point, function: Callable[[Context], object], context: Context
    ) -> object:
        try:
            answer = await super().call_async(plugin, point, function, context)
        except PluginError as error:
            self._keep(plugin, function, context, error)
            raise
        self._keep(plugin, function, context, answer)
        return answer

    def _keep(self, plugin: Plugin, function: Callable[..., object], context: object, answer: object) -> None:
        step = Step(plugin.name, getattr(function, "__name__", repr(function)), answer)
        self.calls.append(Call(step, getattr(context, "cycle", None)))
