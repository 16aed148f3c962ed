"""Judges the records of a run, by the invariants of ``tools.simulation.invariants``.

- ``guarded``: each write of ours to a binding names the resourceVersion that it was computed from.
- ``fenced``: none is sent after another process holds the Lease, or 10 s after the last renewal.
- ``no harm``: each change of targets is what the decision core gives for clusters that were stored at some time before.
- ``separate``: no scheduler writes to a binding of the other.
- ``polite``: no process repeats a request without a pause.
- ``converged``: a minute after the last fault each binding has what the core decides for what is stored.
- ``quiet``: from then on nobody writes, and hardly anybody reads.
- ``alive``: at the end all replicas are ready and one leads.
- ``restarts``: a replica ended only because it was killed or because it lost the Lease.
- ``records``: the records are complete; without that, nothing else is certain.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import orjson

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from tools.live.records import Records, Request, State
from tools.live.terms import Terms
from tools.live.writers import Delays, writers_of
from tools.manifests import targets_of
from tools.simulation.decisions import DecisionCore
from tools.simulation.plan import Plan
from tools.simulation.rules import (
    MOST_REQUESTS_AT_REST,
    MOST_REQUESTS_PER_SECOND,
    Violation,
    outlives_its_term,
)
from tools.simulation.setup import Setup

_GRACE: Final = 1.0
"""Between the sending and the receipt of a request without any fault, on a busy machine."""

_UNSETTLED_SECONDS: Final = 5.0
_LOST: Final = "leaderelection lost"


@dataclass(slots=True)
class Result:
    """What the judge found.

    Attributes:
        violations: What went wrong.
        figures: What was counted, by name.
        codes: Responses to our replicas, by status.
    """

    violations: list[Violation] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    codes: Counter[int] = field(default_factory=Counter)


class Judge:
    """Judges one run."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._users: dict[str, str] = records.facts["users"]
        self._ours = [request for request in records.requests if request.user in self._users]
        self._writers = writers_of(records)
        self._delays = Delays(records)
        self._terms = Terms(records)
        self._cluster_states = _cluster_states(records)
        self._core = plain_core()
        self._result = Result()

    def judge(self) -> Result:
        """Judge everything."""
        self._check_records()
        self._check_requests()
        self._check_writes()
        self._check_separate()
        self._check_converged()
        self._check_quiet()
        self._check_alive()
        self._check_restarts()
        return self._result

    def _add(self, invariant: str, text: str, *, where: str = "", at: float = 0.0) -> None:
        self._result.violations.append(Violation(invariant, text, at, where))

    def _count(self, figure: str, number: float = 1) -> None:
        self._result.figures[figure] = self._result.figures.get(figure, 0) + number

    def _check_records(self) -> None:
        records = self._records
        for name in ("bindings", "clusters", "leases"):
            history = getattr(records, name)
            self._count(f"stored versions of {name}", sum(map(len, history.states.values())))
            if history.gaps:
                self._add(
                    "records", f"the watch of {name} may have missed versions of {history.gaps} objects"
                )
        for request in self._writers.unknown:
            self._add(
                "records", f"{request.key} at {request.stored_version} was never seen", where=request.audit_id
            )
        for name, version in records.final["versions"].items():
            states = [each for key, each in records.bindings.states.items() if key.endswith(f"/{name}")]
            if not states or states[0][-1].revision < int(version):
                self._add("records", f"the watch has not seen {name} at {version}")

    def _check_requests(self) -> None:
        """Judge every request of our replicas, accepted or not."""
        in_second: Counter[tuple[str, str, str, str, int]] = Counter()
        for request in self._ours:
            self._result.codes[request.code] += 1
            if request.verb not in ("create", "watch"):
                second = (request.user, request.verb, request.resource, request.key, int(request.received))
                in_second[second] += 1
                if in_second[second] == MOST_REQUESTS_PER_SECOND + 1:
                    self._add(
                        "polite", f"{second}: more than {MOST_REQUESTS_PER_SECOND}", where=request.audit_id
                    )
            if _is_write_to_binding(request):
                self._count("requests that write to bindings")
                if request.body is None:  # refused before it was read, by authorization for example
                    self._count("requests that were refused unread")
                elif not request.named_version:
                    text = f"{request.user}: {request.verb} {request.resource} {request.key} names no resourceVersion"
                    self._add("guarded", text, where=request.audit_id, at=request.received)
                self._check_fence(request)

    def _check_fence(self, request: Request) -> None:
        sent = self._delays.sent(request)
        if sent < request.received:
            self._count("writes that a fault may have delayed")
        renewed = self._terms.renewed(request.user, request.received)
        what = f"{request.user} sent a write of {request.key}"
        for problem in outlives_its_term(sent, renewed, grace=_GRACE):
            self._add("fenced", f"{what} {problem}", where=request.audit_id, at=sent)
        taken = self._terms.taken_from(request.user, request.received)
        if taken is not None and sent > taken + _GRACE:
            text = f"{what} {sent - taken:.1f} s after another one had the Lease"
            self._add("fenced", text, where=request.audit_id, at=sent)

    def _check_writes(self) -> None:
        """Judge every stored change of one of our bindings."""
        for key, states in self._records.bindings.states.items():
            for before, after in itertools.pairwise(states):
                if before.raw is None or after.raw is None:
                    continue
                request = self._writers.requests.get((key, after.revision))
                writer = request.user if request is not None else ""
                if writer in self._users:
                    self._count("accepted writes to bindings")
                    assert request is not None
                    self._check_term(key, after, request)
                if not writer or writer in self._users:
                    self._check_harm(key, before, after, writer)

    def _check_term(self, key: str, after: State, request: Request) -> None:
        """Judge by the order of resourceVersions whose term a write is in."""
        holder = self._terms.user_at(after.revision)
        if holder in ("", request.user):
            return
        self._count("writes accepted in another one's term, sent before it")
        if self._delays.sent(request) > self._terms.begin_at(after.revision) + _GRACE:
            text = f"{request.user} wrote {key} at {after.revision} while {holder} had the Lease"
            self._add("fenced", text, where=request.audit_id, at=request.received)

    def _check_harm(self, key: str, before: State, after: State, writer: str) -> None:
        old, new = orjson.loads(before.raw or b""), orjson.loads(after.raw or b"")
        if targets_of(old) == targets_of(new) or old["metadata"]["uid"] != new["metadata"]["uid"]:
            return
        if new["spec"].get("schedulerName") != self._records.facts["scheduler"]:
            return
        binding = Binding.from_manifest(old)
        replaced_at = after.at
        for revision, at, clusters in reversed(self._cluster_states):
            if revision > after.revision:
                continue
            if self._core.targets(binding, clusters) == targets_of(new):
                self._count(
                    "changes of targets, all justified" if writer else "changes of targets, writer unknown"
                )
                self._note_age(after.at - replaced_at)
                return
            replaced_at = at
        if not writer:
            self._count("changes of targets by unknown writers that are not decisions")
            return
        text = f"{key} at {after.revision}: {targets_of(old)} -> {targets_of(new)} fits no stored clusters"
        self._add("no harm", text, where=f"{key}@{before.revision}..{after.revision}", at=after.at)

    def _note_age(self, seconds: float) -> None:
        """Count a decision about clusters that had been replaced some seconds before its write was stored."""
        if seconds > 0:
            self._count("of them about clusters that had changed meanwhile")
            name = "longest time since that change, in seconds"
            self._result.figures[name] = max(self._result.figures.get(name, 0.0), round(seconds, 1))

    def _check_separate(self) -> None:
        facts = self._records.facts
        for (key, version), request in self._writers.requests.items():
            state = self._records.bindings.version(key, version)
            if state is None or state.value is None:
                continue
            owner = state.value["spec"].get("schedulerName")
            is_foreign = (request.user in self._users and owner != facts["scheduler"]) or (
                request.user == facts["other user"] and owner != facts["other"]
            )
            if is_foreign:
                text = f"{request.user} wrote {key} of {owner}"
                self._add("separate", text, where=request.audit_id, at=request.received)
            elif request.user == facts["other user"]:
                self._count("accepted writes of karmada-scheduler")

    def _check_converged(self) -> None:
        settled = self._records.marks["settled"]
        clusters = _parsed(self._records.clusters.at(settled))
        final = _parsed(self._records.clusters.at(self._records.marks["end"]))
        for key, stored in self._records.bindings.at(settled).items():
            state, now = stored, clusters
            if stored.at > settled - _UNSETTLED_SECONDS:
                self._count("bindings that still changed a minute after the last fault")
                state, now = self._records.bindings.states[key][-1], final
            if state.value is None:
                continue
            binding = Binding.from_manifest(state.value)
            if binding.spec.responsible_scheduler != self._records.facts["scheduler"] or binding.deleting:
                continue
            self._count("bindings judged at rest")
            if problem := self._core.problem_of(state.value, now):
                self._add("converged", f"{key}: {problem}", where=f"{key}@{state.revision}", at=settled)

    def _check_quiet(self) -> None:
        begin, end = self._records.marks["settled"], self._records.marks["end"]
        at_rest = [
            each
            for each in self._ours
            if begin <= each.received <= end and "leases" not in each.resource and each.verb != "watch"
        ]
        kinds = Counter(f"{each.user} {each.verb} {each.resource}" for each in at_rest)
        self._count("requests per second at rest", round(len(at_rest) / (end - begin), 2))
        if len(at_rest) > MOST_REQUESTS_AT_REST * (end - begin) * len(self._users):
            self._add("quiet", f"requests at rest: {dict(kinds)}")
        for request in at_rest:
            if _is_write_to_binding(request):
                text = f"{request.user}: {request.verb} {request.resource} {request.key} at rest"
                self._add("quiet", text, where=request.audit_id, at=request.received)

    def _check_alive(self) -> None:
        final = self._records.final
        if len(final["leads"]) != 1:
            self._add("alive", f"leaders at the end: {final['leads']}")
        for path in ("ready", "healthy"):
            for name, status in final[path].items():
                if status != 200:
                    self._add("alive", f"{name} is not {path}: {status}")

    def _check_restarts(self) -> None:
        for line in self._records.processes:
            if line["name"] not in self._users.values():
                if line["event"] == "ended":
                    self._count("other processes that ended by themselves")
                continue
            if line["event"] == "killed":
                self._count("replicas killed")
            elif line["event"] == "liveness":
                self._add("restarts", f"{line['name']} failed its liveness probe", at=line["at"])
            elif line["event"] == "ended" and _LOST in line["log"]:
                self._count("replicas that ended because they lost the Lease")
            elif line["event"] == "ended":
                text = f"{line['name']} ended with status {line['status']}: {line['log']}"
                self._add("restarts", text, where=f"plane/logs/{line['name']}.log", at=line["at"])


def plain_core() -> DecisionCore:
    """Return the decisions of schedulers with default gates and the in-tree plugins alone."""
    return DecisionCore(Setup(Plan(seed="chaos")))


def _is_write_to_binding(request: Request) -> bool:
    return request.resource.startswith("resourcebindings") and request.verb in ("patch", "update", "create")


def _cluster_states(records: Records) -> list[tuple[int, float, list[Cluster]]]:
    """Return every state of the clusters as revision, time and clusters, oldest first."""
    versions = sorted(
        (state.revision, key, state) for key, states in records.clusters.states.items() for state in states
    )
    current: dict[str, Cluster] = {}
    found: list[tuple[int, float, list[Cluster]]] = []
    for revision, key, state in versions:
        if state.value is None:
            current.pop(key, None)
        else:
            current[key] = Cluster.from_manifest(state.value)
        found.append((revision, state.at, list(current.values())))
    return found


def _parsed(states: dict[str, State]) -> list[Cluster]:
    return [Cluster.from_manifest(state.value) for state in states.values() if state.value is not None]
