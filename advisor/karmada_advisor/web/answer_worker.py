"""Answers that need decisions. Each is computed in a fork, with one bound: its time and its memory, and one of each requester."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from karmada_advisor.web.forked import Forked, LimitError
from karmada_scheduler.structs import IdentityStruct, field

T = TypeVar("T")

SECONDS: Final = 30.0
"""The time of one answer. At 5,000 clusters, 99 of 100 questions take 3.2 s, and the largest plans 17 s, if nothing else runs."""
MAX_AT_ONCE: Final = 2
MAX_WAITING: Final = 8
"""Questions that wait, those of different requesters together."""
_WAIT_SECONDS: Final = 10.0
"""How long a question waits until it is begun."""
_TURN_SECONDS: Final = 2.0
"""How long it waits for the one before it of the same requester, such as another tab of the browser."""
_KEPT: Final = 32
"""Results that are kept, for pages that are loaded again."""


class BusyError(Exception):
    """Too many answers are being waited for; the same question may have an answer later."""


class TooLongError(Exception):
    """The answer takes more time or memory than it may; the same question has none later either."""


class AnswerWorker(IdentityStruct, kw_only=True):
    """Computes answers in forks of the thread that asks; results are kept as long as the objects are the same.

    Attributes:
        seconds: The time of one answer.
        computed: Called with each result.
        on_ended: Called with the reason for which an answer was ended: ``time``, ``memory``, or ``abandoned`` where nobody
            waits any more.
        on_process: Called for each process that has begun.
        waiting: Questions that wait until they are begun.
    """

    seconds: float = SECONDS
    computed: Callable[[Any], None] = lambda _: None
    on_ended: Callable[[str], None] = lambda _: None
    on_process: Callable[[], None] = lambda: None
    waiting: int = 0
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_AT_ONCE))
    _kept: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def answer(self, key: Hashable, work: Callable[[], T], *, requester: str = "") -> T:
        """Return the result of a function, or the one that is kept under the same key.

        Of one requester, one question is answered or waits; a second one waits for it for a moment.

        Args:
            key: Of the question.
            work: Computes the result, which can be pickled.
            requester: Who asks.

        Raises:
            BusyError: Too many questions wait, or it has waited for too long.
            TooLongError: It took too much time or memory.
        """
        if key not in self._kept:
            turn = self._turns.setdefault(requester, asyncio.Lock())
            try:
                async with asyncio.timeout(_TURN_SECONDS):
                    await turn.acquire()
            except TimeoutError:
                raise BusyError(
                    "your question before this one is being answered; try again in a moment"
                ) from None
            try:
                if key not in self._kept:
                    self._keep(key, await self._result(work))
            finally:
                turn.release()
        found: T | TooLongError = self._kept[key]
        if isinstance(found, TooLongError):
            raise found
        return found

    def _keep(self, key: Hashable, result: object) -> None:
        self.computed(result)
        self._kept[key] = result
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    async def _result(self, work: Callable[[], T]) -> T | TooLongError:
        if self.waiting >= MAX_WAITING:
            raise BusyError(f"{MAX_WAITING} questions wait for an answer; try again in a moment")
        self.waiting += 1
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise BusyError("other questions are being answered; try again in a moment") from None
        finally:
            self.waiting -= 1
        try:
            return await self.run(work, self.seconds)
        except TooLongError as error:
            return error
        finally:
            self._slots.release()

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Return the result of a function, whatever else is computed.

        Args:
            work: Computes the result, which can be pickled.
            seconds: Its time.

        Raises:
            BusyError: No process can be started.
            TooLongError: It took too much time or memory.
        """
        try:
            forked = Forked(work, seconds)
        except OSError as problem:
            raise BusyError(f"no process can be started for the answer: {problem}") from problem
        self.on_process()
        try:
            result: T = await forked.result()
        except LimitError as limit:
            self.on_ended(limit.reason)
            raise TooLongError(f"the answer takes more than {limit}") from None
        except asyncio.CancelledError:
            self.on_ended("abandoned")
            raise
        return result
