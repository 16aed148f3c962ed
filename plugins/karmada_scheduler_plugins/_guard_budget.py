"""The budgets of PlacementGuard: how much has moved, and whether another move is within them.

What has moved is in an annotation of each binding, which is written in the patch of the move. The index of the bindings
that have one is only a shortcut: it is built from all bindings at the first use and once a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey, GracefulEvictionTask
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.framework import Handle
from karmada_scheduler_plugins._guard_args import Budget
from karmada_scheduler_plugins._guard_records import LAST_MOVE, Recorded, moves_in

SCAN_SECONDS: Final = 60.0
"""After this time the bindings are scanned again."""
UNKNOWN_SECONDS: Final = 30.0
"""How long a move counts that was not confirmed; its answer may be lost while the patch was stored."""
UNSTAMPED_SECONDS: Final = 60.0
"""Karmada's graceful-eviction controller stamps a new task within seconds, if it runs."""
AT_ONCE_SECONDS: Final = 30.0
"""The delay of a decision that waits for the end of graceful moves."""

Scope = tuple[str, str]
"""The scope of a budget, and the namespace or the id of the policy; "" for a profile."""


class Wait(NamedTuple):
    """Why a move would exceed a budget, and for how many seconds at least."""

    reason: str
    seconds: float


class _Pending(NamedTuple):
    moves: tuple[Recorded, ...]
    expires: float | None


class MoveBooks:
    """The moves of the bindings of a profile."""

    def __init__(self, handle: Handle, budgets: Sequence[Budget]) -> None:
        """Start without a scan; the caches may not be filled yet."""
        self._handle = handle
        self._budgets = budgets
        self._kept_seconds = max((budget.window.total_seconds() for budget in budgets), default=0.0)
        self._by_scope: dict[Scope, set[BindingKey]] = {}
        self._leaving: set[BindingKey] = set()
        self._replicas: dict[Scope, int] = {}
        self._pending: dict[BindingKey, _Pending] = {}
        self._scanned: float | None = None

    def recent(self, binding: Binding, now: float) -> tuple[Recorded, ...]:
        """Return the stored moves of a binding within the longest window; one in the future counts as now."""
        found = moves_in(binding.annotations.get(LAST_MOVE, ""))
        return tuple(
            Recorded(min(each.at, now), each.replicas) for each in found if each.at > now - self._kept_seconds
        )

    def wait_for(self, binding: Binding, replicas: int, now: float) -> Wait | None:
        """Return why a binding may not move a number of replicas now, None if it may."""
        if not self._budgets:
            return None
        self._scan_if_due(now)
        waits = [
            wait
            for budget in self._budgets
            for scope in _scopes(binding, budget.scope)
            if (wait := self._wait(budget, scope, binding.key, replicas, now)) is not None
        ]
        return max(waits, key=lambda wait: wait.seconds, default=None)

    def note(self, binding: Binding) -> None:
        """Look at the moves of a binding from now on; they count as soon as they are stored."""
        self._index(binding)

    def begin(self, binding: Binding, moves: tuple[Recorded, ...]) -> None:
        """Count the moves of a binding, which are about to be written."""
        self._pending[binding.key] = _Pending(moves, None)
        self._index(binding)

    def end(self, key: BindingKey, *, is_stored: bool) -> None:
        """Count the moves of a binding as they are stored; if it is unknown whether they are, for a while as well."""
        pending = self._pending.pop(key, None)
        if pending is not None and not is_stored:
            self._pending[key] = _Pending(pending.moves, self._handle.now() + UNKNOWN_SECONDS)

    def controller_is_off(self, now: float) -> bool:
        """Return whether a task of this profile was not stamped in time: the controller that ends tasks does not run."""
        self._scan_if_due(now)
        for binding in self._known(self._leaving):
            moves = moves_in(binding.annotations.get(LAST_MOVE, ""))
            is_old = bool(moves) and moves[-1].at < now - UNSTAMPED_SECONDS
            if is_old and any(not task.creation_timestamp for task in self._own_tasks(binding)):
                return True
        return False

    def _wait(self, budget: Budget, scope: Scope, own: BindingKey, replicas: int, now: float) -> Wait | None:
        window = budget.window.total_seconds()
        keys = self._by_scope.get(scope, set())
        moves = sorted(each for key in keys for each in self._moves(key, now) if each.at > now - window)
        name = f"the budget {scope[0]} {scope[1]}".strip()
        if budget.at_once is not None:
            leaving = [
                each
                for each in self._known(self._leaving & keys)
                if each.key != own and self._own_tasks(each)
            ]
            if len(leaving) >= budget.at_once:
                reason = f"{name} ({len(leaving)} of {budget.at_once} bindings leave clusters now)"
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

    def _most_replicas(self, budget: Budget, scope: Scope) -> int | None:
        limits = [] if budget.replicas is None else [budget.replicas]
        if budget.percent is not None:
            limits.append(max(1, self._replicas.get(scope, 0) * budget.percent // 100))
        return min(limits, default=None)

    def _moves(self, key: BindingKey, now: float) -> tuple[Recorded, ...]:
        pending = self._pending.get(key)
        if pending is not None and (pending.expires is None or pending.expires > now):
            return pending.moves
        binding = self._handle.binding(key)
        return () if binding is None else self.recent(binding, now)

    def _scan_if_due(self, now: float) -> None:
        if self._scanned is not None and 0 <= now - self._scanned < SCAN_SECONDS:
            return
        self._scanned = now
        self._by_scope, self._leaving, self._replicas = {}, set(), {}
        counts_replicas = any(budget.percent is not None for budget in self._budgets)
        for binding in self._handle.bindings():
            if binding.spec.responsible_scheduler != self._handle.profile:
                continue
            if counts_replicas:
                for scope in self._all_scopes(binding):
                    self._replicas[scope] = self._replicas.get(scope, 0) + binding.spec.replicas
            if LAST_MOVE in binding.annotations or binding.key in self._pending:
                self._index(binding)

    def _index(self, binding: Binding) -> None:
        for scope in self._all_scopes(binding):
            self._by_scope.setdefault(scope, set()).add(binding.key)
        self._leaving.add(binding.key)

    def _all_scopes(self, binding: Binding) -> Iterable[Scope]:
        return [scope for budget in self._budgets for scope in _scopes(binding, budget.scope)]

    def _known(self, keys: Iterable[BindingKey]) -> list[Binding]:
        return [binding for key in keys if (binding := self._handle.binding(key)) is not None]

    def _own_tasks(self, binding: Binding) -> list[GracefulEvictionTask]:
        return [
            each for each in binding.spec.graceful_eviction_tasks if each.producer == self._handle.profile
        ]


def _scopes(binding: Binding, scope: str) -> list[Scope]:
    """Return the scope of a binding; none if it has no policy."""
    if scope == "profile":
        return [(scope, "")]
    if scope == "namespace":
        return [(scope, binding.key.namespace)]
    policy = binding.labels.get(POLICY_ID_LABEL) or binding.labels.get(CLUSTER_POLICY_ID_LABEL)
    return [(scope, policy)] if policy else []


def _limits_text(budget: Budget, most: int | None) -> str:
    texts = [] if budget.bindings is None else [f"{budget.bindings} bindings"]
    if most is not None:
        texts.append(f"{most} replicas")
    return ", ".join(texts)


def _window_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m" if not rest else f"{int(seconds)}s"
