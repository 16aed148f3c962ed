"""Caches do not change decisions: a short run of ``make fuzz-cache``."""

from __future__ import annotations

import pytest

from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from tools.oracle import cache_fuzz


def last(seed: int, steps: int, *, clusters: int = 0) -> cache_fuzz.Tally:
    *_, tally = cache_fuzz.run(seed, steps, clusters=clusters)
    return tally


def test_decisions_are_equal_with_and_without_caches() -> None:
    tally = last(seed=4, steps=24)
    assert tally.decisions > 200
    assert tally.different == []


@pytest.mark.parametrize(("clusters", "steps"), [(60, 12), (600, 6)])
def test_decisions_over_many_clusters_are_equal_with_and_without_caches(clusters: int, steps: int) -> None:
    tally = last(seed=5, steps=steps, clusters=clusters)
    assert tally.decisions > 50
    assert tally.different == []


def test_a_stale_cache_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    refresh = FilterResults.refresh

    def once(self: FilterResults, *arguments: object) -> None:
        if not len(self):
            refresh(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FilterResults, "refresh", once)
    assert last(seed=4, steps=24).different
