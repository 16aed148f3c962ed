"""The budgets of PlacementGuard: how much has moved, and whether another move is within them.

What has moved is in an annotation of each binding, which is written in the patch of the move; until it is known to be
stored, or not, the move is in ``_moves_under_way``. The sums are a shortcut, kept up to date by the changes of bindings.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.own_annotations import LAST_MOVE, RecordedMove, Unreadable, moves_in
from karmada_scheduler.framework import Handle
from karmada_scheduler.structs import Struct
from karmada_scheduler_plugins._binding_index import FollowedIndex
from karmada_scheduler_plugins._guard_args import MoveBudget
from karmada_scheduler_plugins._move_window import MoveWindow, Part, Scope, scopes_of
from karmada_scheduler_plugins._moves_under_way import FirstSeen, MovesUnderWay
from karmada_scheduler_plugins._task_stamps import TaskStamps

AT_ONCE_SECONDS: Final = 30.0
"""The delay of a decision that waits for the end of graceful moves."""
_OLD_PER_CALL: Final = 4
"""Bindings that are looked at again in each call, and after each change, because their moves may have become too old."""


class Wait(Struct, frozen=True):
    """Why a move would exceed a budget, for how many seconds at least, and the name of the budget."""

    reason: str
    seconds: float
    budget: str


class _Share(NamedTuple):
    """What counts of a binding in a scope: its moves, as part and replicas, and whether it leaves clusters."""

    scope: Scope
    moves: list[tuple[Part, int]]
    leaves: bool


class MoveBooks(FollowedIndex):
    """The moves of the bindings of a profile.

    Attributes:
        under_way: The moves that are decided and not known to be stored.
        stamps: The eviction tasks.
    """

    def __init__(self, handle: Handle, budgets: Sequence[MoveBudget]) -> None:
        """Start without moves."""
        super().__init__(handle)
        self.under_way: Final = MovesUnderWay(handle, LAST_MOVE, self._reconsider)
        self.stamps: Final = TaskStamps(handle.profile)
        self._budgets = {budget.scope: budget for budget in budgets}
        self._kept_seconds = max((budget.window.total_seconds() for budget in budgets), default=0.0)
        self._with_percent = [budget.scope for budget in budgets if budget.percent is not None]
        self._windows: dict[Scope, MoveWindow] = {}
        self._shares: dict[BindingKey, list[_Share]] = {}
        self._replicas: Counter[Scope] = Counter()
        """All replicas of the scopes with a limit in percent."""
        self._counted: dict[BindingKey, tuple[list[Scope], int]] = {}
        """Where the replicas of a binding are counted."""
        self._first_seen = FirstSeen()
        self._old: deque[tuple[float, BindingKey]] = deque()
        self._is_asked = False

    def changed(self, old: Binding | None, new: Binding | None) -> None:
        """Follow a change of one binding, or of all if neither is given."""
        is_same = old is not None and new is not None and _counts_the_same(old, new)
        if is_same and new is not None and new.key not in self.under_way:
            return
        super().changed(old, new)
        if self._old:
            self._look_at_old(self._handle.now())

    def recent(self, binding: Binding, now: float) -> tuple[RecordedMove, ...]:
        """Return the stored moves of a binding within the longest window, none of them in the future.

        If its annotation cannot be read, one move of all its replicas counts for the binding itself, and none for others.
        """
        text = binding.annotations.get(LAST_MOVE, "")
        found = moves_in(text)
        if isinstance(found, Unreadable):
            replicas = sum(target.replicas for target in binding.spec.clusters)
            found = (RecordedMove(self._first_seen.at(binding.key, text, now), replicas),)
        return self._recent(binding.key, text, found, now)

    def wait_for(self, binding: Binding, replicas: int, now: float) -> Wait | None:
        """Return why a binding may not move a number of replicas now, None if it may.

        Its own move under way does not count: at most one of the two is stored.
        """
        if not self._budgets:
            return None
        self._refresh(now)
        recent = self.recent(binding, now)
        counts = bool(recent) or binding.key in self._shares
        if counts:
            self._withdraw(binding.key)
            self._enter(binding, recent, now)
        try:
            waits = [
                wait
                for kind, budget in self._budgets.items()
                for scope in scopes_of(binding, kind)
                if (wait := self._wait(budget, scope, replicas, now)) is not None
            ]
        finally:
            if counts:
                self._reconsider(binding.key)
        return max(waits, key=lambda wait: wait.seconds, default=None)

    def controller_is_off(self, now: float) -> bool:
        """Return whether nobody stamps the eviction tasks of this profile: the controller that ends them does not run."""
        self._refresh(now)
        return self.stamps.is_off(now)

    def _wait(self, budget: MoveBudget, scope: Scope, replicas: int, now: float) -> Wait | None:
        window, seconds = self._windows.get(scope), budget.window.total_seconds()
        if window is None:
            return None  # nothing else has moved
        for key in window.drop_old(now):
            self._reconsider(key)
            window = self._windows.get(scope, window)
        name = f"the budget {scope[0]} {scope[1]}".strip()
        if budget.at_once is not None and window.leaving >= budget.at_once:
            reason = f"{name} ({window.leaving} of {budget.at_once} bindings leave clusters now)"
            return Wait(reason, AT_ONCE_SECONDS, name)
        most = self._most_replicas(budget, scope)
        parts = window.parts()
        count, used = sum(part.count for part in parts), sum(part.replicas for part in parts)
        freed = None
        for part in (None, *parts):
            if part is not None:
                freed, count, used = part.last + seconds, count - part.count, used - part.replicas
            is_bound = budget.bindings is not None and count >= budget.bindings
            is_over = most is not None and count > 0 and used + replicas > most
            if not is_bound and not is_over:
                break
        if freed is None:
            return None
        reason = f"{name} ({_limits_text(budget, most)} in {_window_text(seconds)})"
        return Wait(reason, max(1.0, freed - now), name)

    def _most_replicas(self, budget: MoveBudget, scope: Scope) -> int | None:
        limits = [] if budget.replicas is None else [budget.replicas]
        if budget.percent is not None:
            limits.append(max(1, self._replicas[scope] * budget.percent // 100))
        return min(limits, default=None)

    def _recent(
        self, key: BindingKey, text: str, moves: tuple[RecordedMove, ...], now: float
    ) -> tuple[RecordedMove, ...]:
        if moves and moves[-1].at > now:
            seen = self._first_seen.at(key, text, now)
            moves = tuple(RecordedMove(min(move.at, seen), move.replicas) for move in moves)
        return tuple([move for move in moves if move.at > now - self._kept_seconds])

    def _refresh(self, now: float) -> None:
        super()._refresh(now)
        self._is_asked = True
        self.under_way.expire(now)
        self._look_at_old(now)

    def _look_at_old(self, now: float) -> None:
        for _ in range(_OLD_PER_CALL):
            if not self._old or self._old[0][0] > now:
                return
            self._reconsider(self._old.popleft()[1])

    def _update(self, key: BindingKey, binding: Binding | None) -> None:
        self._withdraw(key)
        if binding is None or not self._is_own(binding):
            self._first_seen.forget(key)
            binding = None
        if self._with_percent:
            self._count_replicas(key, binding)
        tasks = [] if binding is None or binding.deleting else self._own_tasks(binding)
        move = None if binding is None or not self._budgets else self.under_way.of(key)
        text = (
            "" if binding is None else binding.annotations.get(LAST_MOVE, "") if move is None else move.text
        )
        if not (text or tasks or key in self.stamps.known()):
            return
        now = self._handle.now()
        if tasks or key in self.stamps.known():
            self.stamps.update(key, tasks, since=self._unstamped_since(binding, now), now=now)
        # A move that is exempt has no record, so its tasks use up no budget.
        if binding is not None and self._budgets and text:
            leaves = bool(tasks) or (move is not None and move.leaves_gracefully)
            self._enter_text(binding, text, now, leaves=leaves, is_under_way=move is not None)

    def _count_replicas(self, key: BindingKey, binding: Binding | None) -> None:
        none: tuple[list[Scope], int] = ([], 0)
        before, after = self._counted.pop(key, none), none
        if binding is not None:
            counted = [scope for kind in self._with_percent for scope in scopes_of(binding, kind)]
            after = self._counted[key] = counted, binding.spec.replicas
        if before != after:
            for (scopes, replicas), sign in ((before, -1), (after, 1)):
                for scope in scopes:
                    self._replicas[scope] += sign * replicas

    def _unstamped_since(self, binding: Binding | None, now: float) -> float:
        """Return since when a task that was not known before is not stamped.

        Before the first question that is the time of the last move, so that a new leader need not wait. Later it is now:
        anyone who may patch a binding can write an old time into its annotation.
        """
        if binding is None or self._is_asked:
            return now
        moves = moves_in(binding.annotations.get(LAST_MOVE, ""))
        return now if isinstance(moves, Unreadable) or not moves else min(now, moves[-1].at)

    def _set_back(self) -> None:
        known = {*self._shares, *self.stamps.known()}
        self._forget_moves()
        for key in known:
            self._reconsider(key)

    def _clear(self) -> None:
        self._forget_moves()
        self._replicas.clear()
        self._counted.clear()

    def _forget_moves(self) -> None:
        self._windows.clear()
        self._shares.clear()
        self._old.clear()
        self.stamps.clear()
        self._is_asked = False

    def _enter_text(
        self, binding: Binding, text: str, now: float, *, leaves: bool, is_under_way: bool
    ) -> None:
        found = moves_in(text)
        moves = () if isinstance(found, Unreadable) else found
        recent = self._recent(binding.key, text, moves, now)
        if is_under_way and moves and not recent:
            recent = moves[-1:]
        if recent or leaves:
            self._enter(binding, recent, now, leaves=leaves, is_under_way=is_under_way)

    def _enter(
        self,
        binding: Binding,
        moves: Sequence[RecordedMove],
        now: float,
        *,
        leaves: bool = False,
        is_under_way: bool = False,
    ) -> None:
        """Count a binding in its scopes. A move that is under way does not become too old to count."""
        key = binding.key
        shares = self._shares[key] = []
        for kind, budget in self._budgets.items():
            seconds = budget.window.total_seconds()
            for scope in scopes_of(binding, kind):
                window = self._windows.get(scope) or self._windows.setdefault(scope, MoveWindow(seconds))
                counted = [move for move in moves if move.at > now - seconds]
                if is_under_way and moves and not counted:
                    counted = [RecordedMove(now, moves[-1].replicas)]
                entered = [(window.add(move), move.replicas) for move in counted]
                if is_under_way and entered:
                    entered[-1][0].under_way.add(key)
                window.leaving += leaves
                window.bindings += 1
                shares.append(_Share(scope, entered, leaves))
        if moves:
            self._old.append((moves[-1].at + self._kept_seconds, key))

    def _withdraw(self, key: BindingKey) -> None:
        """Let a binding count in no scope."""
        for scope, moves, leaves in self._shares.pop(key, ()):
            window = self._windows[scope]
            for part, moved in moves:
                part.count -= 1
                part.replicas -= moved
                part.under_way.discard(key)
            window.leaving -= leaves
            window.bindings -= 1
            if not window.bindings:
                del self._windows[scope]


def _counts_the_same(one: Binding, other: Binding) -> bool:
    """Return whether two versions of a binding differ in nothing that counts here: mostly only the status has changed."""
    return (
        one.spec is other.spec
        and one.labels is other.labels
        and one.annotations is other.annotations
        and one.deleting == other.deleting
    )


def _limits_text(budget: MoveBudget, most: int | None) -> str:
    texts = [] if budget.bindings is None else [f"{budget.bindings} bindings"]
    if most is not None:
        texts.append(f"{most} replicas")
    return ", ".join(texts)


def _window_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m" if not rest else f"{int(seconds)}s"
