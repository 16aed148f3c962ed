"""Plugins that return or raise anything, at every extension point."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NoReturn

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.framework import (
    SUCCESS,
    Code,
    PluginError,
    ReplicaEstimate,
    Result,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from tests.fuzz.delivery import DIVIDED, NEW, PLACED, Neighbourhood, Records, recorded
from tests.fuzz.measuring import fuzzed, measured
from tests.fuzz.strategies import LONG
from tests.unit.framework.plugins import plugin

METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "PreEnqueue": ("pre_enqueue",),
    "PreFilter": ("pre_filter", "add_binding", "remove_binding"),
    "Filter": ("filter",),
    "Filter with a key": ("filter", "filter_key"),
    "Filter of several clusters": ("filter_clusters",),
    "PostFilter": ("post_filter",),
    "PreScore": ("pre_score",),
    "Score": ("score",),
    "Score with a key": ("score", "score_key"),
    "NormalizeScore": ("score", "normalize_score"),
    "EstimateReplicas": ("estimate_replicas",),
    "Select": ("select",),
    "Assign": ("assign",),
    "Guard": ("guard",),
    "Reserve": ("reserve", "unreserve"),
    "Permit": ("permit",),
    "PreBind": ("pre_bind",),
    "Bind": ("bind",),
    "PostBind": ("post_bind",),
}
_CAN_WAIT = frozenset(
    {"pre_filter", "post_filter", "pre_score", "select", "assign", "permit", "pre_bind", "bind", "post_bind"}
)


class Hostile:
    """An object whose special methods raise."""

    def _raise(self, *_: object) -> NoReturn:
        raise LookupError("hostile")

    __repr__ = __bool__ = __len__ = __iter__ = __eq__ = __lt__ = __hash__ = __getitem__ = __contains__ = (
        _raise
    )


class HostileSequence(Sequence[Any]):
    def __len__(self) -> int:
        raise LookupError("hostile")

    def __getitem__(self, _: Any) -> Any:
        raise LookupError("hostile")


class HostileMapping(Mapping[Any, Any]):
    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        raise LookupError("hostile")

    def __getitem__(self, _: Any) -> Any:
        raise LookupError("hostile")


class HostileSet(AbstractSet[Any]):
    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        raise LookupError("hostile")

    def __contains__(self, _: Any) -> bool:
        raise LookupError("hostile")


class OddInt(int):
    def __lt__(self, _: object) -> bool:
        raise LookupError("hostile")

    __le__ = __gt__ = __ge__ = __eq__ = __mul__ = __radd__ = __add__ = __lt__
    __hash__ = int.__hash__


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise LookupError("hostile")


def _generator() -> Iterator[int]:
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    yield 1


async def _success() -> Result:
    return SUCCESS


_coroutines: list[Coroutine[Any, Any, Result]] = []
"""The coroutines that plugins have returned; nothing awaits most of them."""


def _coroutine() -> Coroutine[Any, Any, Result]:
    _coroutines.append(_success())
    return _coroutines[-1]


@pytest.fixture(autouse=True)
def _close_coroutines() -> Iterator[None]:
    yield
    for each in _coroutines:
        each.close()
    _coroutines.clear()


def _candidates(context: Any) -> list[Any]:
    return [*(getattr(context, "candidates", None) or getattr(context, "selected", None) or ())]


Make = Callable[[Any], Any]
"""Returns the answer to a context."""


def _always(value: Any) -> Make:
    return lambda _: value


VALUES: Final[Mapping[str, Make]] = {
    **{
        f"{value!r:.60}": _always(value)
        for value in (
            None, True, False, 0, -1, 50, 101, 10**400, 1.5, math.nan, math.inf, "", "m1", "\ud800", LONG, b"m1", ..., int,
            Result, (), [], [SUCCESS], [SUCCESS] * 2, [None] * 2, [Result.unschedulable("no")] * 2, ["m1"], ["m1", "m1"], [None], {}, {"m1": 3}, {"m1": 2}, {"m1": -1}, {"m1": 2**31}, {"m1": 1.5},
            {"m1": math.nan}, {"m1": True}, {"m9": 3}, {1: 1}, {None: None}, set(), {"m1"}, {"m9"}, {1}, {None}, frozenset({("m1",)}),
            {"m1": 10**400}, range(3), [TargetCluster("m1", 3)], [TargetCluster("m1", 3)] * 2, [TargetCluster(1, "x")],  # type: ignore[arg-type]
            TargetCluster("m1", 3), [0, 100], [50, 50], [50, 101], [50, math.nan], (50, 50),
            ReplicaEstimate({"m1": 0}, {"m1": 1}, {"m1": 9}), ReplicaEstimate({"m1": -1}), ReplicaEstimate({"m9": 1}),
            ReplicaEstimate({"m1": 10**400}), ReplicaEstimate({"m1": math.nan}), ReplicaEstimate({None: 1}), ReplicaEstimate(7),  # type: ignore[arg-type, dict-item]
            ReplicaEstimate(HostileMapping()), ReplicaEstimate(HostileSequence()), ReplicaEstimate(reason=LONG), ReplicaEstimate(reason=b"x"),  # type: ignore[arg-type]
            ReplicaEstimate({"m1": OddInt(5)}), *(Result(code) for code in Code),
            *(Result(code, ("a", "b"), "Other", math.nan, math.inf) for code in Code),
            Result("Success"), Result(None), Result(Code.UNSCHEDULABLE, "text"), Result(Code.UNSCHEDULABLE, (1, None)),  # type: ignore[arg-type]
            Result(Code.UNSCHEDULABLE, ("\ud800\x00\n",)), Result(Code.ERROR, ("\ud800",)), Result(Code.ERROR, None),  # type: ignore[arg-type]
            Result.wait(-1.0), Result.wait(1e300), Result.wait(math.nan), Result.wait(0.0), Result.wait(5.0, "\ud800"),
            Result(Code.UNSCHEDULABLE, (), retry_after=-1.0), Result(Code.UNSCHEDULABLE, (), retry_after=1e300),
            Result(Code.UNSCHEDULABLE, (), retry_after="1"),  # type: ignore[arg-type]
        )
    },
    "10**5000": _always(10**5000),
    "range(10**12)": _always(range(10**12)),
    "a million integers": _always([1] * 10**6),
    "a million names": _always(dict.fromkeys(map(str, range(10**6)), 1)),
    "an error of 1 MB": _always(Result(Code.ERROR, (LONG * 10,))),
    "a million reasons": _always(Result(Code.UNSCHEDULABLE, ("r",) * 10**6)),
    "hostile": lambda _: Hostile(),
    "hostile sequence": lambda _: HostileSequence(),
    "hostile mapping": lambda _: HostileMapping(),
    "hostile set": lambda _: HostileSet(),
    "odd int": lambda _: OddInt(5),
    "odd ints": lambda _: [OddInt(5), OddInt(6)],
    "names of odd ints": lambda _: {"m1": OddInt(3)},
    "generator": lambda _: _generator(),
    "async generator": lambda _: _async_generator(),
    "coroutine": lambda _: _coroutine(),
    "the context": lambda context: context,
    "the candidates": _candidates,
    "the first candidate twice": lambda context: _candidates(context)[:1] * 2,
    "the candidates as a tuple": lambda context: (*_candidates(context),),
    "clusters": lambda context: set(getattr(context, "clusters", ())) or {object()},
    "a function": _always(_always),
}  # fmt: skip


def _errors() -> list[BaseException]:
    return [
        RuntimeError("boom"), RuntimeError("\ud800\n\x00"), RuntimeError(LONG * 10), RuntimeError(), KeyError(("a",)),
        UnprintableError(), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), StopIteration(1),
        StopAsyncIteration(), BaseExceptionGroup("group", [SystemExit(1)]), MemoryError(), RecursionError(), TimeoutError(),
        AssertionError(), PluginError("theirs"), SchedulingError("theirs"), UnschedulableError("theirs", retry_after=math.nan),
        UnschedulableError("\ud800"), ApiError("theirs", code=409, reason="Conflict"), OSError(5, "theirs"), Warning("theirs"),
    ]  # fmt: skip


ERRORS: Final = {f"{type(each).__name__} {index}": index for index, each in enumerate(_errors())}


def _raising(index: int) -> Make:
    def raise_it(_: object) -> NoReturn:
        raise _errors()[index]

    return raise_it


BEHAVIOURS: Final[Mapping[str, Make]] = {
    **VALUES,
    **{f"raises {name}": _raising(index) for name, index in ERRORS.items()},
}
_REFUSALS: Final = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


def _method(name: str, make: Make, *, waits: bool) -> Callable[..., Any]:
    def plain(context: Any = None, *_: object) -> Any:
        return make(context)

    async def waiting(context: Any = None, *_: object) -> Any:
        await asyncio.sleep(0)
        return make(context)

    return waiting if waits and name in _CAN_WAIT else plain


def _defects(records: Records) -> list[str]:
    """Return the tracebacks that are not of the plugin."""
    return [each for each in records.tracebacks if not each.startswith("A plugin raised an exception")]


async def _decide(methods: Mapping[str, Callable[..., Any]], given: object) -> tuple[Neighbourhood, Records]:
    state = Neighbourhood(plugin("Odd", **methods), caller=PluginCaller(interrupts=()))
    state.server.change(PLACED, replicas=3)
    with recorded() as records:
        task = asyncio.create_task(state.scheduler.run())
        with measured("plugin", given):
            for _ in range(80):
                await asyncio.sleep(0)
        assert not task.done(), task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await state.scheduler.drain(timeout=0)
    return state, records


def _may_refuse(name: str) -> bool:
    """Return whether an answer may refuse all clusters: a refusal, or a set of names."""
    if name not in VALUES or name.startswith("hostile"):
        return False
    answer = VALUES[name](None)
    if isinstance(answer, AbstractSet):
        return all(isinstance(each, str) for each in answer)
    return isinstance(answer, Result) and answer.code in _REFUSALS


def _check(state: Neighbourhood, records: Records, used: Sequence[str]) -> None:
    assert not _defects(records), _defects(records)[0]
    if not state.placed(PLACED):
        assert state.condition(PLACED)[0] == "NoClusterFit"
        assert any(map(_may_refuse, used))
    for name in (NEW, DIVIDED, PLACED):
        reason, message = state.condition(name)
        assert reason != "SchedulerError" or "Odd" in message or "theirs" in message, message


@pytest.mark.filterwarnings("ignore:.*was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@fuzzed(350)
@given(
    point=st.sampled_from(sorted(METHODS)),
    behaviours=st.lists(st.sampled_from(sorted(BEHAVIOURS)), min_size=3, max_size=3),
    waits=st.booleans(),
)
def test_a_plugin_may_return_or_raise_anything(point: str, behaviours: list[str], waits: bool) -> None:
    names = METHODS[point]
    methods = {
        name: _method(name, BEHAVIOURS[behaviour], waits=waits)
        for name, behaviour in zip(names, behaviours, strict=False)
    }
    used = behaviours[: len(names)]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the process
        state, records = runner.run(_decide(methods, (point, *used, waits)))
    _check(state, records, used)
