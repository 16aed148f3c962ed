"""The budgets of PlacementGuard: how much has moved, and whether another move is within them.

What has moved is in an annotation of each binding, which is written in the patch of the move; until it is known to be
stored, or not, the move is in ``_moves_under_way``. The index of the bindings that have moves is only a shortcut: it is
built from all bindings at the first use and once a minute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey, GracefulEvictionTask
from karmada_scheduler.api.own_annotations import LAST_MOVE, RecordedMove, Unreadable, moves_in
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.framework import Handle
from karmada_scheduler_plugins._guard_args import MoveBudget
from karmada_scheduler_plugins._moves_under_way import FirstSeen, MovesUnderWay

SCAN_SECONDS: Final = 60.0
"""After this time the bindings are scanned again."""
UNSTAMPED_SECONDS: Final = 60.0
"""Karmada's graceful-eviction controller stamps a new task within seconds, if it runs."""
UNSTAMPED_BINDINGS: Final = 2
"""So many bindings with tasks that are not stamped show that the controller does not run. One of them alone may have a
problem of its own."""
AT_ONCE_SECONDS: Final = 30.0
"""The delay of a decision that waits for the end of graceful moves."""

Scope = tuple[str, str]
"""The scope of a budget, and the namespace or the id of the policy; "" for a profile."""


class Wait(NamedTuple):
    """Why a move would exceed a budget, and for how many seconds at least."""

    reason: str
    seconds: float


class MoveBooks:
    """The moves of the bindings of a profile.

    Attributes:
        under_way: The moves that are decided and not known to be stored.
    """

    def __init__(self, handle: Handle, budgets: Sequence[MoveBudget]) -> None:
        """Start without a scan; the caches may not be filled yet."""
        self.under_way: Final = MovesUnderWay(handle, LAST_MOVE)
        self._handle = handle
        self._budgets = budgets
        self._kept_seconds = max((budget.window.total_seconds() for budget in budgets), default=0.0)
        self._by_scope: dict[Scope, set[BindingKey]] = {}
        self._leaving: set[BindingKey] = set()
        self._replicas: dict[Scope, int] = {}
        self._first_seen = FirstSeen(handle)
        self._scanned: float | None = None

    def recent(self, binding: Binding, now: float) -> tuple[RecordedMove, ...]:
        """Return the stored moves of a binding within the longest window, none of them in the future.

        If its annotation cannot be read, one move of all its replicas counts for the binding itself, and none for others.
        """
        text = binding.annotations.get(LAST_MOVE, "")
        found = moves_in(text)
        if isinstance(found, Unreadable):
            replicas = sum(each.replicas for each in binding.spec.clusters)
            found = (RecordedMove(self._first_seen.at(binding.key, text, now), replicas),)
        return self._recent(binding.key, text, found, now)

    def wait_for(self, binding: Binding, replicas: int, now: float) -> Wait | None:
        """Return why a binding may not move a number of replicas now, None if it may.

        Its own move under way does not count: at most one of the two is stored.
        """
        if not self._budgets:
            return None
        self._scan_if_due(now)
        waits = [
            wait
            for budget in self._budgets
            for scope in _scopes(binding, budget.scope)
            if (wait := self._wait(budget, scope, binding, replicas, now)) is not None
        ]
        return max(waits, key=lambda wait: wait.seconds, default=None)

    def note(self, binding: Binding) -> None:
        """Look at the moves of a binding from now on."""
        for scope in self._all_scopes(binding):
            self._by_scope.setdefault(scope, set()).add(binding.key)
        self._leaving.add(binding.key)

    def controller_is_off(self, now: float) -> bool:
        """Return whether tasks of this profile were not stamped in time: the controller that ends tasks does not run."""
        self._scan_if_due(now)
        leaving = [(each, tasks) for each in self._known(self._leaving) if (tasks := self._own_tasks(each))]
        stamps = [_seconds_of(task.creation_timestamp) for _, tasks in leaving for task in tasks]
        last_stamp = max((stamp for stamp in stamps if stamp <= now), default=0.0)
        late = 0
        for binding, tasks in leaving:
            moves = moves_in(binding.annotations.get(LAST_MOVE, ""))
            if isinstance(moves, Unreadable) or not moves or all(task.creation_timestamp for task in tasks):
                continue
            late += last_stamp - UNSTAMPED_SECONDS < moves[-1].at < now - UNSTAMPED_SECONDS
        return late >= UNSTAMPED_BINDINGS

    def _wait(
        self, budget: MoveBudget, scope: Scope, binding: Binding, replicas: int, now: float
    ) -> Wait | None:
        window = budget.window.total_seconds()
        others = self._by_scope.get(scope, set()) - {binding.key}
        counted = [
            *self.recent(binding, now),
            *(each for key in others for each in self._moves(key, window, now)),
        ]
        moves = sorted(each for each in counted if each.at > now - window)
        name = f"the budget {scope[0]} {scope[1]}".strip()
        if budget.at_once is not None:
            leaving = sum(self._leaves(key) for key in others)
            if leaving >= budget.at_once:
                reason = f"{name} ({leaving} of {budget.at_once} bindings leave clusters now)"
                return Wait(reason, AT_ONCE_SECONDS)
        most = self._most_replicas(budget, scope)
        shown = _window_text(window)
        for count in range(len(moves) + 1):
            counted = moves[count:]
            used = sum(each.replicas for each in counted)
            is_bound = budget.bindings is not None and len(counted) >= budget.bindings
            is_over = most is not None and bool(counted) and used + replicas > most
            if not is_bound and not is_over:
                if count == 0:
                    return None
                seconds = max(1.0, moves[count - 1].at + window - now)
                return Wait(f"{name} ({_limits_text(budget, most)} in {shown})", seconds)
        raise AssertionError("an empty budget allows one move")

    def _most_replicas(self, budget: MoveBudget, scope: Scope) -> int | None:
        limits = [] if budget.replicas is None else [budget.replicas]
        if budget.percent is not None:
            limits.append(max(1, self._replicas.get(scope, 0) * budget.percent // 100))
        return min(limits, default=None)

    def _moves(self, key: BindingKey, window: float, now: float) -> Sequence[RecordedMove]:
        """Return the moves of another binding; one that is under way does not become too old to count."""
        move, binding = self.under_way.of(key), self._handle.binding(key)
        text = move.text if move is not None else binding.annotations.get(LAST_MOVE, "") if binding else ""
        found = moves_in(text)
        if isinstance(found, Unreadable):
            return ()
        moves = self._recent(key, text, found, now)
        if move is None or (moves and moves[-1].at > now - window):
            return moves
        return [RecordedMove(now, found[-1].replicas if found else 0)]

    def _recent(
        self, key: BindingKey, text: str, moves: tuple[RecordedMove, ...], now: float
    ) -> tuple[RecordedMove, ...]:
        if moves and moves[-1].at > now:
            seen = self._first_seen.at(key, text, now)
            moves = tuple(RecordedMove(min(each.at, seen), each.replicas) for each in moves)
        return tuple(each for each in moves if each.at > now - self._kept_seconds)

    def _leaves(self, key: BindingKey) -> bool:
        """Return whether a binding leaves clusters gracefully, or is about to."""
        move, binding = self.under_way.of(key), self._handle.binding(key)
        will_leave = move is not None and move.leaves_gracefully
        return will_leave or (binding is not None and bool(self._own_tasks(binding)))

    def _scan_if_due(self, now: float) -> None:
        if self._scanned is not None and 0 <= now - self._scanned < SCAN_SECONDS:
            return
        self._scanned = now
        self._by_scope, self._leaving, self._replicas = {}, set(), {}
        self._first_seen.forget_deleted()
        under_way = self.under_way.keys()
        counts_replicas = any(budget.percent is not None for budget in self._budgets)
        for binding in self._handle.bindings():
            if binding.spec.responsible_scheduler != self._handle.profile:
                continue
            if counts_replicas:
                for scope in self._all_scopes(binding):
                    self._replicas[scope] = self._replicas.get(scope, 0) + binding.spec.replicas
            if (
                LAST_MOVE in binding.annotations
                or binding.key in under_way
                or (binding.spec.graceful_eviction_tasks and self._own_tasks(binding))
            ):
                self.note(binding)

    def _all_scopes(self, binding: Binding) -> Iterable[Scope]:
        return [scope for budget in self._budgets for scope in _scopes(binding, budget.scope)]

    def _known(self, keys: Iterable[BindingKey]) -> list[Binding]:
        return [binding for key in keys if (binding := self._handle.binding(key)) is not None]

    def _own_tasks(self, binding: Binding) -> list[GracefulEvictionTask]:
        return [
            each for each in binding.spec.graceful_eviction_tasks if each.producer == self._handle.profile
        ]


def _seconds_of(timestamp: str) -> float:
    """Return a time in the API's format in seconds since 1970; infinity for none, and for one that cannot be read."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return math.inf


def _scopes(binding: Binding, scope: str) -> list[Scope]:
    """Return the scope of a binding; none if it has no policy."""
    if scope == "profile":
        return [(scope, "")]
    if scope == "namespace":
        return [(scope, binding.key.namespace)]
    policy = binding.labels.get(POLICY_ID_LABEL) or binding.labels.get(CLUSTER_POLICY_ID_LABEL)
    return [(scope, policy)] if policy else []


def _limits_text(budget: MoveBudget, most: int | None) -> str:
    texts = [] if budget.bindings is None else [f"{budget.bindings} bindings"]
    if most is not None:
        texts.append(f"{most} replicas")
    return ", ".join(texts)


def _window_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m" if not rest else f"{int(seconds)}s"
