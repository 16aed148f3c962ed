"""The ledger of moves that are decided, and of which it is not known yet whether they are stored.

A move counts from Reserve until the binding is seen with it, or is known not to have it. If the answer to its write is lost,
the next version of the binding tells: the write names the version that it is based on, so it cannot be stored after another
one. PlacementGuard and FailBack count with this ledger, each by its own annotation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework import BindContext, Handle

LOST_SECONDS: Final = 300.0
"""How long a move counts whose answer was lost if no other version of its binding is seen. The API server ends a request
after one minute, and a watch that delivers nothing for so long is reported as a problem."""


class UnderWay(NamedTuple):
    """A move that may be stored or not.

    Attributes:
        text: The annotation that is written with it.
        leaves_gracefully: Whether eviction tasks are written with it.
        version: The version of the binding that was known when the answer was lost; -1 while it is being written.
        expires: When it does not count any more, in seconds since 1970; 0 while it is being written.
    """

    text: str
    leaves_gracefully: bool
    version: int = -1
    expires: float = 0.0


class MovesUnderWay:
    """The moves under way of the bindings of a profile."""

    def __init__(self, handle: Handle, annotation: str, on_change: Callable[[BindingKey], None]) -> None:
        """Start with none.

        Args:
            handle: Has the bindings and the time.
            annotation: The name of the annotation that is written with each move.
            on_change: Called with the key of a binding whose ``of`` may be another one.
        """
        self._handle = handle
        self._annotation = annotation
        self._on_change = on_change
        self._being_written: dict[BindingKey, UnderWay] = {}
        self._lost: dict[BindingKey, UnderWay] = {}
        self._latest = -math.inf

    def __contains__(self, key: BindingKey) -> bool:
        return key in self._being_written or key in self._lost

    def begin(self, context: BindContext) -> None:
        """Count a move from now on."""
        text = context.annotations.get(self._annotation)
        if text:
            key = context.binding.key
            self._being_written[key] = UnderWay(text, bool(context.eviction_tasks))
            self._on_change(key)

    def end_stored(self, context: BindContext) -> None:
        """Stop counting a move, because the binding is known with it."""
        key = context.binding.key
        counted = self.of(key) is not None
        self._being_written.pop(key, None)
        self._lost.pop(key, None)
        if counted:
            self._on_change(key)

    def end_failed(self, context: BindContext) -> None:
        """Stop counting a move that was not written, or count it until it is known whether it is stored.

        An earlier move of the binding whose answer was lost counts on.
        """
        key = context.binding.key
        move = self._being_written.pop(key, None)
        if move is None:
            return
        if context.may_be_stored:
            known = self._handle.binding(key)
            version = int((known or context.binding).resource_version)
            self._lost.pop(key, None)  # the last one comes last
            self._lost[key] = move._replace(version=version, expires=self._handle.now() + LOST_SECONDS)
        self._on_change(key)

    def expire(self, now: float) -> None:
        """Stop counting the moves of which nothing was heard for too long; to be called before they count."""
        if now < self._latest:  # the clock was set back
            latest = now + LOST_SECONDS
            self._lost = {
                key: move._replace(expires=min(move.expires, latest)) for key, move in self._lost.items()
            }
        self._latest = now
        while self._lost:
            key, move = next(iter(self._lost.items()))
            if now < move.expires:
                return
            del self._lost[key]
            self._on_change(key)

    def of(self, key: BindingKey) -> UnderWay | None:
        """Return the move of a binding that is under way, None without one."""
        move, lost = self._being_written.get(key), self._lost.get(key)
        if move is None and lost is None:
            return None
        known = self._handle.binding(key)
        if move is not None and not self._is_seen(known, move):
            return move
        if lost is None or known is None or int(known.resource_version) > lost.version:
            return None
        return None if self._is_seen(known, lost) else lost

    def _is_seen(self, binding: Binding | None, move: UnderWay) -> bool:
        return binding is not None and binding.annotations.get(self._annotation) == move.text


class FirstSeen:
    """When an annotation of a binding was seen first that counts from then on: unreadable, or with a time in the future."""

    def __init__(self) -> None:
        """Start without any."""
        self._seen: dict[BindingKey, tuple[int, float]] = {}

    def at(self, key: BindingKey, text: str, now: float) -> float:
        """Return when this text of a binding was seen first, in seconds since 1970; ``now`` if that is now."""
        known = self._seen.get(key)
        if known is None or known[0] != hash(text) or known[1] > now:
            known = self._seen[key] = hash(text), now
        return known[1]

    def forget(self, key: BindingKey) -> None:
        """Drop a binding that does not exist any more, or has no such annotation."""
        self._seen.pop(key, None)
