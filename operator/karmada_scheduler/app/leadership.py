"""Hold the Lease while this process schedules bindings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from karmada_scheduler.client.leader import Elector
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.process.supervisor import Supervisor

log = logging.getLogger(__name__)


class Leadership:
    """Whether this process may write; without leader election it always may."""

    def __init__(
        self,
        elector: Elector | None,
        *,
        supervisor: Supervisor,
        metrics: Metrics,
        end: Callable[..., None],
    ) -> None:
        """Use an elector whose connection belongs to the supervisor's event loop; None without leader election.

        ``end`` ends the process at once; see ``process_exit.end``.
        """
        self._end = end
        self._elector = elector
        self._supervisor = supervisor
        self._metrics = metrics

    def is_leader(self) -> bool:
        """Return False before the Lease is acquired, and once it may have expired."""
        return self._elector is None or self._elector.is_leader()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Acquire the Lease, renew it during the block, and release it at the end. If it is lost, the process ends."""
        if self._elector is None:
            yield
            return
        gauge = self._metrics.api_server.leader.labels("")
        gauge.set(0)
        await self._supervisor.run(self._elector.acquire())
        gauge.set(1)
        self._supervisor.leading = True
        renewal = asyncio.create_task(self._supervisor.run(self._renew(self._elector)), name="renew lease")
        try:
            yield
        finally:
            self._supervisor.leading = False
            gauge.set(0)
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
            await self._supervisor.run(self._elector.release())

    async def _renew(self, elector: Elector) -> None:
        """Renew the Lease; if it is lost, end the process, even while the main event loop is blocked."""
        reason = await elector.renew()
        self._end(1, log_last=lambda: log.error("leaderelection lost: %s", reason))
