"""Selects and divides nothing itself."""

from karmada_scheduler.framework import AssignContext, Code, Result, SelectContext
from tools.simulation import plugin_kit


class Divider:
    """Leave the selection and the division to the plugins after it."""

    name = "Divider"

    def select(self, context: SelectContext, /) -> Result:
        return plugin_kit.plain("Divider.select", lambda: Result(Code.SKIP))

    async def assign(self, context: AssignContext, /) -> Result:
        async def work() -> Result:
            return Result(Code.SKIP)

        return await plugin_kit.coroutine("Divider.assign", work)
