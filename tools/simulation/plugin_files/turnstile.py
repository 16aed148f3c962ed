"""Lets bindings wait at Permit."""

import asyncio

from karmada_scheduler.framework import SUCCESS, BindContext, Handle, Result
from tools.simulation import plugin_kit

_SECONDS = 2.0
_LONGEST_WAIT = 30.0


class Turnstile:
    """Let one binding in three wait, and allow it a little later."""

    name = "Turnstile"

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    async def permit(self, context: BindContext, /) -> Result:
        async def work() -> Result:
            waits = plugin_kit.number_of(context.binding.key.name) % 3 == 0
            return Result.wait(_LONGEST_WAIT, "waits for its turn") if waits else SUCCESS

        return await plugin_kit.coroutine("Turnstile.permit", work)

    async def run(self) -> None:
        async def work() -> None:
            for each in self.handle.waiting():
                each.allow(self.name)

        while True:
            await asyncio.sleep(_SECONDS)
            await plugin_kit.coroutine("Turnstile.run", work)
