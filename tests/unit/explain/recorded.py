"""A recorder with clocks of the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.records.recorder import Recorder, RecordStore
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.records import record
from karmada_scheduler.records.record import Decided, Process
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, decide
from tests.unit.explain.record_schema import problems

AT = 1_795_000_000.0


def decided(builder: BindingBuilder, *clusters: ClusterBuilder, **fields: Any) -> Decided:
    """Return the decision about a binding, as the scheduler passes it to the recorder."""
    entry = Decided(builder.build(), decide(builder, *clusters), "First", "BindingAdd", AT, 0.002, 1)
    return replace(entry, **fields)


def read(entry: Decided, process: Process | None = None) -> dict[str, Any]:
    """Return the fields of the record of a decision, which are those of the schema."""
    body = record.head(entry, process or Process()) + record.ending(entry) + b"}"
    assert b"\n" not in body
    found: dict[str, Any] = json.loads(body)
    assert list(problems(found)) == []
    return found


class RecorderHarness:
    """A recorder whose queue is always idle, and its surroundings."""

    def __init__(self, *, max_bytes: int = 2**20, max_records: int = 100) -> None:
        self.now = 100.0
        self.lines: list[dict[str, Any]] = []
        self.store = RecordStore(max_bytes=max_bytes, max_records=max_records)
        self.metrics = Metrics().explain
        self.process = Process(name="pod")
        self.recorder = Recorder(
            process=self.process,
            store=self.store,
            write_line=lambda line: self.lines.append(json.loads(line)),
            metrics=self.metrics,
            clock=lambda: self.now,
            now=lambda: AT + self.now,
            idle=lambda: asyncio.sleep(0),
        )

    def decide(self, name: str, ending: str | None = "written") -> Decided:
        """Record a decision that needs no clusters."""
        built = binding(name).build()
        entry = self.recorder.decided(
            built, Decision(built.key), schedule_class="First", event="BindingAdd", seconds=0.0
        )
        if ending is not None:
            self.recorder.ended(entry, ending)
        return entry

    def make(self) -> None:
        """Make the records that can be made now."""
        self.recorder._make_some(at_most=1.0)

    def names(self) -> Sequence[str]:
        """Return the names of the bindings with records, in the order of these."""
        keys = [json.loads(each.body)["key"] for each in self.store.last(1000)]
        return [key.removeprefix("default/").removesuffix("-deployment") for key in keys]

    def lost(self, reason: str) -> float:
        """Return how many records were lost for a reason."""
        return float(self.metrics.lost.labels(reason)._value.get())
