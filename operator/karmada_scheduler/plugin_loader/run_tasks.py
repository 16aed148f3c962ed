"""The ``run`` of plugins: a task for each, started again when it raises, cancelled when the plugin is replaced."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from karmada_scheduler.framework.profile.factory import with_traceback_from
from karmada_scheduler.framework.run_hook import RunPlugin
from karmada_scheduler.framework.runtime import timeouts
from karmada_scheduler.framework.runtime.plugin_call import exception_text
from karmada_scheduler.framework.scheduling_points import Plugin

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait before a plugin is run again, in seconds.

    Attributes:
        first: After the first failure; doubles with each that follows.
        most: No pause is longer. A plugin that ran for as long as this begins with ``first`` again.
    """

    first: float = 1.0
    most: float = 60.0


class PluginTasks:
    """The tasks of all plugins that have ``run``; used in one event loop."""

    def __init__(
        self,
        watch: timeouts.CallTimeout,
        *,
        pauses: Pauses | None = None,
        grace: float = timeouts.CLEANUP_SECONDS,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Start with none.

        Args:
            watch: What each step between two waits runs under.
            pauses: Before one that raised is run again.
            grace: Seconds that a cancelled one may take to clean up.
            on_failure: Called with the name of a plugin whose ``run`` raised and is started again.
        """
        self._watch: Final = watch
        self._pauses: Final = pauses or Pauses()
        self._grace: Final = grace
        self._on_failure: Final = on_failure
        self._tasks: dict[int, _PluginTask] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    def keep(self, plugins: Iterable[Plugin]) -> None:
        """Run these plugins, as far as they have ``run``, and cancel all others; one that runs already goes on."""
        if self._closed:
            return
        wanted = {id(each): each for each in plugins if isinstance(each, RunPlugin)}
        for key in self._tasks.keys() - wanted.keys():
            self._end(self._tasks.pop(key))
        for key, plugin in wanted.items():
            if key not in self._tasks:
                self._tasks[key] = _PluginTask(plugin, self._watch, self._pauses, self._on_failure)

    async def close(self) -> None:
        """Cancel all, for good, and wait for their end."""
        self._closed = True
        while self._tasks:
            self._end(self._tasks.popitem()[1])
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end(self, ended: _PluginTask) -> None:
        task = ended.cancel(self._grace)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class _PluginTask:
    """One plugin that runs; holds it, so that its id stays its own."""

    def __init__(
        self,
        plugin: RunPlugin,
        watch: timeouts.CallTimeout,
        pauses: Pauses,
        on_failure: Callable[[str], None],
    ) -> None:
        self._on_failure = on_failure
        self._plugin = plugin
        self._watch = watch
        self._pauses = pauses
        self._told: set[tuple[str, ...]] = set()
        self._is_over = False
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._task = asyncio.create_task(self._go(), name=f"run {plugin.name}")

    def cancel(self, grace: float) -> asyncio.Task[None]:
        """Cancel it; if it goes on all the same, drop it after ``grace`` seconds."""
        self._task.cancel()
        late = asyncio.get_running_loop().call_later(grace, self._drop)
        self._task.add_done_callback(lambda _: late.cancel())
        return self._task

    def _drop(self) -> None:
        self._is_over = True
        self._task.cancel()

    async def _go(self) -> None:
        pause = self._pauses.first
        while True:
            began = self._clock()
            try:
                await timeouts.TimedCoroutine(self._plugin.run(), self._watch, is_over=lambda: self._is_over)
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
                if self._is_cancelled():
                    self._tell_end(error)
                    return
                if self._clock() - began >= self._pauses.most:
                    pause = self._pauses.first
                self._tell(error, pause)
                self._on_failure(self._plugin.name)
            else:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._pauses.most)

    def _is_cancelled(self) -> bool:
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0

    def _tell(self, error: BaseException, pause: float) -> None:
        """Log a failure; its traceback only if it is not like one before."""
        own = with_traceback_from(error, lambda file: file not in (__file__, timeouts.__file__))
        kind = (type(error).__qualname__, *(f"{file}:{line}" for file, line, *_ in _places(own)))
        is_new = kind not in self._told
        self._told.add(kind)
        log.error(
            "A plugin's run failed, it is started again",
            exc_info=own if is_new else None,
            extra={"plugin": self._plugin.name, "seconds": f"{pause:g}", "error": exception_text(error)},
        )

    def _tell_end(self, error: BaseException) -> None:
        if self._is_over:
            text = "A plugin's run went on after it was cancelled, it was dropped"
            log.warning(text, extra={"plugin": self._plugin.name})
        elif not isinstance(error, asyncio.CancelledError):
            text = "A plugin's run failed when it was cancelled"
            log.error(
                text, exc_info=error, extra={"plugin": self._plugin.name, "error": exception_text(error)}
            )


def _places(error: BaseException) -> list[traceback.FrameSummary]:
    return traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
