"""The sums of PlacementGuard's budgets agree with a count over all bindings, whatever happens to bindings and clocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.own_annotations import LAST_MOVE, RecordedMove, moves_text
from karmada_scheduler.framework import BindContext
from karmada_scheduler.framework.handle import BindingFollower
from karmada_scheduler.testing import binding
from karmada_scheduler_plugins._guard_args import MoveBudget
from karmada_scheduler_plugins._guard_budget import MoveBooks
from karmada_scheduler_plugins._move_window import PARTS, MoveWindow

PROFILE: Final = "ours"
NAMES: Final = tuple("abcdef")
POLICY: Final = "propagationpolicy.karmada.io/permanent-id"


class Fleet:
    """A handle, and the bindings that a test changes."""

    profile = PROFILE

    def __init__(self) -> None:
        self.known: dict[BindingKey, Binding] = {}
        self.time = 1e9
        self.followers: list[BindingFollower] = []
        self.version = 1

    def now(self) -> float:
        return self.time

    def bindings(self) -> Iterable[Binding]:
        return list(self.known.values())

    def binding(self, key: BindingKey) -> Binding | None:
        return self.known.get(key)

    def put(self, found: Binding | None, key: BindingKey) -> None:
        old = self.known.pop(key, None)
        if found is not None:
            self.known[key] = found
        for follower in self.followers:
            follower(old, found)


def key_of(name: str) -> BindingKey:
    return BindingKey("ResourceBinding", "shop" if name in "ab" else "default", f"{name}-deployment")


def built(fleet: Fleet, name: str, *, moves: list[RecordedMove], leaves: bool, policy: str) -> Binding:
    fleet.version += 1
    namespace = key_of(name).namespace
    builder = binding(name, namespace=namespace).scheduler(PROFILE).replicas(3).on(m1=3)
    builder = builder.resource_version(str(fleet.version))
    if moves:
        builder = builder.annotation(LAST_MOVE, moves_text(moves, clusters=["m1"], cause="x", term=""))
    manifest = builder.manifest()
    manifest["metadata"].setdefault("labels", {})[POLICY] = policy
    if leaves:
        task = {"fromCluster": "m9", "producer": PROFILE, "creationTimestamp": "2026-01-01T00:00:00Z"}
        manifest["spec"]["gracefulEvictionTasks"] = [task]
    return Binding.from_manifest(manifest)


class Model:
    """What counts, found by looking at everything."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.moves: dict[BindingKey, list[RecordedMove]] = {}
        self.under_way: dict[BindingKey, list[RecordedMove]] = {}
        """The moves that a binding will have; the last one is being written, and counts however old it is."""

    def _in_scope(self, asked: Binding, kind: str) -> Iterator[BindingKey]:
        for key, each in self.fleet.known.items():
            if (
                kind == "profile"
                or (kind == "namespace" and key.namespace == asked.key.namespace)
                or (kind == "policy" and each.labels.get(POLICY) == asked.labels.get(POLICY))
            ):
                yield key

    def allows(self, asked: Binding, replicas: int, budget: MoveBudget, window: float) -> bool:
        keys = [key for key in self._in_scope(asked, budget.scope) if key != asked.key]
        now = self.fleet.time
        counted = [each for each in self.moves.get(asked.key, ()) if each.at > now - window]
        for key in keys:
            moves = self.under_way.get(key, self.moves.get(key, []))
            recent = [each for each in moves if each.at > now - window]
            counted += recent or ([max(moves)] if key in self.under_way else [])
        used = sum(each.replicas for each in counted)
        leaving = sum(
            bool(self.fleet.known[key].spec.graceful_eviction_tasks) and bool(self.moves.get(key))
            for key in keys
        )
        limits = [] if budget.replicas is None else [budget.replicas]
        if budget.percent is not None:
            total = 3 * len([*self._in_scope(asked, budget.scope)])
            limits.append(max(1, total * budget.percent // 100))
        return not (
            (budget.bindings is not None and len(counted) >= budget.bindings)
            or (counted and any(used + replicas > each for each in limits))
            or (budget.at_once is not None and leaving >= budget.at_once)
        )


BUDGETS = st.lists(
    st.builds(
        MoveBudget,
        st.sampled_from(("profile", "namespace", "policy")),
        st.sampled_from((10, 60, 900)).map(lambda seconds: timedelta(seconds=seconds)),
        bindings=st.integers(1, 4),
        replicas=st.none() | st.integers(1, 9),
        percent=st.none() | st.integers(10, 100),
        at_once=st.none() | st.integers(1, 3),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda budget: budget.scope,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("move"), st.sampled_from(NAMES), st.integers(0, 4), st.booleans(), st.sampled_from("pq")
        ),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(st.just("begin"), st.sampled_from(NAMES), st.integers(0, 4)),
        st.tuples(st.just("fail"), st.sampled_from(NAMES)),
        st.tuples(st.just("sleep"), st.sampled_from((0.0, 0.3, 1.0, 7.0, 59.0, 61.0, 1000.0))),
        st.tuples(st.just("ask"), st.sampled_from(NAMES), st.integers(0, 6)),
    ),
    min_size=5,
    max_size=60,
)


@given(BUDGETS, STEPS, st.booleans())
def test_a_move_is_within_a_budget_as_a_count_over_all_bindings_says(
    budgets: list[MoveBudget], steps: list[tuple[Any, ...]], late: bool
) -> None:
    """It has none for at most a hundredth of the window longer. Books that begin late agree with those that follow all."""
    fleet = Fleet()
    model, books = Model(fleet), MoveBooks(fleet, budgets)  # type: ignore[arg-type]
    fleet.followers.append(books.changed)
    longest = max(budget.window.total_seconds() for budget in budgets)
    for name in NAMES:
        fleet.put(built(fleet, name, moves=[], leaves=False, policy="p"), key_of(name))
    for kind, *rest in steps:
        if kind == "sleep":
            fleet.time += rest[0]
            continue
        key = key_of(rest[0])
        known = fleet.known.get(key)
        if kind == "move":
            name, replicas, leaves, policy = rest
            before = [each for each in model.moves.get(key, ()) if each.at > fleet.time - longest]
            moves = model.moves[key] = [*before, RecordedMove(round(fleet.time, 3), replicas)][-20:]
            model.under_way.pop(key, None)
            fleet.put(built(fleet, name, moves=moves, leaves=leaves, policy=policy), key)
            books.under_way.end_stored(context(fleet.known[key], ""))
        elif kind == "delete":
            model.moves.pop(key, None)  # a move that is being written ends by itself
            fleet.put(None, key)
        elif known is None:
            fleet.put(built(fleet, rest[0], moves=[], leaves=False, policy="p"), key)
        elif kind == "begin":
            before = [each for each in model.moves.get(key, ()) if each.at > fleet.time - longest]
            moves = model.under_way[key] = [*before, RecordedMove(round(fleet.time, 3), rest[1])][-20:]
            books.under_way.begin(context(known, moves_text(moves, clusters=[], cause="x", term="")))
        elif kind == "fail":
            model.under_way.pop(key, None)
            books.under_way.end_failed(context(known, ""))
        elif kind == "ask":
            asked = books
            if late and not model.under_way:
                asked = MoveBooks(fleet, budgets)  # type: ignore[arg-type]
            wait = asked.wait_for(known, rest[1], fleet.time)
            longer = 1 + 1.01 / PARTS
            certainly = all(
                model.allows(known, rest[1], each, each.window.total_seconds() * longer) for each in budgets
            )
            possibly = all(
                model.allows(known, rest[1], each, each.window.total_seconds()) for each in budgets
            )
            assert possibly or wait is not None
            assert wait is None or not certainly
            assert wait is None or 1.0 <= wait.seconds <= max(longest * longer, 30.0)


@given(st.permutations((1000.1, 1000.5, 1000.9)))
def test_a_part_of_a_window_lasts_until_its_last_move_is_too_old_in_whatever_order_moves_are_read(
    times: list[float],
) -> None:
    window = MoveWindow(100.0)
    for at in times:
        window.add(RecordedMove(at, 1))
    window.drop_old(1100.8)
    assert [(part.count, part.last) for part in window.parts()] == [(3, 1000.9)]
    window.drop_old(1100.9)
    assert window.parts() == []


def context(found: Binding, text: str) -> BindContext:
    unused: Any = None
    annotations = {LAST_MOVE: text} if text else {}
    return BindContext(found, (), unused, unused, annotations=annotations)
