"""Runs one plan and judges it."""

from __future__ import annotations

import gc
import hashlib
import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Final

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model import ApiServerModel
from tools.simulation.actions import LEASE
from tools.simulation.all_actions import AllActions
from tools.simulation.cluster_reports import ClusterReports
from tools.simulation.environment import START
from tools.simulation.faults import Faults
from tools.simulation.front_ends import FrontEnds
from tools.simulation.invariants import Judge
from tools.simulation.lost_keys import CHECK_SECONDS
from tools.simulation.network import Network, Sent
from tools.simulation.page_reader import PageReader
from tools.simulation.plan import Plan
from tools.simulation.plugin_kit import Scene
from tools.simulation.process import RESTART_SECONDS, SchedulerProcess
from tools.simulation.rules import Violation
from tools.simulation.setup import Setup
from tools.simulation.simulation import HotLoopError, Process, Simulation
from tools.simulation.started_law import StartedLaw
from tools.simulation.works import Works

REST_SECONDS: Final = 60.0
"""How long everything is watched at rest, at the end."""

_QUIET_SECONDS: Final = 420.0
"""So long before the rest the last workload ends: who waits is tried once more."""
_RECOVERY_SECONDS: Final = 40.0
"""So long after the last fault there is a leader again, and no retry waits for the end of its pause."""
_BACKUP_SECONDS: Final = 5.0
_PROBE_SECONDS: Final = 10.0
_FAILED_PROBES: Final = 3
_KEPT_LINES: Final = 4000


@dataclass(slots=True)
class Report:
    """The result of one run.

    Attributes:
        plan: The plan.
        violations: What went wrong; empty if nothing did.
        trace_hash: Equal for two runs in which the same happened.
        trace: The last lines of what happened.
        faults: How often each fault applied, by kind of fault and of request.
        actions: How often each action was taken.
        requests: The number of requests by kind.
        writes: The number of accepted writes of schedulers to bindings.
        accepted: How often each exception from the invariants was used.
        steps: The number of steps of event loops.
        cpu_seconds: The CPU time of the run, 0 if it was not measured.
    """

    plan: Plan
    violations: list[Violation]
    trace_hash: str
    trace: list[str]
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    cpu_seconds: float = 0.0


class Run:
    """One run of a plan."""

    def __init__(self, plan: Plan) -> None:
        """Prepare."""
        self.plan = plan
        seed = plan.seed
        self.simulation = Simulation(Random(f"{seed}:order"))
        numbers = count(1)
        self.model = ApiServerModel(
            now=lambda: START + timedelta(seconds=self.simulation.now), new_uid=lambda: f"uid-{next(numbers)}"
        )
        self.faults = Faults(plan.faults, seed=seed)
        self.setup = Setup(plan)
        front_ends = FrontEnds(self.simulation, self.model, self.setup.front_ends)
        self.network = Network(
            self.simulation, self.model, self.faults, Random(f"{seed}:network"), front_ends
        )
        self.network.on_request = self._on_request
        self.network.on_response = self._on_response
        self.works = Works(self.simulation, self.model, Random(f"{seed}:works")) if self.setup.works else None
        if self.setup.reports:
            ClusterReports(
                self.simulation,
                self.model,
                until=plan.faults_end + plan.settle - REST_SECONDS - _QUIET_SECONDS,
            )
        self.actions = AllActions(self)
        self.starts: list[list[SchedulerProcess]] = [[] for _ in range(plan.processes)]
        self.pages: list[PageReader] = []
        self.requests: Counter[str] = Counter()
        self.judge = Judge(self)
        self.started = None
        if self.works is not None and self.setup.started is not None:
            cool_down = self.setup.started["coolDownSeconds"]
            self.started = StartedLaw(
                self.simulation, self.model, self.works, self.setup.members, cool_down, self.judge.add
            )
        self.model.observers.append(self.judge.on_write)
        self.model.on_restore.append(self.judge.on_restore)
        self.trace: list[str] = []
        self._digest = hashlib.sha256()
        self._failed_probes: Counter[str] = Counter()
        self.simulation.after_step = self._after_step

    def process(self, index: int) -> SchedulerProcess | None:
        starts = self.starts[index] if index < len(self.starts) else []  # a shrunk plan has fewer processes
        return starts[-1] if starts and not starts[-1].is_dead else None

    def leader(self) -> SchedulerProcess | None:
        lease = self.model.get("Lease", *LEASE)
        holder = lease["spec"].get("holderIdentity") if lease is not None else None
        return next((each for each in self.running() if each.identity == holder), None)

    def running(self) -> list[SchedulerProcess]:
        """Return the processes that run."""
        return [each for index in range(self.plan.processes) if (each := self.process(index)) is not None]

    def execute(self) -> Report:
        """Run the plan, and return what happened."""
        with _quiet(self):
            try:
                self._execute()
            except HotLoopError as error:
                self.judge.add("alive", f"something runs without end: {error}")
            finally:
                for starts in self.starts:
                    for process in starts:
                        process.dispose()
                for page in self.pages:
                    page.dispose()
                self.setup.close()
        for what in ("late", "older"):
            if number := getattr(self.network.front_ends, what):
                self.faults.hits[f"front_end_{what}", ""] = number
        return Report(
            plan=self.plan,
            violations=self.judge.violations,
            trace_hash=self._digest.hexdigest()[:16],
            trace=self.trace,
            faults=self.faults.hits,
            actions=self.actions.taken,
            requests=self.requests,
            writes=self.judge.scheduler_writes,
            accepted=self.judge.accepted,
            steps=self.simulation.steps,
        )

    def _execute(self) -> None:
        plan, simulation = self.plan, self.simulation
        for index in range(plan.processes):
            simulation.at(index * 0.7, partial(self._start, index))
        for at in self.setup.page:
            simulation.at(at, self._start_page)
        for step in plan.steps:
            simulation.at(step.at, partial(self._take, step.action, step.arguments))
        simulation.after(_BACKUP_SECONDS, self._back_up)
        simulation.after(_PROBE_SECONDS, self._probe)
        simulation.after(CHECK_SECONDS, self._check_keys)
        for at in self.setup.measured:
            simulation.at(at, self.judge.measure)
        if self.setup.strict_priority is not None:
            simulation.at(plan.faults_end + _RECOVERY_SECONDS, self._look_for_capacity)
        simulation.run(plan.faults_end)
        self.record("", "faults end")
        simulation.run(plan.faults_end + plan.settle - REST_SECONDS)
        self.judge.rest_begins()
        simulation.run(plan.faults_end + plan.settle)
        self.judge.rest_ends()

    def _start(self, index: int) -> None:
        starts = self.starts[index]
        process = SchedulerProcess(
            self.simulation,
            self.network,
            index=index,
            start=len(starts),
            options=self.setup.options(index),
            seed=self.plan.seed,
            scene=Scene(index, self.faults, self.simulation.clock),
            on_built=self.judge.watch,
            on_end=self._ended,
        )
        starts.append(process)
        self._schedule_processes()
        self.record(process.name, "started")

    def _ended(self, process: SchedulerProcess) -> None:
        self.record(process.name, f"ended: {process.exit_status}")
        self._schedule_processes()
        self.simulation.after(RESTART_SECONDS, lambda: self._start(process.index))

    def _start_page(self) -> None:
        """Start the page, instead of the one that runs."""
        if self.pages:
            self.pages[-1].kill()
        page = PageReader(
            self.simulation,
            self.network,
            index=self.plan.processes,
            start=len(self.pages),
            seed=self.plan.seed,
        )
        self.pages.append(page)
        self._schedule_processes()
        self.record(page.name, "started")

    def _schedule_processes(self) -> None:
        self.simulation.processes = [*self.running(), *self.pages[-1:]]

    def _take(self, action: str, arguments: dict[str, object]) -> None:
        self.record("", f"{action} {arguments}")
        running = self.running()
        self.actions.take(action, arguments)
        if action == "terminate" and self.setup.stops_within:
            stopped = [each for each in running if each.index == arguments["process"]]
            self.simulation.after(self.setup.stops_within, lambda: self.judge.check_stopped(stopped))

    def _back_up(self) -> None:
        self.actions.backup()
        if self.simulation.now < self.plan.faults_end:
            self.simulation.after(_BACKUP_SECONDS, self._back_up)

    def _probe(self) -> None:
        """Restart processes whose probe has failed three times, as a kubelet does."""
        for process in self.running():
            server = process.machine.server
            if server is None or server.health() is None:
                self._failed_probes.pop(process.name, None)
                continue
            self._failed_probes[process.name] += 1
            if self._failed_probes[process.name] >= _FAILED_PROBES:
                process.terminate()
        self.simulation.after(_PROBE_SECONDS, self._probe)

    def _check_keys(self) -> None:
        self.judge.check_keys()
        self.simulation.after(CHECK_SECONDS, self._check_keys)

    def _look_for_capacity(self) -> None:
        self.judge.look_for_capacity()
        self.simulation.after(1.0, self._look_for_capacity)

    def _on_request(self, sent: Sent) -> None:
        self.requests[sent.kind] += 1
        self.actions.aims.on_request(sent)
        self.judge.on_request(sent)

    def _on_response(self, sent: Sent, result: Response | OSError) -> None:
        self.judge.on_response(sent, result)
        shown = f"{result.status}" if isinstance(result, Response) else repr(result)
        self.record(sent.identity, f"{sent.kind} {sent.request.path.rpartition('/')[2]} -> {shown}")

    def _after_step(self, process: Process) -> None:
        del process
        self.judge.check_writes()
        self.actions.aims.after_step()

    def record(self, who: str, what: str) -> None:
        """Add a line to the trace."""
        line = f"{self.simulation.now:10.4f} {who:14} {what}"
        self._digest.update(line.encode())
        self.trace.append(line)
        if len(self.trace) > 2 * _KEPT_LINES:
            del self.trace[:_KEPT_LINES]


_PLUGIN_LOGGERS: Final = (
    "karmada_scheduler.framework.runtime.failure_log",
    "karmada_scheduler.plugin_loader",
)
"""Loggers of the exceptions that plugins raise."""


class _LogRecords(logging.Handler):
    """Adds warnings and errors of the schedulers to the trace, without their effect on its hash."""

    def __init__(self, run: Run) -> None:
        super().__init__(logging.WARNING)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        more = {key: value for key, value in vars(record).items() if key in ("error", "kind", "object")}
        text = f"{self._run.simulation.now:10.4f} {'log':14} {record.levelname} {record.getMessage()} {more or ''}"
        if record.exc_info and not record.name.startswith(_PLUGIN_LOGGERS):
            text += f"\n{logging.Formatter().formatException(record.exc_info)}"
            self._run.judge.on_exception(record)
        self._run.trace.append(text)


@contextmanager
def _quiet(run: Run) -> Iterator[None]:
    """Collect log records instead of writing them, and collect garbage only between two runs."""
    root = logging.getLogger()
    before, level, disabled = root.handlers[:], root.level, logging.root.manager.disable
    root.handlers[:] = [_LogRecords(run)]
    root.setLevel(logging.WARNING)
    logging.disable(logging.INFO)
    gc.disable()
    try:
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        logging.disable(disabled)
        gc.enable()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # of coroutines of killed processes that had not started
            gc.collect()
