"""The last full decisions, and the last failures: every refusal and every candidate, without the clusters themselves.

A decision refers to the clusters as they were, 2 to 4 kB each. A full decision keeps names and numbers only, which it
shares with the caches of the algorithm as long as no cluster changes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from karmada_scheduler.api.binding import BindingKey, TargetCluster
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.decision import TermAttempt, deciding_attempts
from karmada_scheduler.core.ordering.columnar import LazyCandidateList, TierScore
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.result import Result
from karmada_scheduler.records.record import Decided, encode
from karmada_scheduler.records.refusals import grouped
from karmada_scheduler.structs import Struct

MAX_DECISIONS: Final = 32
MAX_FAILURES: Final = 64

_BYTES: Final = 4_000
"""The memory of a full decision without the parts that it may share."""
_BYTES_PER_ENTRY: Final = 130
"""The memory of a name in a mapping, or of a row (measured)."""
_BYTES_PER_NUMBER: Final = 16

_AT_ONCE: Final = 100
"""Clusters in a part of the JSON text; another thread may run between two parts."""

Row = tuple[str, int, int, int, int]
"""Name, score, tier, available replicas, and replicas that can be added."""


def _row(candidate: Candidate) -> Row:
    return candidate.cluster.name, candidate.score, candidate.tier, candidate.available, candidate.allocatable


class _Columns(Struct, frozen=True):
    """The candidates of a cached order; see ``core.ordering.columnar.LazyCandidateList``."""

    rows: Mapping[str, int]
    tier_scores: Sequence[TierScore]
    available: Column
    order: Column
    overrides: Sequence[Row]

    def __len__(self) -> int:
        return len(self.order)

    def memory(self) -> Iterator[tuple[object, int]]:
        """Yield the parts with their sizes in bytes."""
        yield self.rows, _BYTES_PER_ENTRY * len(self.rows)
        for column in (self.tier_scores, self.available, self.order):
            yield column, _BYTES_PER_NUMBER * len(column)

    def __iter__(self) -> Iterator[Row]:
        names, count = list(self.rows), len(self.available)
        for row in self.order.tolist():
            if row >= count:
                yield self.overrides[row - count]
            else:
                tier, score = self.tier_scores[row]
                free = self.available.item(row)
                yield names[row], score, tier, free, free


def _candidates(candidates: Sequence[Candidate]) -> _Columns | Sequence[Row]:
    if isinstance(candidates, LazyCandidateList):
        feasible = candidates.feasible
        return _Columns(
            feasible.rows,
            feasible.tier_scores,
            candidates.available,
            candidates.order,
            tuple(map(_row, candidates.overrides)),
        )
    return tuple(map(_row, candidates))


class _FullAttempt(Struct, frozen=True):
    """One affinity term; see ``core.decision.TermAttempt``."""

    term: str
    refused: Mapping[str, Result]
    candidates: _Columns | Sequence[Row]
    selected: _Columns | Sequence[Row]
    targets: Sequence[TargetCluster] | None
    error: str

    @classmethod
    def of(cls, attempt: TermAttempt) -> _FullAttempt:
        candidates = _candidates(attempt.candidates)
        return cls(
            attempt.affinity_name,
            attempt.diagnosis.result_by_cluster,
            candidates,
            candidates if attempt.selected is attempt.candidates else _candidates(attempt.selected),
            attempt.targets,
            "" if attempt.error is None else str(attempt.error),
        )

    def memory(self) -> Iterator[tuple[object, int]]:
        """Yield the parts that other decisions may share, with their sizes in bytes."""
        yield self.refused, _BYTES_PER_ENTRY * len(self.refused)
        for candidates in (self.candidates, self.selected):
            if isinstance(candidates, _Columns):
                yield from candidates.memory()
            else:
                yield candidates, _BYTES_PER_ENTRY * len(candidates)

    def parts(self) -> Iterator[bytes]:
        """Yield the JSON object in parts of at most ``_AT_ONCE`` clusters."""
        yield b'{"term":%b,"refused":[' % encode(self.term or None)
        separator = b""
        for group in grouped(self.refused):
            for begin in range(0, len(group.clusters), _AT_ONCE):
                names = group.clusters[begin : begin + _AT_ONCE]
                yield separator + encode({"by": group.plugin, "why": group.reason, "names": names})
                separator = b","
        yield b'],"candidates":['
        rows, separator = iter(self.candidates), b""
        while some := tuple(islice(rows, _AT_ONCE)):
            yield separator + encode(some)[1:-1]
            separator = b","
        yield b'],"selected":['
        rows, separator = iter(self.selected), b""
        while some := tuple(islice(rows, _AT_ONCE)):
            yield separator + encode([name for name, *_ in some])[1:-1]
            separator = b","
        rest = {
            "targets": None if self.targets is None else {each.name: each.replicas for each in self.targets},
            "error": self.error or None,
        }
        yield b"]," + encode(rest)[1:]


class FullDecision:
    """One decision with all clusters of all its attempts.

    Attributes:
        seq: The number of its record.
        sizes: The parts of it that other decisions may share, by identity, with their sizes in bytes.
    """

    def __init__(self, decided: Decided) -> None:
        """Take names and numbers from a decision."""
        self.seq: Final = decided.seq
        self._attempts = tuple(map(_FullAttempt.of, deciding_attempts(decided.decision)[0]))
        self.sizes: Final[Mapping[int, int]] = {
            id(part): size for attempt in self._attempts for part, size in attempt.memory()
        }

    def parts(self) -> Iterator[bytes]:
        """Yield the JSON object in parts, each of which takes less than a millisecond.

        ``refused`` has each reason with all names, a reason with many names more than once. A row of ``candidates`` has
        the name, the score, the tier, the available replicas, and the replicas that can be added.
        """
        yield b'{"seq":%d,"attempts":[' % self.seq
        for index, attempt in enumerate(self._attempts):
            yield b"," if index else b""
            yield from attempt.parts()
        yield b"]}"


class FullDecisions:
    """The last decisions, and the last failures of other bindings, within a number and a size."""

    def __init__(self, *, max_bytes: int) -> None:
        """Start empty, with a limit for the estimated memory of all; shared parts count once."""
        self._max_bytes = max_bytes
        self._last: OrderedDict[BindingKey, FullDecision] = OrderedDict()
        self._failures: OrderedDict[BindingKey, FullDecision] = OrderedDict()
        self._size = 0
        self._uses: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The estimated memory in bytes."""
        return self._size

    def __len__(self) -> int:
        """The number of full decisions."""
        return len(self._last) + len(self._failures)

    def put(self, decided: Decided) -> None:
        """Keep a decision; the oldest ones are dropped."""
        full, key = FullDecision(decided), decided.binding.key
        with self._lock:
            self._drop(self._last, key)
            self._drop(self._failures, key)
            kept = self._last if decided.decision.is_success else self._failures
            kept[key] = full
            self._add(full)
            while len(self._last) > MAX_DECISIONS:
                self._drop(self._last, next(iter(self._last)))
            while len(self._failures) > MAX_FAILURES:
                self._drop(self._failures, next(iter(self._failures)))
            while self._size > self._max_bytes:
                oldest = min(
                    (each for each in (self._last, self._failures) if each),
                    key=lambda each: next(iter(each.values())).seq,
                )
                self._drop(oldest, next(iter(oldest)))

    def get(self, key: BindingKey) -> FullDecision | None:
        """Return the last full decision about a binding, None if it is not kept."""
        with self._lock:
            return self._last.get(key) or self._failures.get(key)

    def forget(self, key: BindingKey) -> None:
        """Drop the decision about a binding."""
        with self._lock:
            self._drop(self._last, key)
            self._drop(self._failures, key)

    def _drop(self, kept: OrderedDict[BindingKey, FullDecision], key: BindingKey) -> None:
        dropped = kept.pop(key, None)
        if dropped is None:
            return
        self._size -= _BYTES
        for part, size in dropped.sizes.items():
            uses = self._uses[part] - 1
            if uses:
                self._uses[part] = uses
            else:
                del self._uses[part]
                self._size -= size

    def _add(self, full: FullDecision) -> None:
        self._size += _BYTES
        for part, size in full.sizes.items():
            uses = self._uses.get(part, 0)
            self._uses[part] = uses + 1
            if not uses:
                self._size += size
