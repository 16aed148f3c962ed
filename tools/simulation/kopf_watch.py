"""The event source of a simulation: kopf's own watch loop, without kopf's discovery, login, queues and workers.

Those need sockets, or only move an event from one task to another. The loop that continues, restarts and times out
watches is kopf's, with the replacements of ``kopf_patches``.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kopf._cogs.clients import watching
from kopf._cogs.structs import references

from karmada_scheduler.client.karmada import Resource
from karmada_scheduler.informer.kopf_settings import WatchSettings
from karmada_scheduler.informer.kopf_watch import KopfWatch


class SimulatedWatch(KopfWatch):
    """Watches kinds and hands every event to a sink."""

    async def _run_once(self) -> None:
        settings = self._settings()
        self._after_start()
        self._running = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for resource in self._resources:
                    tasks.create_task(self._watch(resource, settings), name=f"watch {resource.kind}")
        finally:
            self._running = False

    async def _watch(self, resource: Resource, settings: WatchSettings) -> None:
        watched = references.Resource(
            group=resource.group,
            version=resource.version,
            plural=resource.plural,
            kind=resource.kind,
            namespaced=True,
        )
        events: Any = watching.infinite_watch(
            settings=settings, resource=watched, namespace=None, operator_paused=None
        )
        async for event in events:
            if isinstance(event, dict) and event["type"] != "BOOKMARK":
                self._sink(resource.kind, event["type"], event["object"])
