"""Waits for I/O before filters and scores."""

from karmada_scheduler.framework import SUCCESS, PreFilterContext, PreScoreContext, Result, StateKey
from tools.simulation import plugin_kit

_READ = StateKey[int]("Reading/clusters")


class Reading:
    """Read something before filters, and again before scores."""

    name = "Reading"

    async def pre_filter(self, context: PreFilterContext, /) -> Result:
        async def work() -> Result:
            context.cycle.state.write(_READ, len(context.clusters))
            return SUCCESS

        return await plugin_kit.coroutine("Reading.pre_filter", work)

    async def pre_score(self, context: PreScoreContext, /) -> Result:
        async def work() -> Result:
            return (
                SUCCESS if context.cycle.state.read(_READ) >= len(context.clusters) else Result.error("more")
            )

        return await plugin_kit.coroutine("Reading.pre_score", work)
