"""Bindings that wait at Permit, until every plugin that made them wait has allowed them.

A binding that waits holds nothing up: others are decided and written meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.result import SUCCESS, Code, Result

__timeout_shield__ = True


class AbandonedError(Exception):
    """A wait has no point any more.

    Attributes:
        again: Whether the binding is to be decided anew.
    """

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


def time_is_up(plugin: str, seconds: float, reason: str = "") -> str:
    """Return the message of a binding that was not allowed in time; ``reason`` is the one that the plugin gave."""
    text = f"rejected due to timeout after waiting {seconds:g}s at plugin {plugin}"
    return f"{text}: {reason}" if reason else text


class PendingPermit:
    """One binding that waits."""

    def __init__(
        self,
        binding: Binding,
        targets: frozenset[str],
        timeouts: Mapping[str, float],
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        """Begin to wait.

        Args:
            binding: As it was when it was decided.
            targets: The names of its clusters.
            timeouts: Seconds by plugin name; they count until the plugin has allowed it.
            reasons: By plugin name, for the message when the time is up.
        """
        self._reasons = reasons or {}
        self._binding = binding
        self._timeouts = dict(timeouts)
        self._pending = dict.fromkeys(timeouts)
        self.targets = targets
        self._answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    @property
    def binding(self) -> Binding:
        """The binding as it was when it was decided."""
        return self._binding

    @property
    def pending(self) -> Sequence[str]:
        """The plugins that have not allowed it yet."""
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        """Let it go on as far as one plugin is concerned."""
        self._pending.pop(plugin, None)
        if not self._pending and not self._answer.done():
            self._answer.set_result(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """Refuse it, in the name of a plugin."""
        if not self._answer.done():
            self._answer.set_result(Result(Code.UNSCHEDULABLE, (reason,), plugin))

    def abandon(self, reason: str, *, again: bool) -> None:
        """End the wait without an answer."""
        if not self._answer.done():
            self._answer.set_exception(AbandonedError(reason, again=again))

    async def wait(self) -> Result:
        """Wait for the answer: SUCCESS, or a refusal that names the plugin.

        Raises:
            AbandonedError: What was decided is out of date, or the process stops.
        """
        began = asyncio.get_running_loop().time()
        try:
            while True:
                # The time of a plugin that has allowed it does not count any more.
                left = {name: seconds for name, seconds in self._timeouts.items() if name in self._pending}
                plugin, seconds = min(left.items(), key=lambda item: item[1], default=("", None))
                try:
                    async with asyncio.timeout_at(None if seconds is None else began + seconds):
                        return await asyncio.shield(self._answer)
                except TimeoutError:
                    if self._answer.done():
                        return self._answer.result()
                    if plugin in self._pending:
                        text = time_is_up(plugin, seconds or 0.0, self._reasons.get(plugin, ""))
                        return Result(Code.UNSCHEDULABLE, (text,), plugin)
        finally:
            if not self._answer.cancel() and not self._answer.cancelled():
                self._answer.exception()  # it has been heard, or nobody is left to hear it


class PendingPermitView:
    """A binding that waits, as plugins see it; conforms to ``framework.handle.WaitingBinding``."""

    __slots__ = ("_stored_workload", "_waiting")

    def __init__(
        self, waiting: PendingPermit, stored_workload: Callable[[BindingKey], Workload | None]
    ) -> None:
        """Show a binding that waits, with the workload that ``stored_workload`` returns."""
        self._waiting = waiting
        self._stored_workload = stored_workload

    @property
    def binding(self) -> Binding:
        """As ``PendingPermit.binding``."""
        return self._waiting.binding

    @property
    def pending(self) -> Sequence[str]:
        """As ``PendingPermit.pending``."""
        return self._waiting.pending

    @property
    def workload(self) -> Workload | None:
        """The metadata of its workload, as ``Handle.workload``."""
        return self._stored_workload(self.binding.key)

    def allow(self, plugin: str) -> None:
        """As ``PendingPermit.allow``."""
        self._waiting.allow(plugin)

    def reject(self, plugin: str, reason: str) -> None:
        """As ``PendingPermit.reject``."""
        self._waiting.reject(plugin, reason)


class WaitingBindings:
    """All that wait, by key."""

    def __init__(self) -> None:
        """Start with none."""
        self._waiting: dict[BindingKey, PendingPermit] = {}
        self._closed = ""

    def __len__(self) -> int:
        return len(self._waiting)

    def all(self) -> tuple[PendingPermit, ...]:
        """Return what waits now."""
        return tuple(self._waiting.values())

    async def wait(
        self,
        binding: Binding,
        targets: frozenset[str],
        timeouts: Mapping[str, float],
        *,
        reasons: Mapping[str, str] | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> Result:
        """Let a binding wait, and return how that ended.

        ``look`` is called once it waits, to tell this object of what has changed since the decision.

        Raises:
            AbandonedError: What was decided is out of date, or the process stops.
        """
        if self._closed:
            raise AbandonedError(self._closed, again=True)
        waiting = self._waiting[binding.key] = PendingPermit(binding, targets, timeouts, reasons)
        try:
            look()
            return await waiting.wait()
        finally:
            del self._waiting[binding.key]

    def binding_changed(
        self, key: BindingKey, new: Binding | None, *, still_ours: Callable[[Binding], bool]
    ) -> None:
        """Give up what was decided about a binding that has changed since, or is not ours any more."""
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        if new is None or new.deleting:
            waiting.abandon("the binding was deleted while it waited", again=False)
        elif not still_ours(new):
            waiting.abandon("the binding was suspended or handed over while it waited", again=False)
        elif (new.uid, new.generation) != (waiting.binding.uid, waiting.binding.generation):
            waiting.abandon("the binding changed while it waited", again=True)

    def cluster_leaves(self, name: str) -> None:
        """Give up what was decided for a cluster that is being deleted or is gone."""
        for waiting in self.all():
            if name in waiting.targets:
                waiting.abandon(f"cluster {name} was deleted while the binding waited", again=True)

    def abandon_all(self, reason: str) -> None:
        """Give up everything, and whatever comes later, when the process must not write any more."""
        self._closed = reason
        for waiting in self.all():
            waiting.abandon(reason, again=True)
