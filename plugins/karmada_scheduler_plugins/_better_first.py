"""Bindings of better rank that go first, for StrictPriority: those of lower rank stay out of the queue meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler_plugins._room import Rank, rank_of
from karmada_scheduler_plugins._room_ledger import MOST_WOKEN

START_SECONDS: Final = 60.0
"""How long bindings that waited for room when a scheduler ended are let go first, at most."""
_NO_WORD: Final = re.compile(r"[^\w./-]+")


class _Refused(NamedTuple):
    """A binding that a quota has refused: until when it goes first, and the words of the refusal, with the resources."""

    rank: Rank
    until: float
    words: frozenset[str]


class BetterFirst:
    """Those that a quota has refused, by namespace, and those that were waiting for room before a start."""

    def __init__(
        self, *, wake: Callable[[BindingKey], None], now: Callable[[], float], seconds: float
    ) -> None:
        """Start empty; ``seconds`` is how long a refused binding goes first at most, 0 for no end."""
        self._wake, self._now, self._seconds = wake, now, seconds or float("inf")
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._refused: dict[str, dict[BindingKey, _Refused]] = {}
        self._untried: dict[BindingKey, float] = {}
        self._ranks: list[Rank] = []
        self._gated: dict[BindingKey, Rank] = {}

    def refused(self, binding: Binding, text: str) -> None:
        """Note that a quota has refused a binding."""
        words = frozenset(_NO_WORD.split(text))
        known = self._refused.setdefault(binding.key.namespace, {})
        until = known[binding.key].until if binding.key in known else self._now() + self._seconds
        known[binding.key] = _Refused(rank_of(binding), until, words)

    def waited(self, binding: Binding) -> None:
        """Note that a binding was waiting for room before the start, and has not been tried since."""
        self._untried[binding.key] = self._now() + START_SECONDS
        heappush(self._ranks, rank_of(binding))
        self._wake(binding.key)

    def tried(self, key: BindingKey) -> None:
        """Note that a binding has been tried since the start."""
        if self._untried.pop(key, None) is not None:
            self._wake_gated()

    def refused_no_more(self, key: BindingKey) -> None:
        """Note that no quota refuses a binding any more."""
        if self._refused and (known := self._refused.get(key.namespace)) and known.pop(key, None) is not None:
            if not known:
                del self._refused[key.namespace]
            self._wake_gated(key.namespace)

    def before(self, binding: Binding) -> tuple[BindingKey, str] | None:
        """Return which binding goes before one, and why; None if none does."""
        if not self._refused and not self._untried:
            return None
        rank, now, spec = rank_of(binding), self._now(), binding.spec
        if not spec.is_workload or (
            spec.clusters and sum(each.replicas for each in spec.clusters) >= spec.replicas
        ):
            return None
        found = self._first_untried(rank, now) or self._first_refused(binding, rank, now)
        if found is not None:
            self._gated[binding.key] = rank
        return found

    def _first_untried(self, rank: Rank, now: float) -> tuple[BindingKey, str] | None:
        ranks = self._ranks
        while ranks and self._untried.get(ranks[0][2], 0.0) <= now:
            self._untried.pop(heappop(ranks)[2], None)
        return (
            (ranks[0][2], "it was waiting for room before this scheduler started")
            if ranks and ranks[0] < rank
            else None
        )

    def _first_refused(self, binding: Binding, rank: Rank, now: float) -> tuple[BindingKey, str] | None:
        needs = binding.spec.replica_requirements
        asked = needs.resource_request.keys() if needs is not None else ()
        for key, each in self._refused.get(binding.key.namespace, {}).items():
            if each.rank < rank and now < each.until and not each.words.isdisjoint(asked):
                return key, "a quota refuses it"
        return None

    def _wake_gated(self, namespace: str | None = None) -> None:
        gated = [each for each in self._gated.items() if namespace in (None, each[0].namespace)]
        for key, _ in sorted(gated, key=itemgetter(1))[:MOST_WOKEN]:
            del self._gated[key]
            self._wake(key)
