"""Records decisions while the scheduler has nothing else to do.

A decision costs the scheduling loop one append to a deque. A task makes the records when the queue is empty, after a
second at the latest, for 2 ms at a time. In a backlog it therefore makes them as fast as decisions are taken, for a
hundredth of their CPU time. If it falls behind, the oldest decisions are dropped and counted.

A record is made when its attempt has ended, so that it has the time of the write; after ``_PATIENCE`` seconds it is made
without. Until then the recorder keeps the decision, and with it the clusters as they were.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from karmada_pyscheduler.metrics.scheduling import DROPPED, EVICTED, ExplainMetrics
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.records import record
from karmada_scheduler.records.record import Decided, Process
from karmada_scheduler.structs import IdentityStruct, field

OVERHEAD: Final = 520
"""Bytes of a record besides its text: the key, the entry of the dictionary, and two objects (measured)."""


class StoredRecord(NamedTuple):
    """A record.

    Attributes:
        seq: Its number.
        head: The JSON text up to the end of the attempt.
        ending: The part about the end of the attempt, which is known later.
        result: Equal for decisions with the same result about the same binding.
        repeated: The part about later decisions with the same result, empty without one.
        repetitions: Their number.
    """

    seq: int
    head: bytes
    ending: bytes
    result: int = 0
    repeated: bytes = b""
    repetitions: int = 0

    @property
    def body(self) -> bytes:
        """The JSON text."""
        return b"%b%b%b}" % (self.head, self.ending, self.repeated)

    @property
    def size(self) -> int:
        """The memory that it takes, in bytes."""
        return len(self.head) + len(self.ending) + len(self.repeated) + OVERHEAD


class RecordStore(IdentityStruct, kw_only=True):
    """The last record of each binding; the least recently decided ones are evicted."""

    max_bytes: int
    max_records: int
    _records: OrderedDict[BindingKey, StoredRecord] = field(default_factory=OrderedDict)
    _size: int = 0
    _last_seq: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        """The number of records."""
        return len(self._records)

    @property
    def size(self) -> int:
        """The memory of all records in bytes."""
        return self._size

    @property
    def last_seq(self) -> int:
        """The number of the last record, 0 before the first one."""
        return self._last_seq

    def put(self, key: BindingKey, record: StoredRecord) -> int:
        """Store the last record of a binding; return how many others were evicted."""
        evicted = 0
        with self._lock:
            self._drop(key)
            self._records[key] = record
            self._size += record.size
            self._last_seq = max(self._last_seq, record.seq)
            while self._records and (self._size > self.max_bytes or len(self._records) > self.max_records):
                _, dropped = self._records.popitem(last=False)
                self._size -= dropped.size
                evicted += 1
        return evicted

    def end(self, key: BindingKey, seq: int, ending: bytes) -> None:
        """Set the end of a record, if it is still the last one of its binding."""
        with self._lock:
            record = self._records.get(key)
            if record is not None and record.seq == seq:
                self._replace(key, record, record._replace(ending=ending))

    def repeat(self, key: BindingKey, repeated: bytes) -> None:
        """Note a later decision with the result of a record. The record keeps its number and its place."""
        with self._lock:
            record = self._records.get(key)
            if record is not None:
                count = record.repetitions + 1
                self._replace(key, record, record._replace(repeated=repeated, repetitions=count))

    def _replace(self, key: BindingKey, before: StoredRecord, record: StoredRecord) -> None:
        self._records[key] = record
        self._size += record.size - before.size

    def forget(self, key: BindingKey) -> None:
        """Drop the record of a binding."""
        with self._lock:
            self._drop(key)

    def get(self, key: BindingKey) -> StoredRecord | None:
        """Return the last record of a binding, None if there is none."""
        with self._lock:
            return self._records.get(key)

    def since(self, seq: int, limit: int) -> Sequence[StoredRecord]:
        """Return the records after a number, in the order of their numbers, the first ``limit`` ones."""
        with self._lock:
            newer: list[StoredRecord] = []
            for record in reversed(self._records.values()):  # in the order of numbers
                if record.seq <= seq:
                    break
                newer.append(record)
        return newer[::-1][:limit]

    def last(self, limit: int) -> Sequence[StoredRecord]:
        """Return the last records, in the order of their numbers."""
        with self._lock:
            newest = list(islice(reversed(self._records.values()), limit))
        return newest[::-1]

    def _drop(self, key: BindingKey) -> None:
        dropped = self._records.pop(key, None)
        if dropped is not None:
            self._size -= dropped.size


log = logging.getLogger(__name__)

MAX_WAITING: Final = 1_000
"""Decisions that wait to be recorded, at most."""

FORGET_SECONDS: Final = 600.0
"""How long the record of a deleted binding is kept."""

_PATIENCE: Final = 2.0
_SLICE_SECONDS: Final = 0.002
_PAUSE_SECONDS: Final = 0.1
"""The pause between two rounds."""
_LOG_SECONDS: Final = 60.0
"""The pause between two log lines about records that cannot be made."""


class ClusterChangeTimes:
    """The times of the last changes by cluster; two numbers per cluster.

    Called for every change of a cluster in the main thread; ``times`` may be called from any thread.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """Start without clusters; ``now`` returns seconds since 1970."""
        self._now = now
        self._times: dict[str, tuple[float, float]] = {}

    def on_cluster(self, old: Cluster | None, new: Cluster | None) -> None:
        """Note a change: of labels, spec or deletion, and of the resource summary."""
        if new is None:
            if old is not None:
                self._times.pop(old.name, None)
            return
        now = self._now()
        before = self._times.get(new.name)
        if old is None or before is None:
            self._times[new.name] = now, now
            return
        spec, summary = before
        if old.generation != new.generation or old.labels != new.labels or old.deleting != new.deleting:
            spec = now
        if old.resource_summary != new.resource_summary:
            summary = now
        self._times[new.name] = spec, summary

    def oldest_summary(self, names: Iterable[str]) -> float | None:
        """Return the earliest time at which the summary of one of some clusters changed; None if none is known."""
        times = self._times
        return min((times[name][1] for name in names if name in times), default=None)

    def times(self) -> Mapping[str, tuple[float, float]]:
        """Return by cluster when its spec, labels or deletion, and its summary changed, in seconds since 1970."""
        return self._times.copy()


class Recorder(IdentityStruct, kw_only=True):
    """Makes the records of decisions, and passes them on. Belongs to the main thread.

    Attributes:
        process: The parts that all records share.
        store: Gets the last record of each binding.
        write_line: Gets each record as a line of the decision log; None without one.
        metrics: Counts records, lost ones, and errors.
        clock: In seconds, never running backwards.
        now: The time of day in seconds since 1970.
        idle: Waits until the scheduling loop has nothing to do, for a second at most.
    """

    process: Process
    store: RecordStore
    write_line: Callable[[bytes], None] | None
    metrics: ExplainMetrics
    clock: Callable[[], float]
    now: Callable[[], float]
    idle: Callable[[], Awaitable[None]]
    _waiting: deque[Decided] = field(default_factory=deque)
    _has_waiting: asyncio.Event = field(default_factory=asyncio.Event)
    _events: dict[BindingKey, str] = field(default_factory=dict)
    _recorded: dict[BindingKey, Decided] = field(default_factory=dict)
    _deleted: deque[tuple[float, BindingKey, int]] = field(default_factory=deque)
    _seq: int = 0
    _next_log: float = 0.0

    def enqueued(self, key: BindingKey, event: str) -> None:
        """Note the event that adds a binding to the queue; the last one counts."""
        self._events[key] = event

    def requeued(self, key: BindingKey, event: str) -> None:
        """Note why a binding is added to the queue again, unless an event has added it meanwhile."""
        self._events.setdefault(key, event)

    def take_event(self, key: BindingKey) -> str:
        """Return the event by which a binding was added, "" without one, and forget it."""
        return self._events.pop(key, "")

    def decided(
        self, binding: Binding, decision: Decision, *, schedule_class: str, event: str, seconds: float
    ) -> Decided:
        """Record a decision. The caller reports the end of the attempt (``ended``).

        Args:
            binding: As it was.
            decision: The decision.
            schedule_class: The kind of scheduling.
            event: See ``take_event``.
            seconds: How long the attempt took until now.
        """
        self._seq += 1
        entry = Decided(binding, decision, schedule_class, event, self.now(), seconds, self._seq)
        waiting = self._waiting
        if len(waiting) >= MAX_WAITING:
            waiting.popleft()
            self.metrics.lost.labels(DROPPED).inc()
        waiting.append(entry)
        self._has_waiting.set()
        return entry

    def ended(self, entry: Decided, ending: str, problem: str = "") -> None:
        """Note how an attempt ended, also after its record was made."""
        entry.ending, entry.problem, entry.ended = ending, problem, self.now()
        if self._recorded.get(entry.binding.key) is entry:
            del self._recorded[entry.binding.key]
            end = record.ending(entry)
            self.store.end(entry.binding.key, entry.seq, end)
            self._log_line(b'{"v":%d,"endOf":%d%b}\n' % (record.VERSION, entry.seq, end))

    def binding_changed(self, old: Binding | None, new: Binding | None) -> None:
        """Forget the record of a deleted binding after ``FORGET_SECONDS``, unless it is created again."""
        if new is None and old is not None and self.store.get(old.key) is not None:
            self._deleted.append((self.clock() + FORGET_SECONDS, old.key, self._seq))

    async def run(self) -> None:
        """Make records until cancelled; then make those that are waiting."""
        try:
            while True:
                await self._has_waiting.wait()
                await self.idle()
                has_more = True
                while has_more:
                    has_more = self._make_some(at_most=_SLICE_SECONDS)
                    await asyncio.sleep(0)
                if not self._waiting:
                    self._has_waiting.clear()
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            while self._waiting:
                self._make(self._waiting.popleft())

    def _make_some(self, *, at_most: float) -> bool:
        """Make records for some seconds; return whether more can be made."""
        start = time.thread_time()
        end, now = self.clock() + at_most, self.now()
        try:
            self._forget_deleted()
            while self._waiting:
                first = self._waiting[0]
                if first.ending is None and 0 <= now - first.at < _PATIENCE:
                    return False
                self._make(self._waiting.popleft())
                if self.clock() >= end:
                    return bool(self._waiting)
            return False
        finally:
            self.metrics.cpu.inc(time.thread_time() - start)

    def _make(self, entry: Decided) -> None:
        """Make one record; an error is counted, and concerns nothing else."""
        key = entry.binding.key
        try:
            evicted = 0 if self._is_repetition(entry) else self._put(entry)
        except Exception:
            self.metrics.errors.labels("record").inc()
            if self.clock() >= self._next_log:
                self._next_log = self.clock() + _LOG_SECONDS
                log.exception("Cannot record the decision about %s", key.display)
            return
        self.metrics.records.inc()
        if evicted:
            self.metrics.lost.labels(EVICTED).inc(evicted)
        if entry.ending is None:
            # The binding and the decision are not needed for the end, but their clusters take much memory.
            entry.decision = Decision(key)
            self._recorded[key] = entry
        else:
            self._recorded.pop(key, None)

    def _put(self, entry: Decided) -> int:
        """Store a record; return how many others were evicted."""
        head, ending = record.head(entry, self.process), record.ending(entry)
        stored = StoredRecord(entry.seq, head, ending, record.result_of(entry))
        if self.write_line is not None:
            self.write_line(stored.body + b"\n")
        return self.store.put(entry.binding.key, stored)

    def _is_repetition(self, entry: Decided) -> bool:
        """Return whether a decision confirms the recorded one, which then stays: it has the reasons for the result."""
        if entry.ending != record.UNCHANGED:
            return False
        stored = self.store.get(entry.binding.key)
        if stored is None or stored.result != record.result_of(entry):
            return False
        repeated = record.repetition(entry, stored.repetitions + 1)
        self.store.repeat(entry.binding.key, repeated)
        self._log_line(b'{"v":%d,"repeats":%d%b}\n' % (record.VERSION, stored.seq, repeated))
        return True

    def _log_line(self, line: bytes) -> None:
        if self.write_line is not None:
            self.write_line(line)

    def _forget_deleted(self) -> None:
        now = self.clock()
        while self._deleted and self._deleted[0][0] <= now:
            _, key, seq = self._deleted.popleft()
            stored = self.store.get(key)
            if stored is not None and stored.seq <= seq:
                self.store.forget(key)
                self._recorded.pop(key, None)

    def waiting(self) -> int:
        """Return the number of decisions that wait to be recorded."""
        return len(self._waiting)
