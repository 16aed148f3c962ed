"""The last record of each binding, within a number and a size.

The main thread stores records, and the thread of the HTTP server reads them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import BindingKey
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
