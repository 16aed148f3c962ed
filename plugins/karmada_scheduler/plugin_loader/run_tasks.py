"""Runs the ``run`` of plugins: a task for each, restarted after exceptions, cancelled when the plugin is replaced."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterable
from typing import Final

from karmada_scheduler.framework.plugin import Plugin, RunPlugin
from karmada_scheduler.framework.profile.factory import with_traceback_from
from karmada_scheduler.framework.runtime import coroutine_timeouts, timeouts
from karmada_scheduler.framework.runtime.coroutine_timeouts import CLEANUP_SECONDS, TimedCoroutine
from karmada_scheduler.framework.runtime.plugin_call import exception_text
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

FIRST_DELAY: Final = 1.0
"""Seconds before ``run`` is started again after the first failure; doubles with each further one."""

LONGEST_DELAY: Final = 60.0
"""The longest delay. After a run of this duration the next delay is the first one again."""

_RUNNERS: Final = frozenset({__file__, timeouts.__file__, coroutine_timeouts.__file__})
"""Files whose lines are left out of the tracebacks of plugins."""


class PluginTasks(Struct):
    """The tasks of all plugins that have ``run``, in one event loop.

    Attributes:
        timeout: The timeout of each step between two waits.
        on_failure: Called with the name of a plugin whose ``run`` raised and is started again.
    """

    timeout: timeouts.CallTimeout
    on_failure: Callable[[str], None] = lambda _: None
    _tasks: dict[int, _PluginTask] = field(default_factory=dict)
    _ending: set[asyncio.Task[None]] = field(default_factory=set)
    _closed: bool = False

    def keep(self, plugins: Iterable[Plugin]) -> None:
        """Start ``run`` of these plugins unless it runs already, and cancel the tasks of all others."""
        if self._closed:
            return
        wanted = {id(plugin): plugin for plugin in plugins if isinstance(plugin, RunPlugin)}
        for key in self._tasks.keys() - wanted.keys():
            self._end(self._tasks.pop(key))
        for key, plugin in wanted.items():
            if key not in self._tasks:
                self._tasks[key] = _PluginTask(plugin, self.timeout, self.on_failure)

    async def close(self) -> None:
        """Cancel all tasks, wait for their end, and start no more."""
        self._closed = True
        while self._tasks:
            self._end(self._tasks.popitem()[1])
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end(self, ended: _PluginTask) -> None:
        task = ended.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class _PluginTask:
    """The task of one plugin; its reference to the plugin keeps the plugin's id unique."""

    def __init__(
        self, plugin: RunPlugin, timeout: timeouts.CallTimeout, on_failure: Callable[[str], None]
    ) -> None:
        self._on_failure = on_failure
        self._plugin = plugin
        self._timeout = timeout
        self._logged: set[tuple[str, ...]] = set()
        self._is_abandoned = False
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._task = asyncio.create_task(self._run(), name=f"run {plugin.name}")

    def cancel(self) -> asyncio.Task[None]:
        """Cancel the task; abandon it if it has not ended after the time for its cleanup."""
        self._task.cancel()
        late = asyncio.get_running_loop().call_later(CLEANUP_SECONDS, self._abandon)
        self._task.add_done_callback(lambda _: late.cancel())
        return self._task

    def _abandon(self) -> None:
        self._is_abandoned = True
        self._task.cancel()

    async def _run(self) -> None:
        delay = FIRST_DELAY
        while True:
            began = self._clock()
            try:
                await TimedCoroutine(
                    self._plugin.run(), lambda: self._timeout, is_over=lambda: self._is_abandoned
                )
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
                if self._is_cancelled():
                    self._log_end(error)
                    return
                if self._clock() - began >= LONGEST_DELAY:
                    delay = FIRST_DELAY
                self._log_failure(error, delay)
                self._on_failure(self._plugin.name)
            else:
                return
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY)

    def _is_cancelled(self) -> bool:
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0

    def _log_failure(self, error: BaseException, delay: float) -> None:
        """Log a failure, with its traceback if there was none at the same place before."""
        own = with_traceback_from(error, lambda file: file not in _RUNNERS)
        kind = (type(error).__qualname__, *(f"{file}:{line}" for file, line, *_ in _places(own)))
        is_new = kind not in self._logged
        self._logged.add(kind)
        log.error(
            "A plugin's run failed, it is started again",
            exc_info=own if is_new else None,
            extra={"plugin": self._plugin.name, "seconds": f"{delay:g}", "error": exception_text(error)},
        )

    def _log_end(self, error: BaseException) -> None:
        if self._is_abandoned:
            text = "A plugin's run ignored its cancellation and was abandoned"
            log.warning(text, extra={"plugin": self._plugin.name})
        elif not isinstance(error, asyncio.CancelledError):
            text = "A plugin's run failed when it was cancelled"
            log.error(
                text, exc_info=error, extra={"plugin": self._plugin.name, "error": exception_text(error)}
            )


def _places(error: BaseException) -> list[traceback.FrameSummary]:
    return traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
