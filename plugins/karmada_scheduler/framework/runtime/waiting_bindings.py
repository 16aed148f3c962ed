"""Bindings that wait at Permit until all plugins that returned WAIT have allowed them.

Other bindings are scheduled and written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.structs import Struct, field

if TYPE_CHECKING:
    import asyncio  # answers from files start without it

__timeout_shield__ = True


def _new_event() -> asyncio.Event:
    import asyncio

    return asyncio.Event()


class AbandonedError(Exception):
    """A wait ended without a result, because its decision is outdated or the process stops.

    Attributes:
        reschedule: Whether the binding is to be scheduled again.
    """

    def __init__(self, reason: str, *, reschedule: bool) -> None:
        super().__init__(reason)
        self.reschedule = reschedule


def timeout_message(plugin: str, seconds: float, reason: str = "") -> str:
    """Return the message of a binding that was not allowed in time; ``reason`` is the plugin's reason for the wait."""
    text = f"rejected due to timeout after waiting {seconds:g}s at plugin {plugin}"
    return f"{text}: {reason}" if reason else text


class PendingPermit(Struct, eq=False):
    """A binding that waits.

    Attributes:
        binding: The binding as it was when it was scheduled.
        targets: The names of the clusters of the decision.
        timeouts: The longest wait in seconds by plugin name, until the plugin has allowed the binding.
        reasons: By plugin name, for the message of a timeout; None without any.
        result: How the wait has ended; None before that.
    """

    binding: Binding
    targets: frozenset[str]
    timeouts: Mapping[str, float]
    reasons: Mapping[str, str] | None = None
    result: Result | AbandonedError | None = None
    _allowed: set[str] = field(default_factory=set)
    _ended: asyncio.Event = field(default_factory=_new_event)

    @property
    def pending(self) -> Sequence[str]:
        """The names of the plugins that have not allowed the binding yet."""
        return tuple(name for name in self.timeouts if name not in self._allowed)

    def allow(self, plugin: str) -> None:
        """Allow the binding on behalf of a plugin."""
        self._allowed.add(plugin)
        if not self.pending:
            self._end(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """Refuse the binding on behalf of a plugin."""
        self._end(Result(Code.UNSCHEDULABLE, (reason,), plugin))

    def abandon(self, reason: str, *, reschedule: bool) -> None:
        """End the wait with AbandonedError."""
        self._end(AbandonedError(reason, reschedule=reschedule))

    def _end(self, result: Result | AbandonedError) -> None:
        if self.result is None:
            self.result = result
            self._ended.set()

    async def wait(self) -> Result:
        """Return SUCCESS, or a refusal that names the plugin, at the end of the wait.

        Raises:
            AbandonedError: The decision is outdated, or the process stops.
        """
        import asyncio

        began = asyncio.get_running_loop().time()
        while self.result is None:
            # The timeout of a plugin that has allowed the binding no longer counts.
            plugin = min(self.pending, key=self.timeouts.__getitem__)
            seconds = self.timeouts[plugin]
            try:
                async with asyncio.timeout_at(began + seconds):
                    await self._ended.wait()
            except TimeoutError:
                if plugin in self.pending:
                    self.reject(
                        plugin, timeout_message(plugin, seconds, (self.reasons or {}).get(plugin, ""))
                    )
        if isinstance(self.result, AbandonedError):
            raise self.result
        return self.result


class WaitingBindingView(Struct, eq=False):
    """A waiting binding for plugins; implements ``framework.handle.WaitingBinding``."""

    _waiting: PendingPermit
    _stored_workload: Callable[[BindingKey], Workload | None]

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
    """All bindings that wait, by key."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: dict[BindingKey, PendingPermit] = {}
        self._closed = ""

    def __len__(self) -> int:
        return len(self._waiting)

    def all(self) -> tuple[PendingPermit, ...]:
        """Return the bindings that wait now."""
        return tuple(self._waiting.values())

    async def wait(
        self,
        binding: Binding,
        targets: frozenset[str],
        timeouts: Mapping[str, float],
        *,
        reasons: Mapping[str, str] | None = None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Result:
        """Let a binding wait, and return the result.

        ``on_wait`` is called when the wait has begun, to abandon it if the decision is outdated already.

        Raises:
            AbandonedError: The decision is outdated, or the process stops.
        """
        if self._closed:
            raise AbandonedError(self._closed, reschedule=True)
        waiting = self._waiting[binding.key] = PendingPermit(binding, targets, timeouts, reasons)
        try:
            on_wait()
            return await waiting.wait()
        finally:
            del self._waiting[binding.key]

    def abandon_outdated(self, key: BindingKey, new: Binding | None, *, is_assigned: bool) -> None:
        """Abandon the wait of a binding that has changed, or is no longer assigned to this scheduler."""
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        if new is None or new.deleting:
            waiting.abandon("the binding was deleted while it waited", reschedule=False)
        elif not is_assigned:
            waiting.abandon("the binding was suspended or handed over while it waited", reschedule=False)
        elif (new.uid, new.generation) != (waiting.binding.uid, waiting.binding.generation):
            waiting.abandon("the binding changed while it waited", reschedule=True)

    def abandon_for_cluster(self, name: str) -> None:
        """Abandon the waits of decisions with a cluster that is being deleted or was deleted."""
        for waiting in self.all():
            if name in waiting.targets:
                waiting.abandon(f"cluster {name} was deleted while the binding waited", reschedule=True)

    def abandon_all(self, reason: str) -> None:
        """Abandon all waits, later ones included, because the process must not write any more."""
        self._closed = reason
        for waiting in self.all():
            waiting.abandon(reason, reschedule=True)
