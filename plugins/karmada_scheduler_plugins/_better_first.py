"""Bindings of better rank that go first, for StrictPriority: those of lower rank stay out of the queue meanwhile."""

from __future__ import annotations

import math
import re
from operator import itemgetter
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework import Handle
from karmada_scheduler_plugins._held_capacity import Rank, rank_of

EVERYWHERE: Final = "*"
"""The scope of bindings that all others let go first; the other scopes are namespaces."""
START_SECONDS: Final = 60.0
"""How long those that waited for capacity before a start go first, at most."""
_NO_WORD: Final = re.compile(r"[^\w./-]+")


class _First(NamedTuple):
    """A binding that goes first: until when, and before whom, by the resources that a text names; all if it is empty."""

    rank: Rank
    until: float
    words: frozenset[str]


class BetterFirst:
    """Those that a quota has refused, by namespace, and those that were waiting for capacity before a start."""

    def __init__(self, handle: Handle) -> None:
        """Start empty."""
        self._handle = handle
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._first: dict[str, dict[BindingKey, _First]] = {}
        self._gated: dict[BindingKey, Rank] = {}

    def put(self, scope: str, binding: Binding, seconds: float, text: str = "") -> None:
        """Let a binding go first for so many seconds, 0 for no end; one that goes first already keeps its end."""
        firsts = self._first.setdefault(scope, {})
        if (known := firsts.get(binding.key)) is not None:
            until = known.until
        else:
            until = self._handle.now() + seconds if seconds else math.inf
        words = frozenset(filter(None, _NO_WORD.split(text)))
        firsts[binding.key] = _First(rank_of(binding), until, words)

    def drop(self, scope: str, key: BindingKey) -> None:
        """Let a binding go first no more, and enqueue the bindings that were kept out of the queue for it."""
        if (known := self._first.get(scope)) is None or known.pop(key, None) is None:
            return
        if not known:
            del self._first[scope]
        gated = [gate for gate in self._gated.items() if scope in (EVERYWHERE, gate[0].namespace)]
        for waiting, _ in sorted(gated, key=itemgetter(1)):
            del self._gated[waiting]
            self._handle.enqueue(waiting)

    def forget(self, key: BindingKey) -> None:
        """Drop a binding that was deleted."""
        self._gated.pop(key, None)
        for scope in (EVERYWHERE, key.namespace):
            self.drop(scope, key)

    def before(self, binding: Binding) -> BindingKey | None:
        """Return a binding that goes before one that needs capacity; None if none does."""
        spec = binding.spec
        if not self._first or not spec.is_workload:
            return None
        if spec.clusters and sum(target.replicas for target in spec.clusters) >= spec.replicas:
            return None
        rank, now, requirements = rank_of(binding), self._handle.now(), spec.replica_requirements
        asked = requirements.resource_request.keys() if requirements is not None else ()
        for scope in (EVERYWHERE, binding.key.namespace):
            for key, each in self._first.get(scope, {}).items():
                concerns = not each.words or not each.words.isdisjoint(asked)
                if each.rank < rank and now < each.until and concerns:
                    if not each.words:  # of a leader that waited to lead the time begins now
                        self._first[scope][key] = each._replace(until=min(each.until, now + START_SECONDS))
                    self._gated[binding.key] = rank
                    return key
        return None
