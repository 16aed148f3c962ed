"""What the plugins of a simulation do besides their work: they fail, lie, take long and hang, as the plan says.

The same plugins decide for the judge. No process is ``current`` then, so they are healthy.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from karmada_scheduler.api.binding import BindingKey, TargetCluster
from karmada_scheduler.framework import SUCCESS, Code, Result
from tools.simulation.environment import spend
from tools.simulation.faults import Faults
from tools.simulation.plan import Fault

T = TypeVar("T")

PLUGIN_FAULTS: Final = (
    "plugin_raises",
    "plugin_raises_base",
    "plugin_error",
    "plugin_nonsense",
    "plugin_slow",
    "plugin_hangs",
    "plugin_waits",
    "plugin_rejects",
)
"""Faults of calls of plugins; the kind of a call is ``plugin RegionFilter.filter``.

``plugin_slow`` computes for ``value`` seconds, ``plugin_hangs`` awaits for so many seconds, and ``plugin_waits`` lets a
binding wait at Permit for so many seconds.
"""

REFUSES: Final = "plugin_refuses"
"""The fault of ``refusal``: the plugin refuses, and asks for another attempt after ``value`` seconds."""

_KINDS: Final = frozenset(PLUGIN_FAULTS)
_WITHOUT_RESULT: Final = ("unreserve", "post_bind", "run", "filter_key")
_PLAIN: Final = ("filter", "score", "reserve", "unreserve", "pre_enqueue", "filter_key")


class InjectedError(Exception):
    """Raised by a plugin."""


class BadInjectedError(BaseException):
    """Raised by a plugin; no Exception."""


class _Unprintable:
    def __repr__(self) -> str:
        raise InjectedError("no repr")


_BASE_ERRORS: Final = (BadInjectedError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
_NONSENSE: Final[dict[str, tuple[object, ...]]] = {
    "score": (None, "7", -1, 101, float("nan"), 10**400, _Unprintable(), Result(Code.SUCCESS)),
    "select": (None, "m0", [None], 7, Result.wait(5.0), {"m0": 1}, _Unprintable()),
    "assign": (None, "m0", {"nowhere": 1}, {"m0": -3}, [TargetCluster("m0", 2**40)], 7, Result.wait(5.0)),
}
_NO_RESULTS: Final = (
    None, True, "Success", 7, _Unprintable(), Result("Success"),  # type: ignore[arg-type]
    Result(Code.UNSCHEDULABLE, (7,)), Result(Code.UNSCHEDULABLE, retry_after=float("nan")),  # type: ignore[arg-type]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """The begin of an attempt that a plugin has seen, or its refusal.

    Attributes:
        at: In seconds of virtual time.
        key: The binding.
        retry_after: Seconds after which the plugin asked for another attempt; 0 for the begin of one.
    """

    at: float
    key: BindingKey
    retry_after: float = 0.0


@dataclass(slots=True)
class Scene:
    """The plugins of one process.

    Attributes:
        process: The index of the replica.
        faults: Those of the run.
        clock: Virtual time.
        books: What each Reserve plugin has reserved and not ended, by binding.
        problems: Calls that a plugin must not get.
        calls: The attempts that a plugin has seen, and its refusals.
    """

    process: int
    faults: Faults
    clock: Callable[[], float]
    books: list[Counter[BindingKey]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


class _Current:
    scene: Scene | None = None


def enter(scene: Scene | None) -> None:
    """Let the plugins that are called from now on belong to a process; None for the judge."""
    _Current.scene = scene


def new_book() -> Counter[BindingKey]:
    """Return the book of a new Reserve plugin."""
    book: Counter[BindingKey] = Counter()
    if _Current.scene is not None:
        _Current.scene.books.append(book)
    return book


def report(problem: str) -> None:
    """Report a call that a plugin must not get."""
    if _Current.scene is not None:
        _Current.scene.problems.append(problem)


def attempt_begins(key: BindingKey) -> None:
    """Note that a plugin is called for a new attempt."""
    if _Current.scene is not None:
        _Current.scene.calls.append(Call(_Current.scene.clock(), key))


def refusal(call: str, key: BindingKey) -> Result:
    """Return a refusal with the time of the next attempt if the plan has one for this call, else SUCCESS."""
    scene = _Current.scene
    if scene is None:
        return SUCCESS
    for fault, _ in scene.faults.drawn(frozenset((REFUSES,)), scene.process, f"plugin {call}", scene.clock()):
        scene.calls.append(Call(scene.clock(), key, fault.value))
        return Result.unschedulable("injected", retry_after=fault.value)
    return SUCCESS


def plain(call: str, work: Callable[[], T]) -> T:
    """Return the result of a plain function of a plugin; ``call`` is ``RegionFilter.filter``."""
    for fault, draw in _faults(call):
        if fault.kind == "plugin_slow":
            spend(float(fault.value))
            continue
        return _answer(fault, call, draw)  # type: ignore[no-any-return]
    return work()


async def coroutine(call: str, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of a coroutine function of a plugin."""
    for fault, draw in _faults(call):
        if fault.kind == "plugin_slow":
            await asyncio.sleep(draw.choice((0.0, 0.01)))
            spend(float(fault.value))
        elif fault.kind == "plugin_hangs":
            await _hang(float(fault.value), draw)
        else:
            return _answer(fault, call, draw)  # type: ignore[no-any-return]
    return await work()


async def _hang(seconds: float, draw: Random) -> None:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if draw.random() < 0.3:
            await asyncio.sleep(0.5)  # a slow cleanup
        raise


def _faults(call: str) -> list[tuple[Fault, Random]]:
    scene = _Current.scene
    if scene is None:
        return []
    method = call.partition(".")[2]

    def fits(fault: Fault) -> bool:
        match fault.kind:
            case "plugin_error" | "plugin_nonsense":
                return method not in _WITHOUT_RESULT
            case "plugin_hangs":
                return method not in _PLAIN
            case "plugin_waits":
                return method == "permit"
            case "plugin_rejects":
                return method in ("permit", "reserve", "pre_bind", "pre_enqueue")
            case "plugin_slow":
                return method not in ("run", "post_bind")
        return True

    return scene.faults.drawn(_KINDS, scene.process, f"plugin {call}", scene.clock(), fits=fits)


def _answer(fault: Fault, call: str, draw: Random) -> Any:
    method = call.partition(".")[2]
    match fault.kind:
        case "plugin_raises":
            raise draw.choice(
                (InjectedError("injected"), KeyError("injected"), RecursionError(), TimeoutError())
            )
        case "plugin_raises_base":
            raise draw.choice(_BASE_ERRORS)("injected")
        case "plugin_nonsense":
            return draw.choice(_NONSENSE.get(method, _NO_RESULTS))
        case "plugin_waits":
            return Result.wait(float(fault.value), "injected")
        case "plugin_rejects":
            return Result.unschedulable("injected")
    if method == "score":
        raise InjectedError("injected")
    return Result.error("injected")


def number_of(name: str) -> int:
    """Return the digits of a name as a number, for decisions that differ from name to name."""
    return int("".join(each for each in name if each.isdigit()) or "0")
