"""The way of one decision through Reserve, Permit, PreBind, Bind and PostBind.

Only a decision that found a place and changes the binding's spec goes this way. Whatever ends it before the
binding is written gives back what plugins have reserved for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import PluginError, SchedulingError
from karmada_scheduler.framework.runtime.binding_points import BindingPoints, WaitFor
from karmada_scheduler.framework.runtime.failure_log import mark_scheduler_error

log = logging.getLogger(__name__)

__timeout_shield__ = True

Write = Callable[[], Awaitable[Binding]]


class BindingTransaction:
    """One decision on its way.

    Attributes:
        written: The binding as it was stored, once it was; None also where a plugin wrote by itself.
        binder: Who has bound it, for texts.
    """

    def __init__(
        self,
        points: BindingPoints,
        binding: Binding,
        targets: Sequence[TargetCluster],
        cycle: Cycle,
        *,
        write: Write,
        wait: WaitFor,
        ensure_leading: Callable[[], None] = lambda: None,
    ) -> None:
        """Set out.

        Args:
            points: The plugins.
            binding: As it was decided about.
            targets: Where it is to go.
            cycle: The attempt that found the place.
            write: What Bind plugins may call.
            wait: How a binding waits at Permit.
            ensure_leading: Raises if this process may not be the leader any more; called before everything that may
                write.
        """
        self._points = points
        self._ensure_leading = ensure_leading
        self._write = write
        self._wait = wait
        self._failure: Exception | None = None
        self._context = BindContext(binding, targets, cycle, self._patch)
        self.written: Binding | None = None
        self.binder = ""

    def reserve(self) -> None:
        """Claim what the decision needs; SchedulingError if it is refused, and then nothing is claimed."""
        self._points.reserve(self._context)

    async def go(self) -> None:
        """Get permission, prepare and write.

        What is written is bound: a plugin that fails after that changes nothing, and is only told of in the log.

        Raises:
            SchedulingError: A plugin refused or failed.
            AbandonedError: The decision is out of date.
            Exception: What the write itself raised.
        """
        try:
            await self._points.permit(self._context, self._wait)
            self.binder = await self._points.bind(self._context, ensure_leading=self._ensure_leading)
        except BaseException as error:
            if self.written is not None and isinstance(error, SchedulingError):
                log.error("After writing %s: %s", self._context.binding.key.display, error)  # noqa: TRY400
                return
            self.give_back()
            if self._failure is not None and isinstance(error, PluginError):
                raise self._failure from None
            raise

    def give_back(self) -> None:
        """Give back what was claimed: nothing is written."""
        self._points.unreserve(self._context)

    async def arrived(self) -> None:
        """Tell plugins that the decision is written."""
        await self._points.post_bind(self._context)

    async def _patch(self) -> Binding:
        if self.written is not None:
            return self.written
        try:
            self.written = await self._write()
        except Exception as error:
            self._failure = error
            mark_scheduler_error(error)
            raise
        return self.written
