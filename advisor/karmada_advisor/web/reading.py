"""Reads the objects of files for the page, again and again while somebody looks at it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from karmada_advisor.cli.questions import source_of
from karmada_advisor.explain.unclaimed import without_binding
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.read import read_fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.web.fleet import clusters_of
from karmada_advisor.web.state import NOT_READ, PageContents, PageState
from karmada_advisor.whatif.survive.question import taint_policies_of
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)

_READING_SECONDS: Final = 60.0
"""Time of a reading, after which the page says that it takes too long: a file may be one that never ends."""

_UNSEEN_SECONDS: Final = 60.0
"""Without a request for this long, nobody looks."""


class Visits:
    """Requests as they come in; for use from the thread of the server."""

    def __init__(self, refresh: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Read every ``refresh`` seconds while somebody looks; ``clock`` is in seconds."""
        self._refresh = refresh
        self._clock = clock
        self._requested = 0.0
        self._read = 0.0
        self._wake = asyncio.Event()

    def note_request(self) -> None:
        """Note a request. If the last reading is older than ``refresh``, the next one is due at once."""
        self._requested = self._clock()
        if self._requested - self._read > self._refresh:
            self._wake.set()

    def reading(self) -> None:
        """Note that a reading begins."""
        self._read = self._clock()

    async def next(self) -> bool:
        """Wait until a reading may be due; return whether somebody looks."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._refresh):
                await self._wake.wait()
        self._wake.clear()
        return self._clock() - self._requested <= _UNSEEN_SECONDS


class Reader:
    """The objects of files as they were read last."""

    progress: Final = ""
    """Everything is read before the page is served."""

    watch_ages: Final[Mapping[str, float]] = MappingProxyType({})
    """Nothing is watched."""

    def __init__(self, arguments: argparse.Namespace, rules: Rules) -> None:
        """Take the flags, and the rules of decisions; ``read`` reads for the first time."""
        self._source, self._rules = source_of(arguments), rules
        self._taint_policies: Sequence[str] = arguments.taint_policies
        self._files = [
            *arguments.clusters,
            *arguments.bindings,
            *arguments.policies,
            *arguments.workloads,
            *arguments.taint_policies,
            *filter(None, (arguments.replay,)),
        ]
        self._state: PageState | None = None
        self._stamp: Hashable = None
        self._visits = Visits(arguments.refresh)
        self._seconds = max(_READING_SECONDS, 2 * arguments.request_timeout)

    @property
    def state(self) -> PageState:
        """The objects."""
        assert self._state is not None  # read at the start
        return self._state

    def note_request(self) -> None:
        """Note a request; objects that are old are read at once."""
        self._visits.note_request()

    def read(self) -> None:
        """Read everything, unless no file has changed.

        Raises:
            NoAnswerError: Nothing can be read.
        """
        before, stamp = self._state, tuple(map(_stamp_of, self._files))
        if before is not None and stamp == self._stamp:
            self._state = replace(before, failure="") if before.failure else before
            return
        objects = read_fleet(self._source, all_bindings=True)
        policies, _ = taint_policies_of(self._taint_policies, self._source.plane, objects)
        templates = without_binding(objects, objects.workloads or ())
        unread = NOT_READ if objects.workloads is None else ""
        contents = PageContents(objects, objects.facts(self._rules.running), policies, templates, unread)
        clusters_of(contents)  # so that no request waits for it, nor for the index
        number = 1 if before is None else before.number + 1
        problems = (*objects.problems, *objects.warnings)
        self._state = PageState(number, objects.source, datetime.now(UTC), contents, problems)
        self._stamp = stamp

    async def refresh(self) -> PageState:
        """Return the objects as they were read last."""
        return self.state

    async def keep_reading(self) -> None:
        """Read again while somebody looks, and after a failure, which is shown; the objects of before are kept."""
        while True:
            is_due = await self._visits.next() or self.state.failure
            if is_due and "-" not in self._files:
                self._visits.reading()
                await self._read_again()

    async def _read_again(self) -> None:
        reading = asyncio.create_task(asyncio.to_thread(self.read))
        while not (await asyncio.wait({reading}, timeout=self._seconds))[0]:
            self._failed(f"reading takes more than {self._seconds:g} s")
        error = reading.exception()
        if isinstance(error, NoAnswerError):
            self._failed(str(error))
        elif error is not None:
            log.error("Cannot read the objects again", exc_info=error)
            self._failed(f"{type(error).__name__}: {error}")

    def _failed(self, problem: str) -> None:
        self._state = replace(self.state, failure=f"The objects could not be read again: {problem}")


def _stamp_of(path: str) -> tuple[int, int] | None:
    """Return time and size of a file; None without one."""
    try:
        status = os.stat(path)  # noqa: PTH116 (a time and a size)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
