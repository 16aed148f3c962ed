"""One run: the scheduler as it is, in virtual time, with the jobs of a seed and the rules of a row."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final

from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from tools.apiserver_model import ApiServerModel
from tools.contention.jobs import FIRST_HIGH, jobs
from tools.contention.members import Figures, Members
from tools.simulation.environment import START
from tools.simulation.faults import Faults
from tools.simulation.front_ends import FrontEnds
from tools.simulation.network import Network
from tools.simulation.plan import Plan
from tools.simulation.plugin_kit import Scene
from tools.simulation.process import SchedulerProcess
from tools.simulation.setup import Setup
from tools.simulation.simulation import Simulation

_GATES: Final = {"PriorityBasedScheduling": True, "SchedulingOvercommitProtection": True}
_SEEN_SECONDS: Final = 0.1
"""So long after a report the scheduler knows it."""


_ATTEMPTS: Final = "karmada_scheduler_schedule_attempts_total"


@dataclass(frozen=True, slots=True)
class Rules:
    """How jobs wait.

    Attributes:
        name: Of the row.
        setup: Fields of ``Plan.setup`` besides the gates.
        wakes: Whether each report of more capacity enqueues all that wait, in the order of their ranks.
    """

    name: str
    setup: Mapping[str, Any]
    wakes: bool = False


ROWS: Final = (
    Rules("karmada-scheduler's rules", {}),
    Rules("the same, all tried again at each report", {}, wakes=True),
    Rules("StrictPriority", {"strict_priority": {}}),
)


@dataclass(frozen=True, slots=True)
class Result:
    """Figures, and how many decisions they took."""

    figures: Figures
    decisions: int


def run(rules: Rules, seed: int, seconds: float) -> Result:
    """Run the fleet for so many seconds of virtual time."""
    simulation = Simulation(Random(f"{seed}:order"))
    numbers = count(1)
    model = ApiServerModel(
        now=lambda: START + timedelta(seconds=simulation.now), new_uid=lambda: f"uid-{next(numbers)}"
    )
    setup = Setup(Plan(seed=str(seed), setup={"gates": _GATES, **rules.setup}))
    faults = Faults((), seed=str(seed))
    network = Network(simulation, model, faults, Random(f"{seed}:network"), FrontEnds(simulation, model, 0))
    members = Members(simulation, model, counted_from=FIRST_HIGH)
    process = SchedulerProcess(
        simulation,
        network,
        index=0,
        start=0,
        options=setup.options(0),
        seed=str(seed),
        scene=Scene(0, faults, simulation.clock),
        on_built=lambda _: None,
        on_end=_ended,
    )
    simulation.processes = [process]
    if rules.wakes:
        members.on_capacity = lambda: simulation.after(_SEEN_SECONDS, lambda: _wake(process))
    for job in jobs(seed, seconds):
        simulation.at(job.created, partial(members.create, job))
    with _quiet():
        try:
            simulation.run(seconds)
            return Result(members.finish(), _decisions(process))
        finally:
            process.dispose()
            setup.close()


def _queue(process: SchedulerProcess) -> PrioritySchedulingQueue[Any]:
    assert process.application is not None
    queue = process.application.state.queue
    assert isinstance(queue, PrioritySchedulingQueue)
    return queue


def _decisions(process: SchedulerProcess) -> int:
    assert process.application is not None
    families = process.application.state.metrics.registry.collect()
    samples = (sample for family in families for sample in family.samples)
    return int(sum(sample.value for sample in samples if sample.name == _ATTEMPTS))


def _wake(process: SchedulerProcess) -> None:
    """Move all keys that wait to active; the queue takes them by priority, and equal ones in the order given here."""
    queue = _queue(process)
    waiting = [*queue._unschedulable.values(), *queue._backoff.values()]
    for item in sorted(waiting, key=lambda item: int(item.key.name.partition("-")[2])):
        queue.add(item.key, item.priority)


def _ended(process: SchedulerProcess) -> None:
    raise RuntimeError(f"the scheduler has ended: {process.exit_status} {process.errors}")


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
