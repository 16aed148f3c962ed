"""What must always hold, and what must hold at rest.

During a run, with facts of the API server alone:

- ``guarded``: each write to a binding names the resourceVersion that it was computed from.
- ``fenced``: no write is accepted after another process holds the Lease, unless it was sent within the old term; and none
  is sent by a process that cannot know that it still leads. None takes or releases the Lease of another that has not
  expired.
- ``polite``: no process repeats a request without a pause.
- ``no harm``: each change of a binding's clusters is what the decision core gives for clusters that were stored at some
  time. A list without its clusters, or an error, never was.

- ``estimated``, ``no overcommit``, ``in time``: see ``answer_laws``.
- ``by priority``: see ``priority_law``.
- ``fair``, ``within limits``: see ``fair_law``.
- ``no inversion``, ``bounded hold``, ``progress``, ``honest``: see ``hold_laws``.
- ``stops``: a process ends soon after a signal, in runs whose faults do not keep it from that (profile ``aimed``).
- ``no lost key``: a binding that needs scheduling is in the queue of each process, or is being processed.

At rest, some minutes after the last fault:

- ``converged``: each binding has what the decision core gives for what is stored.
- ``quiet``: nobody writes, and hardly anybody reads. Where holds of StrictPriority end, the attempt of a binding that waits may
  change its text.
- ``alive``: one process leads and is ready.
- ``cached``: the caches of every process, standbys included, have what is stored.
- ``recorded``: the record of each binding that the leader has placed has the result that it wrote.
- ``shown``: the page has what is stored, and its lists are those of a page that has just read it (profile ``readers``).
- ``applied``: with Works, each has the replicas of its binding.
- ``keeps what runs``, ``no to and fro``, ``started``: see ``started_law``.
- ``balanced``: nothing is left of attempts: no slots, keys, assumed placements.
- ``flat``: after further rounds of the same steps and faults, no container has more entries (profile ``rounds``).
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from karmada_pyscheduler.client.http_connection import Response
from karmada_pyscheduler.scheduling_queue.queue import UNSCHEDULABLE as UNSCHEDULABLE_SET
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core.condition import UNSCHEDULABLE as UNSCHEDULABLE_REASON
from karmada_scheduler.core.requeue_rules import is_claimed
from tools.apiserver_model import BY_NAME, Write
from tools.manifests import targets_of
from tools.simulation import at_rest
from tools.simulation.answer_laws import AnswerLaws
from tools.simulation.at_rest import Placed
from tools.simulation.bindings import BINDING_KINDS
from tools.simulation.decisions import DecisionCore, read_binding
from tools.simulation.environment import START
from tools.simulation.fair_law import FairLaw
from tools.simulation.flat import growing, sizes_of
from tools.simulation.generate_rounds import BLOCKS
from tools.simulation.guard_history import LATE_SECONDS, Written
from tools.simulation.guard_laws import UNSEEN_SECONDS, GuardLaws
from tools.simulation.harm_law import HarmLaw
from tools.simulation.hold_laws import HoldLaws, missing_of
from tools.simulation.lost_keys import Missed, missed_keys
from tools.simulation.network import Sent
from tools.simulation.priority_law import PriorityLaw
from tools.simulation.rules import (
    MOST_REQUESTS_AT_REST,
    MOST_REQUESTS_PER_SECOND,
    RENEW_DEADLINE,
    Violation,
    outlives_its_term,
)
from tools.simulation.setup import NAME

if TYPE_CHECKING:
    from tools.simulation.process import SchedulerProcess
    from tools.simulation.run import Run


@dataclass(frozen=True, slots=True)
class _Term:
    """A state of the Lease, from its acceptance on: the holder, and when the request for it was sent."""

    holder: str
    accepted: float
    sent: float


class Judge:
    """Judges one run.

    Attributes:
        violations: What went wrong so far.
        scheduler_writes: The number of accepted writes of schedulers to bindings.
        measured: How often the sizes of containers were noted.
        accepted: How often each exception from the invariants was used.
        priorities: Judges the order in which keys are taken.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.violations: list[Violation] = []
        self.scheduler_writes = 0
        self.measured = 0
        self.accepted: Counter[str] = Counter()
        self._checked = 0
        self._terms: list[_Term] = [_Term("", 0.0, 0.0)]
        self._renewed: dict[str, float] = {}
        self._forced_at = -math.inf
        self._requests_before: Counter[str] = Counter()
        self._writes_before = 0
        self._rest_began = math.inf
        self._second = 0
        self._in_second: Counter[tuple[str, str, str]] = Counter()
        self._missed: dict[str, Missed] = {}
        self._lost: set[tuple[str, BindingKey, str]] = set()
        self._core = DecisionCore(run.setup)
        self._harm = HarmLaw(run, self._core, self.accepted, self.add)
        self._answers = AnswerLaws(run, self._core, self._harm, self.add)
        self.priorities: Final = PriorityLaw(run.setup, self.add)
        self._lease_written: dict[bytes, float] = {}
        """When each record of the Lease was first written. One that comes back, as after a restore, is not renewed by that."""
        self._placed: dict[BindingKey, Placed] = {}
        self._sizes: dict[str, list[Counter[str]]] = {}
        guard = run.setup.guard
        self._guard_laws = None
        if guard is not None:
            is_late = any(each.kind in ("watch_late", "watch_stalled", "silent") for each in run.plan.faults)
            late = LATE_SECONDS if is_late else UNSEEN_SECONDS
            self._guard_laws = GuardLaws(guard, run.setup.fail_back, NAME, self.add, late_seconds=late)
        strict = run.setup.strict_priority
        self._hold_laws = None if strict is None else HoldLaws(strict, self.add)
        shares = run.setup.fair_share
        self._fair_law = None if shares is None else FairLaw(dict(shares), self.add)

    def add(self, invariant: str, text: str) -> None:
        """Record a violation."""
        now = self._run.simulation.now
        self.violations.append(Violation(invariant, text, now))
        self._run.record("judge", f"VIOLATION {invariant}: {text}")

    def watch(self, process: SchedulerProcess) -> None:
        """Judge the order in which a process takes keys."""
        self.priorities.watch(process)
        if self._fair_law is not None:
            self._fair_law.watch(process)

    def on_exception(self, record: logging.LogRecord) -> None:
        """Judge a log record with a traceback."""
        self.add("no exception", f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")

    def on_request(self, sent: Sent) -> None:
        """Judge a request when it is sent."""
        if sent.request.method != "POST":  # a POST is about another object each time
            self._check_rate(sent)
        if sent.kind.startswith("PATCH") and "bindings" in sent.kind:
            version = (orjson.loads(sent.request.body).get("metadata") or {}).get("resourceVersion")
            if not version:
                self.add(
                    "guarded", f"{sent.identity}: {sent.kind} {sent.request.path} has no resourceVersion"
                )
            self._check_sender(sent)

    def on_response(self, sent: Sent, result: Response | OSError) -> None:
        """Note what a process gets as the response to a request."""
        self._answers.on_response(sent, result)

    def _check_rate(self, sent: Sent) -> None:
        """Judge how often a process sends requests about one object."""
        second, path = int(sent.at), (sent.identity, sent.kind, sent.request.path)
        if second != self._second:
            self._second = second
            self._in_second.clear()
        self._in_second[path] += 1
        if self._in_second[path] != MOST_REQUESTS_PER_SECOND + 1:
            return
        if sent.at - self._forced_at <= RENEW_DEADLINE:
            # Two processes lead until one has noticed, and each answers the writes of the other.
            self.accepted["two leaders after a Lease was taken away by force"] += 1
        else:
            self.add("polite", f"{sent.identity} sends {sent.kind} {sent.request.path} without a pause")

    def _check_sender(self, sent: Sent) -> None:
        """Judge whether the sender of a write could believe that it leads."""
        for problem in outlives_its_term(sent.at, self._renewed.get(sent.identity), grace=0.001):
            self.add("fenced", f"{sent.identity} sends {sent.kind} {problem}")

    def check_writes(self) -> None:
        """Judge the writes that the API server has accepted since the last call."""
        writes = self._run.model.writes
        while self._checked < len(writes):
            write = writes[self._checked]
            sent = self._run.network.sent_by_write.get(self._checked)
            if write.kind == "Lease":
                self._on_lease(write, sent)
            self._answers.on_write(write, sent)
            self._note_for_plugins(write, sent)
            if write.kind.endswith("Binding") and sent is not None:
                self.scheduler_writes += 1
                self._check_fence(write, sent)
                if write.subresource == "":
                    placed = Placed.of(sent.identity, write)
                    self._placed[BindingKey(write.kind, *write.key)] = placed
                    self._harm.check(write)
                    if self._run.started is not None:
                        self._run.started.on_write(write, sent)
            self._checked += 1

    def look_for_capacity(self) -> None:
        """Judge whether the first that waits for capacity gets it; see ``hold_laws``."""
        if self._hold_laws is not None:
            self._hold_laws.look(self._run.simulation.now)

    def _note_for_plugins(self, write: Write, sent: Sent | None) -> None:
        """Judge a write by the laws of PlacementGuard, StrictPriority and FairShare."""
        guard, capacity, fair = self._guard_laws, self._hold_laws, self._fair_law
        if guard is None and capacity is None and fair is None:
            return
        before, after = (None if raw is None else orjson.loads(raw) for raw in (write.before, write.after))
        at = (write.time - START).total_seconds()
        if write.kind == "Cluster":
            if guard is not None:
                guard.on_cluster(at, write.key[1], after)
            if capacity is not None:
                capacity.on_cluster(at, write.key[1], after)
        elif write.kind in BINDING_KINDS:
            identity, moment = ("", None) if sent is None else (sent.identity, sent.at)
            written = Written(at, (write.kind, *write.key), before, after, moment, identity)
            for laws in (guard, capacity, fair):
                if laws is not None:
                    laws.on_write(written)

    def _on_lease(self, write: Write, sent: Sent | None) -> None:
        spec = orjson.loads(write.after)["spec"] if write.after is not None else {}
        holder = spec.get("holderIdentity") or ""
        now = self._run.simulation.now
        if sent is None:
            self._forced_at = now
        else:
            self._check_taken(write, sent)
        self._lease_written.setdefault(_record_of(spec), now)
        self._terms.append(_Term(holder, now, sent.at if sent is not None else now))
        if sent is not None and holder == sent.identity:
            self._renewed[holder] = max(self._renewed.get(holder, 0.0), sent.at)

    def _check_taken(self, write: Write, sent: Sent) -> None:
        """Judge a write of a Lease that another process may hold."""
        held = orjson.loads(write.before)["spec"] if write.before is not None else {}
        holder = held.get("holderIdentity") or ""
        age = self._run.simulation.now - self._lease_written.get(_record_of(held), -math.inf)
        if holder not in ("", sent.identity) and age < held["leaseDurationSeconds"]:
            text = f"{sent.identity} writes the Lease of {holder}, which was renewed {age:.1f} s ago"
            self.add("fenced", text)

    def _check_fence(self, write: Write, sent: Sent) -> None:
        holder = self._terms[-1].holder
        if holder in ("", sent.identity):
            return
        # A client that takes a Lease away by force does not wait until its holder has noticed.
        if sent.at - self._forced_at <= RENEW_DEADLINE:
            return
        taken = self._taken_by_others(sent.identity)
        if sent.at > taken:
            self.add(
                "fenced",
                f"{sent.identity} sent {sent.kind} of {write.key} at {sent.at:.3f}, but {holder} has had the Lease since "
                f"{taken:.3f}",
            )

    def _taken_by_others(self, identity: str) -> float:
        """Return when the Lease last went from a process to another one."""
        taken = 0.0
        for term in reversed(self._terms):
            if term.holder == identity:
                break
            taken = term.accepted
        return taken

    def _leads_since(self, identity: str) -> float:
        """Return since when a process has had the Lease without an interruption; infinite if it does not."""
        since = math.inf
        for term in reversed(self._terms):
            if term.holder != identity:
                break
            since = term.accepted
        return since

    def on_restore(self) -> None:
        """Note that the API server was restored, with an old Lease."""
        self._forced_at = self._run.simulation.now
        self._answers.on_restore()
        self._harm.note_clusters()

    def on_write(self, write: Write) -> None:
        """Note the clusters when they change."""
        if write.kind == "Cluster":
            self._harm.note_clusters()

    def check_keys(self) -> None:
        """Judge whether the queues hold the keys that need scheduling."""
        for process in self._run.running():
            if process.application is None:
                continue
            before = self._missed.get(process.name, {})
            missed = self._missed[process.name] = missed_keys(process.application, self._run.setup)
            for key, version in missed.items():
                if (
                    before.get(key) == version == self._stored_version(key)
                    and (process.name, key, version) not in self._lost
                ):
                    self._lost.add((process.name, key, version))
                    self.add("no lost key", f"{process.name}: {key.display}, version {version}")

    def _stored_version(self, key: BindingKey) -> str | None:
        """Return the version of a stored binding. A later one than the cached one is on its way, with what it needs."""
        raw = self._run.model.state(key.kind).get(BY_NAME[key.kind].key(key.namespace, key.name))
        return None if raw is None else orjson.loads(raw)["metadata"]["resourceVersion"]

    def check_stopped(self, processes: Iterable[SchedulerProcess]) -> None:
        """Judge whether processes have ended after a signal."""
        for process in processes:
            if not process.is_dead:
                self.add(
                    "stops", f"{process.name} has not ended {self._run.setup.stops_within:g} s after SIGTERM"
                )

    def measure(self) -> None:
        """Note the sizes of all containers of all processes, and judge the last ones of those that ran all the time."""
        for process in self._run.running():
            if process.application is not None:
                self._sizes.setdefault(process.name, []).append(sizes_of(process))
        self.measured += 1
        if self.measured == BLOCKS:
            for name, samples in self._sizes.items():
                if len(samples) == BLOCKS:
                    for text in growing(samples):
                        self.add("flat", f"{name}: {text}")

    def rest_begins(self) -> None:
        """Note the state from which on everything must be at rest."""
        self._requests_before = Counter(self._run.requests)
        self._writes_before = self.scheduler_writes
        self._rest_began = self._run.simulation.now

    def rest_ends(self) -> None:
        """Judge the state at the end."""
        self._check_converged()
        self._check_quiet()
        if self._hold_laws is not None:
            self._hold_laws.rest()
        for process in self._run.running():
            self._answers.check_attempts(process, self._leads_since(process.identity))
        for invariant, text in at_rest.problems(self._run, self._placed):
            self.add(invariant, text)

    def _check_converged(self) -> None:
        model = self._run.model
        found, unreadable = self._harm.clusters_now()
        # A process that was started later does not have the last readable version of a cluster.
        states = [found, tuple(each for each in found if each.name not in unreadable)][: 1 + bool(unreadable)]
        for raw in (raw for kind in BINDING_KINDS for raw in model.state(kind).values()):
            binding = read_binding(raw)
            if binding is None or binding.deleting or not found:
                continue
            # Changes of a binding that no policy claims are not scheduled.
            if binding.spec.responsible_scheduler not in self._run.setup.names or not is_claimed(binding):
                continue
            manifest = orjson.loads(raw)
            if unreadable.intersection(targets_of(manifest)):
                continue
            if problem := self._harm.lost_term(manifest):
                self.add("converged", f"{binding.key.display}: {problem}")
            problems = [self._core.problem_of(manifest, clusters) for clusters in states]
            if not all(problems):
                continue
            if self._run.setup.strict_priority is not None and missing_of(
                manifest, {each.name for each in found if not each.deleting}
            ):
                self.accepted["a binding waits for capacity"] += 1  # see the law ``progress``
            elif self._waits_for_capacity(binding):
                self.accepted["a binding waits for capacity"] += 1
            elif self._run.setup.fair_share is not None and self._is_gated(binding.key):
                self.accepted["the limit of a tenant keeps a binding out"] += 1
            elif self._harm.has_failed_to_score and not all(
                self._core.problem_of(manifest, clusters, extenders_score=False) for clusters in states
            ):
                # A binding is not decided again because an extender is healthy again.
                self.accepted["an extender failed to score"] += 1
            elif targets_of(manifest) and not all(
                self._core.problem_of(manifest, states[0], version) for version in self._run.setup.versions
            ):
                # Plugins that change schedule unplaced bindings again, not placed ones.
                self.accepted["a placement by replaced plugins stays"] += 1
            else:
                self.add("converged", f"{binding.key.display}: {problems[0]}")

    def _is_gated(self, key: BindingKey) -> bool:
        leader = self._run.leader()
        return (
            leader is not None
            and leader.application is not None
            and key in leader.application.state.gate.gated
        )

    def _waits_for_capacity(self, binding: Binding) -> bool:
        """Return whether the leader will try a binding again that found too little capacity.

        The priority queue waits for up to 330 s, as upstream's. A binding that is tried together with others fails if
        these get the capacity first, and waits again, although their assumed placements end meanwhile.
        """
        leader = self._run.leader()
        if leader is None or leader.application is None or not self._run.setup.varies_capacity:
            return False
        condition = binding.status.condition(SCHEDULED_CONDITION) or {}
        if self._run.started is not None:  # which judges that by the nodes
            return condition.get("reason") == UNSCHEDULABLE_REASON
        state = leader.application.state.queue.state_of(binding.key)
        return condition.get("reason") == UNSCHEDULABLE_REASON and state.state == UNSCHEDULABLE_SET

    def _check_quiet(self) -> None:
        writes = self.scheduler_writes - self._writes_before
        if self._hold_laws is not None:
            writes -= self._hold_laws.rewritten_since(self._rest_began)
        if self._fair_law is not None:
            writes -= self._fair_law.refused_since(self._rest_began)
        if writes and self._run.started is None:  # there are trials
            self.add("quiet", f"{writes} writes at rest")
        requests = self._run.requests - self._requests_before
        counted = {
            kind: number for kind, number in requests.items() if "leases" not in kind and "WATCH" not in kind
        }
        if sum(counted.values()) > MOST_REQUESTS_AT_REST * 60 * (
            self._run.plan.processes + len(self._run.pages[-1:])
        ):
            self.add("quiet", f"requests at rest: {counted}")


def _record_of(spec: dict[str, Any]) -> bytes:
    """Return what candidates compare to see whether a Lease was renewed."""
    return orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
