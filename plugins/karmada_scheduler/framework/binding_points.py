"""The extension points before a decision (QueueSort, PreEnqueue) and after it (Reserve to PostBind).

Reserve, Permit, PreBind, Bind and PostBind run after a decision that changes the binding. If one of them fails, Unreserve
runs for all plugins in reverse order; the binding keeps its placement, is reported as Unschedulable (a refusal) or
SchedulerError (an error), and is tried again. If no cluster fits, the placement is cleared and none of them runs.

Permit, PreBind, Bind and PostBind are coroutine functions. Other bindings are scheduled and written while they wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.guard_point import EvictionTask
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.workload import WorkloadAccess, problem_in, workload_in
from karmada_scheduler.structs import Struct, field

MAX_PERMIT_SECONDS = 15 * 60.0
"""The longest wait at Permit."""


class QueuedBinding(Struct, frozen=True):
    """A binding in the queue.

    Attributes:
        priority: The ``spec.schedulePriority.priority`` of the binding.
        since: When it was enqueued, in seconds of a monotonic clock.
        binding: The binding as it was when it was enqueued; None if it is unknown.
    """

    key: BindingKey
    priority: int
    since: float
    binding: Binding | None = None

    @property
    def default_rank(self) -> tuple[int, float]:
        """The key of the default order: higher priorities first, then first in, first out."""
        return -self.priority, self.since


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the queue; the process has one QueueSort plugin.

    A plugin is one object per profile. Of several profiles, that with the scheduler name that comes first in alphabetical order has
    the object that sorts, for the bindings of all of them; ``handle.profile`` is then that name. ``observe`` tells the objects of all
    profiles the same.

    PrioritySort is the default, and is used with the feature gate PriorityBasedScheduling; without the gate the queue is
    first in, first out. Any other QueueSort plugin is used with or without the gate.
    """

    def less(self, a: QueuedBinding, b: QueuedBinding, /) -> bool:
        """Return whether ``a`` goes before ``b``: a strict order. An exception counts as False.

        While the plugin is not called because of a timeout, the default order is used.
        """


@runtime_checkable
class SortKeyPlugin(QueueSortPlugin, Protocol):
    """A QueueSort plugin whose order is that of a key, as ``sorted(key=...)`` has it.

    It is called once per queued binding, and ``less`` is not called. In a queue of 20,000, ``less`` is called some 20 times per
    binding.
    """

    def sort_key(self, queued: QueuedBinding, /) -> tuple[float, ...]:
        """Return numbers, none of them NaN; the binding with the lowest ones goes first, equal ones in the order of arrival.

        After an exception, a timeout or anything but numbers, ``QueuedBinding.default_rank`` is used for this binding. It should
        therefore begin as that does, if the plugin respects priorities.
        """


@runtime_checkable
class QueueGroupPlugin(QueueSortPlugin, Protocol):
    """A QueueSort plugin that takes the next binding from one of several groups, such as tenants.

    The order between groups may change at any time, the order within a group (``sort_key``, ``less``) must not.

    A plugin may have ``fallen_groups``, one set of groups all the time: those whose numbers may have fallen. Before a binding is
    taken, the queue reads the numbers of these groups again, and empties the set.
    """

    def queue_group(self, queued: QueuedBinding, /) -> str:
        """Return the group of a binding, as it is when the binding is queued. After a failure it is ""."""

    def queue_group_key(self, group: str, /) -> tuple[float, ...]:
        """Return numbers, none of them NaN, for a group with queued bindings; that with the lowest ones is the next.

        They are read again before a binding is taken from the group, and when one is queued. A group whose numbers fall meanwhile
        is noticed when the numbers of those before it have risen, or by ``fallen_groups``. After a failure the previous ones stay.

        The method may take a second argument with a default, the next binding of the group (``QueuedBinding``); with
        ``fallen_groups``, the numbers are read again whenever that is another one.
        """


class PreEnqueueContext(Struct, frozen=True):
    """A binding that is due to be scheduled.

    Attributes:
        workload_answer: As in ``Cycle``.
    """

    binding: Binding
    workload_answer: WorkloadAnswer | None = None

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
        """Return SUCCESS, or a refusal to gate the binding. Must be cheap.

        A gated binding keeps its placement, and nothing is written about it. The plugin is called for it again at its
        next event, after ``retry_after`` seconds, and every five minutes; ``handle.activate`` enqueues it without a
        call. An error does not gate the binding: it is reported as SchedulerError.
        """


class BindContext(Struct, WorkloadAccess, frozen=True):
    """A decision that is to be written; the same object from Reserve to PostBind.

    Attributes:
        binding: The binding as stored; ``binding.spec.clusters`` are its current clusters.
        targets: The clusters and replicas of the decision.
        cycle: The last attempt, with its cycle state. A decision is repeated on its own result until it is stable, so
            ``cycle.binding`` may be the result of an earlier pass.
        eviction_tasks: The graceful eviction tasks that Guard plugins add to the patch.
        annotations: The annotations that Guard plugins add to the patch; None removes one.
        patch: Writes the targets, the applied placement and these additions in one patch; for Bind only. Returns the binding as stored
            and raises the error of the API server.
        may_be_stored: For Unreserve, which then gets a copy of the context: whether the decision may be stored although it
            was not confirmed, because the answer of the API server was lost, or a Bind plugin failed. The next version
            of the binding tells.
    """

    binding: Binding
    targets: Sequence[TargetCluster]
    cycle: Cycle
    patch: Callable[[], Awaitable[Binding]]
    eviction_tasks: Sequence[EvictionTask] = ()
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    may_be_stored: bool = False


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Accounts for decisions that are not written yet."""

    def reserve(self, context: BindContext, /) -> Result:
        """Reserve what the targets need in addition to what the binding has. Runs right after the decision.

        Any other result than SUCCESS ends the attempt: a refusal as Unschedulable, an Error as SchedulerError.
        """

    def unreserve(self, context: BindContext, /) -> None:
        """Undo ``reserve``. Must be harmless if it is called twice, or without ``reserve``."""


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Approves or refuses a decision before it is written."""

    async def permit(self, context: BindContext, /) -> Result:
        """Approve (SUCCESS), refuse, or let the binding wait (``Result.wait(seconds)``).

        A refusal keeps the placement. Plugins allow or reject a waiting binding with ``handle.waiting``. It continues
        when all plugins that returned WAIT have allowed it. It is refused when the time of one of them is up (at most
        15 minutes), or when the binding or a target changes.
        """


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares the target clusters before the binding is written."""

    async def pre_bind(self, context: BindContext, /) -> Result:
        """Prepare. Any other result than SUCCESS and SKIP ends the attempt as SchedulerError."""


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Writes the decision; DefaultBinder writes one patch."""

    async def bind(self, context: BindContext, /) -> Result:
        """Write ``spec.clusters`` and the annotation (``await context.patch()``), or SKIP.

        The first plugin that does not return SKIP decides. A plugin that returns SUCCESS without ``context.patch`` must
        have written both; the scheduler then reads the binding and writes its status.
        """


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Runs after the write."""

    async def post_bind(self, context: BindContext, /) -> None:
        """Process the written decision. Exceptions are logged."""
