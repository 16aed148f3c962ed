"""The extension points around a decision: QueueSort and PreEnqueue before it, Reserve to PostBind after it.

A decision that succeeded and changes something goes through Reserve, Permit, PreBind, Bind, PostBind. A
failure at any of them runs Unreserve of all plugins in reverse order; the binding keeps its placement, is
reported as Unschedulable (a refusal) or SchedulerError (an error), and is tried again. A decision that no
cluster fits clears the placement and passes by all of these points.

Permit, PreBind, Bind and PostBind are coroutines: they may talk to the network, and other bindings are
decided and written meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.scheduling_points import Plugin
from karmada_scheduler.framework.workload import SeesWorkload, problem_in, workload_in

MAX_PERMIT_SECONDS = 15 * 60.0
"""No binding waits for longer at Permit, whatever a plugin asks for."""


@dataclass(frozen=True, slots=True)
class QueuedBinding:
    """A binding that waits to be decided.

    Attributes:
        priority: Its ``spec.schedulePriority.priority``.
        since: When it became due, in seconds of a clock that only grows.
        binding: As it was when it was queued; None if it is not known any more.
    """

    key: BindingKey
    priority: int
    since: float
    binding: Binding | None = None

    @property
    def default_rank(self) -> tuple[int, float]:
        """Its place in the default order: higher priorities first, among equals what came first."""
        return -self.priority, self.since


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the queue; one for the whole process.

    PrioritySort is the default, and in force under the gate PriorityBasedScheduling; without the gate the queue
    is first in, first out. Any other QueueSort plugin is in force with or without the gate.
    """

    def less(self, a: QueuedBinding, b: QueuedBinding, /) -> bool:
        """Tell whether ``a`` goes before ``b``. Must be a strict order; what raises counts as False.

        While the plugin is not called because it took too long, the default order holds.
        """
        ...


@dataclass(frozen=True, slots=True)
class PreEnqueueContext:
    """A binding that is about to enter the queue.

    Attributes:
        workload_answer: As in ``Cycle``.
    """

    binding: Binding
    workload_answer: WorkloadAnswer | None = field(default=None, repr=False)

    @property
    def workload(self) -> Workload | None:
        """As ``Cycle.workload``."""
        return workload_in(self.workload_answer)

    @property
    def workload_problem(self) -> str:
        """As ``Cycle.workload_problem``."""
        return problem_in(self.workload_answer)


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Keeps bindings out of the queue until they are ready."""

    def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
        """Let a binding in (SUCCESS), or park it; must be cheap.

        A parked binding keeps its placement and nothing is written about it. A plugin that fails does not park: that is
        told as a SchedulerError. It is asked about again at
        its next event, after ``retry_after`` seconds, and every five minutes; ``handle.activate`` lets it in
        without asking.
        """
        ...


@dataclass(frozen=True, slots=True)
class BindContext(SeesWorkload):
    """A decision on its way to the API server; the same object for Reserve to PostBind.

    Attributes:
        binding: The binding as it is now; ``binding.spec.clusters`` is where it is.
        targets: Where it is to be.
        cycle: The attempt that succeeded, with its notes. A decision is repeated on its own result until it
            settles, so ``cycle.binding`` may be the binding as an earlier pass left it in thought.
        patch: Writes the targets and the applied placement as one patch, at Bind only. Returns the binding
            as stored and raises what the API server answers.
    """

    binding: Binding
    targets: Sequence[TargetCluster]
    cycle: Cycle
    patch: Callable[[], Awaitable[Binding]] = field(repr=False)


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Keeps books of what was promised to bindings that are not written yet."""

    def reserve(self, context: BindContext, /) -> Result:
        """Claim what the targets need beyond what the binding has. Runs right after the decision.

        What is not SUCCESS ends the attempt: a refusal as Unschedulable, an Error as SchedulerError.
        """
        ...

    def unreserve(self, context: BindContext, /) -> None:
        """Give the claim back. Must do no harm when called twice, or without ``reserve``."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """The last word before anything is written; sees the replicas of every cluster."""

    async def permit(self, context: BindContext, /) -> Result:
        """Approve (SUCCESS), refuse, or let the binding wait (``Result.wait(seconds)``).

        A refusal keeps the placement. While a binding waits, anybody may allow or reject it through
        ``handle.waiting``; it goes on when all plugins that made it wait have allowed it, and is refused
        when the time of one is up (at most 15 minutes), or when the binding or a target changes.
        """
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares what the targets need before the binding is written."""

    async def pre_bind(self, context: BindContext, /) -> Result:
        """Prepare. Plugins run in order; what is not SUCCESS or SKIP ends the attempt as SchedulerError."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Writes the decision; DefaultBinder does it with one patch."""

    async def bind(self, context: BindContext, /) -> Result:
        """Write ``spec.clusters`` and the annotation (``await context.patch()``), or SKIP.

        The first plugin that does not SKIP decides. One that returns SUCCESS without ``context.patch``
        must have written both by itself; the scheduler reads the binding again and goes on with the status.
        """
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Is told what was written."""

    async def post_bind(self, context: BindContext, /) -> None:
        """Take note. What it raises is logged and changes nothing."""
        ...
