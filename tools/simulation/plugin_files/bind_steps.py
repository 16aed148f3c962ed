"""Works before and after the write."""

from karmada_scheduler.framework import SUCCESS, BindContext, Result
from tools.simulation import plugin_kit


class BindSteps:
    """Do nothing before and after the write."""

    name = "BindSteps"

    async def pre_bind(self, context: BindContext, /) -> Result:
        async def work() -> Result:
            return SUCCESS

        return await plugin_kit.coroutine("BindSteps.pre_bind", work)

    async def post_bind(self, context: BindContext, /) -> None:
        async def work() -> None:
            return

        await plugin_kit.coroutine("BindSteps.post_bind", work)
