"""The laws of PlacementGuard and FailBack, judged from the history of writes and from nothing else.

- ``kept``: a placement is not emptied while one of its clusters exists.
- ``within budget``: in no window more moves than a budget allows; no more bindings leave gracefully at once.
- ``exempt``: a move that harms nothing healthy has no record, so that it uses up no budget.
- ``graceful``: with graceful moves, each cluster that a move leaves has an eviction task in the same write, unless two copies
  must not run at the same time.
- ``ready first``: with graceful moves, a generation is observed when all targets have been ready.
- ``last copy``: without them, the last healthy copies are left only after the longest wait.
- ``no flapping``: the wait before a return is doubled with each return.
- ``no early return``: a binding returns after a whole wait in which the first term could take it.
- ``returns at once``: no more returns are under way than allowed.

Both count a move from its decision on, which is in the annotation of the move. A move is judged if it certainly needed a
budget: it takes something off clusters that were never deleted, and on one of these it was healthy for longer than any
watch is late. That a cluster was not Ready for a moment, or another one is being deleted, makes no difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from karmada_scheduler.api.own_annotations import FAIL_BACK, HELD, LAST_MOVE
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from tools.manifests import targets_of
from tools.simulation.guard_history import (
    Id,
    Object,
    Written,
    decided_at,
    healthy_in,
    is_exclusive,
    is_recorded,
    moved_by,
    ready_in,
    seconds_of,
    terms_in,
    tolerates_for_ever,
)

UNSEEN_SECONDS: Final = 8.0
"""How long a change of a cluster may be unknown in plans without late watches."""
LOST_SECONDS: Final = 60.0
"""For how long a cluster must not be Ready so that nothing is healthy there."""


@dataclass(frozen=True, slots=True)
class _Move:
    id: Id
    decided: float
    accepted: float
    replicas: int
    scopes: frozenset[tuple[str, str]]
    identity: str
    is_judged: bool
    counts: bool
    is_exclusive: bool


@dataclass(slots=True)
class _History:
    """What is known of one binding: since when it is healthy where it is, and its returns."""

    healthy: frozenset[str] = frozenset()
    healthy_since: float = 0.0
    since: dict[str, float] = field(default_factory=dict)
    """Since when each of these clusters reports it healthy."""
    left: float = 0.0
    """When it left the first term."""
    returns: list[float] = field(default_factory=list)
    is_returning: bool = False
    move_decided: float = 0.0
    ready: dict[str, int] = field(default_factory=dict)
    """With how many replicas each target has been ready so far."""


class GuardLaws:
    """Judges the writes of one run."""

    def __init__(
        self,
        guard: Object,
        fail_back: Object | None,
        profile: str,
        add: Callable[[str, str], None],
        *,
        late_seconds: float,
    ) -> None:
        """Judge by the args of both plugins.

        Args:
            guard: Those of PlacementGuard.
            fail_back: Those of FailBack; None without it.
            profile: The name of the scheduler.
            add: Gets the name of a law that is broken, and what happened.
            late_seconds: After this time each change is known.
        """
        self._late_seconds = late_seconds
        self._guard = guard
        self._fail_back = fail_back
        self._profile = profile
        self._add = add
        self._moves: list[_Move] = []
        self._histories: dict[Id, _History] = {}
        self._bindings: dict[Id, Object] = {}
        self._totals: list[tuple[float, Mapping[tuple[str, str], int]]] = []
        self._clusters: dict[str, Object] = {}
        self._deleted: set[str] = set()
        self._not_ready: dict[str, float] = {}
        self._closed: dict[str, list[list[float]]] = {}
        self._budgets: Sequence[Object] = guard.get("budgets") or ()
        self._is_graceful: bool = (guard.get("graceful") or {}).get("enabled", False)

    def on_cluster(self, at: float, name: str, after: Object | None) -> None:
        """Note a change of a cluster."""
        if after is None or after["metadata"].get("deletionTimestamp"):
            self._deleted.add(name)
        if after is not None:
            self._clusters[name] = after
        if _is_ready(after):
            self._not_ready.pop(name, None)
        else:
            self._not_ready.setdefault(name, at)
        regions = {each["metadata"]["labels"]["region"] for each in self._clusters.values()}
        for region in regions:
            is_open = any(
                each["metadata"]["labels"]["region"] == region and not each["spec"].get("taints")
                for name, each in self._clusters.items()
            )
            periods = self._closed.setdefault(region, [])
            if not is_open and (not periods or len(periods[-1]) == 2):
                periods.append([at])
            elif is_open and periods and len(periods[-1]) == 1:
                periods[-1].append(at)

    def on_write(self, write: Written) -> None:
        """Judge a write of a binding."""
        history = self._histories.setdefault(write.id, _History())
        if write.sent is not None and write.before is not None and write.after is not None:
            old, new = targets_of(write.before), targets_of(write.after)
            self._check_ready(write, history)
            if old != new:
                self._check_kept(write, old, new)
                self._check_move(write, old, new, history)
                self._check_return(write, old, new, history)
        self._note(write, history)

    def _note(self, write: Written, history: _History) -> None:
        if write.after is None:
            self._bindings.pop(write.id, None)
            self._histories.pop(write.id, None)
        else:
            self._bindings[write.id] = write.after
            healthy = healthy_in(write.after)
            targets, ready = targets_of(write.after), ready_in(write.after)
            history.ready = {
                name: max(ready.get(name, 0), history.ready.get(name, 0))
                for name in targets.keys() & (ready.keys() | history.ready.keys())
            }
            if healthy != history.healthy:
                history.since = {name: history.since.get(name, write.at) for name in healthy}
                history.healthy, history.healthy_since = healthy, write.at
            if history.is_returning and not self._is_returning(write.after):
                history.is_returning = False
        if any("percent" in each for each in self._budgets):
            totals: dict[tuple[str, str], int] = {}
            for one, found in self._bindings.items():
                for scope in self._scopes(one, found):
                    totals[scope] = totals.get(scope, 0) + found["spec"].get("replicas", 0)
            self._totals.append((write.at, totals))

    def _check_ready(self, write: Written, history: _History) -> None:
        assert write.before is not None
        assert write.after is not None
        before, after = ((each.get("status") or {}) for each in (write.before, write.after))
        observed = after.get("schedulerObservedGeneration")
        if observed in (before.get("schedulerObservedGeneration"), None) or not self._is_graceful:
            return
        if observed != write.after["metadata"]["generation"] or not self._own_tasks(write.after):
            return
        for name, count in targets_of(write.after).items():
            if history.ready.get(name, -1) < count:
                self._add("ready first", f"{write.id} is observed before {name} has been ready")

    def _check_kept(self, write: Written, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        assert write.after is not None
        replicas = write.after["spec"].get("replicas", 0)
        if not new and replicas and old.keys() - self._deleted and self._guard.get("nothingFits") != "clear":
            self._add("kept", f"{write.id}: {dict(old)} was emptied")

    def _check_move(
        self, write: Written, old: Mapping[str, int], new: Mapping[str, int], history: _History
    ) -> None:
        assert write.before is not None
        assert write.after is not None
        assert write.sent is not None
        leaving = old.keys() - new.keys() - self._deleted
        moved, is_move = moved_by(write.before, old, new, self._deleted)
        if not is_move:
            return
        decided = decided_at(write, LAST_MOVE, lambda found: found["moves"][-1]["at"])
        is_judged = any(
            since <= decided - self._late_seconds and self._is_there(name, decided)
            for name, since in history.since.items()
        )
        if (
            not history.healthy
            and history.healthy_since <= decided - self._late_seconds
            and is_recorded(write)
        ):
            self._add("exempt", f"{write.id} was healthy nowhere, and its move counts")
        move = _Move(
            write.id,
            decided,
            write.at,
            moved,
            self._scopes(write.id, write.before),
            write.identity,
            is_judged,
            is_judged or is_recorded(write),
            is_exclusive(write.before),
        )
        self._check_budgets(move)
        self._moves.append(move)
        for each in self._moves:
            if each.decided > move.decided:  # it was stored before, and should have counted this one
                self._check_budgets(each, added=move)
        history.move_decided = decided
        if not is_judged:
            return
        is_steady = history.healthy_since <= decided - self._late_seconds
        tasks = {
            each["fromCluster"]
            for each in write.after["spec"].get("gracefulEvictionTasks") or ()
            if each.get("producer") == self._profile
        }
        if move.is_exclusive:
            if leaving & tasks:
                self._add(
                    "graceful", f"{write.id} is exclusive and leaves {sorted(leaving & tasks)} gracefully"
                )
            return
        if self._is_graceful:
            if leaving - tasks:
                self._add("graceful", f"{write.id} leaves {sorted(leaving - tasks)} at once")
            return
        last = self._guard.get("lastHealthyCopy") or {}
        there = {name for name in history.healthy if self._is_there(name, decided)}
        leaves_last = bool(there & leaving) and not history.healthy & new.keys()
        if is_steady and last.get("enabled", True) and leaves_last:
            held = json.loads((write.before["metadata"].get("annotations") or {}).get(HELD, "null"))
            since = decided if held is None else seconds_of(held["since"])
            if decided - since < last.get("maxWaitSeconds", 600) - 0.01:
                self._add("last copy", f"{write.id} leaves {sorted(leaving)} after {decided - since:.1f} s")

    def _is_there(self, name: str, at: float) -> bool:
        """Return whether a cluster was never deleted, and was Ready or not for long."""
        return (
            name not in self._deleted
            and at - self._not_ready.get(name, at) < LOST_SECONDS - self._late_seconds
        )

    def _check_budgets(self, move: _Move, added: _Move | None = None) -> None:
        for budget in self._budgets:
            for scope in move.scopes:
                if scope[0] == budget["scope"]:
                    self._check_budget(move, budget, scope, added)

    def _check_budget(self, move: _Move, budget: Object, scope: tuple[str, str], added: _Move | None) -> None:
        window = float(str(budget["window"]).removesuffix("s"))
        if not move.is_judged:
            return
        others = [
            each
            for each in self._moves
            if each is not move
            and each.counts
            and scope in each.scopes
            and each.decided <= move.decided
            and (each.decided > move.decided - window or each.accepted > move.decided)
            and (each.identity == move.identity or each.accepted <= move.decided - self._late_seconds)
        ]
        if added is not None and added not in others:
            return
        name = f"{move.id} exceeds the budget {' '.join(scope)} at {move.decided:.1f}"
        if "bindings" in budget and len(others) >= budget["bindings"]:
            self._add("within budget", f"{name}: {len(others)} others of {budget['bindings']} bindings")
        used, most = sum(each.replicas for each in others), budget.get("replicas")
        if "percent" in budget:
            begin = move.decided - self._late_seconds
            known = [totals.get(scope, 0) for at, totals in self._totals if at >= begin]
            known += [totals.get(scope, 0) for at, totals in self._totals if at < begin][-1:]
            share = max(1, max(known or [0]) * budget["percent"] // 100)
            most = share if most is None else min(most, share)
        if most is not None and others and used + move.replicas > most:
            self._add("within budget", f"{name}: {used} and {move.replicas} of {most} replicas")
        if "atOnce" in budget and added is None:
            leaving = [
                one
                for one, found in self._bindings.items()
                if one != move.id
                and scope in self._scopes(one, found)
                and self._own_tasks(found)
                and LAST_MOVE in (found["metadata"].get("annotations") or {})
                and not found["metadata"].get("deletionTimestamp")
                and self._decided_before(one, move)
            ]
            if len(leaving) >= budget["atOnce"]:
                self._add("within budget", f"{name}: {len(leaving)} of {budget['atOnce']} leave at once")

    def _decided_before(self, one: Id, move: _Move) -> bool:
        """Return whether another move had to count; of one moment it may be a later one, for which an exclusive move does not."""
        decided = self._histories[one].move_decided
        return decided < move.decided or (decided == move.decided and not move.is_exclusive)

    def _check_return(
        self, write: Written, old: Mapping[str, int], new: Mapping[str, int], history: _History
    ) -> None:
        assert write.before is not None
        terms = terms_in(write.before)
        if self._fail_back is None or not terms or not new:
            return
        first = {name for name in self._clusters if self._region(name) == terms[0]}
        was_first, is_first = bool(old.keys() & first), bool(new.keys() & first)
        if was_first or not is_first:
            if not is_first:
                history.left = write.at if not history.left else history.left
                history.is_returning = False
            return
        if not history.left:
            return  # it was never scheduled, or it never left
        decided = decided_at(write, FAIL_BACK, lambda found: found["at"])
        first_wait = self._fail_back["stabilizationSeconds"]
        wait = min(first_wait << len(history.returns), self._fail_back["maxSeconds"])
        rest = decided - history.left
        if rest < wait - 0.01:
            law = "no early return" if rest < first_wait - 0.01 else "no flapping"
            self._add(law, f"{write.id} returns {rest:.1f} s after it left, not after {wait} s")
        shortest = self._fail_back["checkSeconds"] + UNSEEN_SECONDS
        for period in () if tolerates_for_ever(write.before) else self._closed.get(terms[0], ()):
            begin, end = period[0], period[1] if len(period) == 2 else decided
            if end - max(begin, decided - wait) > shortest and end - begin > shortest:
                law = "no early return" if end > decided - first_wait + shortest else "no flapping"
                self._add(law, f"{write.id}: the first term was closed {begin:.1f} to {end:.1f}")
        under_way = [
            one
            for one, found in self._bindings.items()
            if one != write.id and self._histories[one].is_returning and self._is_returning(found)
            and self._histories[one].returns[-1] <= decided
        ]  # fmt: skip
        if len(under_way) >= self._fail_back["atOnce"]:
            self._add("returns at once", f"{write.id}: {len(under_way)} others return")
        history.returns.append(decided)
        history.left, history.is_returning = 0.0, True

    def _is_returning(self, found: Object) -> bool:
        return bool(self._own_tasks(found)) or not targets_of(found).keys() <= healthy_in(found)

    def _region(self, name: str) -> str:
        return str(self._clusters[name]["metadata"]["labels"]["region"])

    def _own_tasks(self, found: Object) -> list[Object]:
        tasks = found["spec"].get("gracefulEvictionTasks") or ()
        return [each for each in tasks if each.get("producer") == self._profile]

    def _scopes(self, one: Id, found: Object) -> frozenset[tuple[str, str]]:
        labels = found["metadata"].get("labels") or {}
        policy = labels.get(POLICY_ID_LABEL) or labels.get(CLUSTER_POLICY_ID_LABEL)
        scopes = {("profile", ""), ("namespace", one[1])}
        return frozenset(scopes | ({("policy", policy)} if policy else set()))


def _is_ready(cluster: Object | None) -> bool:
    conditions = ((cluster or {}).get("status") or {}).get("conditions") or ()
    return all(each["status"] == "True" for each in conditions if each["type"] == "Ready")
