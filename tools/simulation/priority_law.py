"""The law ``by priority``: with the gate PriorityBasedScheduling, no binding is taken from the queue before one of higher priority.

It is judged whenever a process takes a key, by the priorities that the bindings in its cache have then: those of the newest
versions that it knows, which have added the keys to the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.core.requeue_rules import is_claimed_and_assigned

if TYPE_CHECKING:
    from tools.simulation.process import SchedulerProcess
    from tools.simulation.setup import Setup


class PriorityLaw:
    """Judges the queues of all processes of a run."""

    def __init__(self, setup: Setup, add: Callable[[str, str], None]) -> None:
        """Record violations by ``add``. A plugin that orders the queue has an order of its own."""
        self._setup = setup
        self._add = add

    def watch(self, process: SchedulerProcess) -> None:
        """Judge each key that a process takes from now on."""
        assert process.application is not None
        state = process.application.state
        queue: Any = state.queue
        if not isinstance(queue, PrioritySchedulingQueue) or self._setup.sorts_queue:
            return
        take = queue.pop

        def priority_of(key: BindingKey) -> int | None:
            """Return the priority of a binding whose changes are added to the queue."""
            binding = state.bindings.get(key)
            if binding is None or not is_claimed_and_assigned(binding, self._setup.names):
                return None
            return binding.spec.priority

        def pop() -> tuple[BindingKey, float] | None:
            taken = take()
            mine = None if taken is None else priority_of(taken[0])
            if taken is not None and mine is not None:
                for key in queue._items:
                    other = priority_of(key)
                    if other is not None and other > mine:
                        text = f"takes {taken[0].display}, priority {mine}, before {key.display}, priority {other}"
                        self._add("by priority", f"{process.name} {text}")
            return taken

        queue.pop = pop  # type: ignore[method-assign]
