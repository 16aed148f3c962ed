"""Keeps bindings out of the queue for a while."""

import asyncio

from karmada_scheduler.framework import SUCCESS, BindingKey, Handle, PreEnqueueContext, Result
from tools.simulation import plugin_kit

_SECONDS = 5.0


class Gate:
    """Gate bindings when the plan says so, and activate them later."""

    name = "Gate"

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle
        self.gated: dict[BindingKey, None] = {}

    def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
        self.gated[context.binding.key] = None
        result = plugin_kit.plain("Gate.pre_enqueue", lambda: SUCCESS)
        if result is SUCCESS:
            del self.gated[context.binding.key]
        return result

    async def run(self) -> None:
        async def work() -> None:
            for key in self.gated:
                self.handle.activate(key)
            self.gated.clear()

        while True:
            await asyncio.sleep(_SECONDS)
            await plugin_kit.coroutine("Gate.run", work)
