"""The event source of a simulation: the scheduler's own reflectors and handlers, without kopf.

kopf's discovery and login need sockets, and its processor only calls the handlers.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from karmada_pyscheduler.informer.kopf_watch import KopfWatch
from karmada_pyscheduler.informer.reflector import Reflector


class SimulatedWatch(KopfWatch):
    """Watches kinds and hands every event to the handlers."""

    async def _run_once(self) -> None:
        self.after_start()
        self._running = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for kind, reflector in self._reflectors.items():
                    tasks.create_task(self._watch(kind, reflector), name=f"watch {kind}")
        finally:
            self._running = False

    async def _watch(self, kind: str, reflector: Reflector) -> None:
        async with aclosing(reflector.events()) as events:
            async for event in events:
                self.handlers.on_event(kind, event["type"], event["object"])
