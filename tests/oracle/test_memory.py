"""What is remembered does not show: a short run of ``make fuzz-memory``."""

from __future__ import annotations

import pytest

from karmada_scheduler.framework.memo import Verdicts
from tests.oracle import memory


def last(seed: int, steps: int) -> memory.Tally:
    *_, tally = memory.run(seed, steps)
    return tally


def test_decisions_are_the_same_with_and_without_a_memory() -> None:
    tally = last(seed=4, steps=24)
    assert tally.decisions > 200
    assert tally.different == []


def test_a_stale_memory_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    refresh = Verdicts.refresh

    def once(self: Verdicts, *arguments: object) -> None:
        if not len(self):
            refresh(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Verdicts, "refresh", once)
    assert last(seed=4, steps=24).different
