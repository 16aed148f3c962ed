"""Refuses for as long as the plan says, at each point that may ask for the time of the next attempt."""

from karmada_scheduler.framework import (
    SUCCESS,
    BindContext,
    Code,
    FilterContext,
    GuardContext,
    PreEnqueueContext,
    Result,
    SelectContext,
)
from tools.simulation import plugin_kit


class Refuser:
    """Note when attempts begin, and when they are refused."""

    name = "Refuser"

    def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
        plugin_kit.attempt_begins(context.binding.key)
        return plugin_kit.refusal("Refuser.pre_enqueue", context.binding.key)

    def filter(self, context: FilterContext, /) -> Result:
        return plugin_kit.refusal(f"Refuser.filter {context.cluster.name}", context.cycle.binding.key)

    def select(self, context: SelectContext, /) -> Result:
        result = plugin_kit.refusal("Refuser.select", context.cycle.binding.key)
        return Result(Code.SKIP) if result is SUCCESS else result

    def guard(self, context: GuardContext, /) -> Result:
        return plugin_kit.refusal("Refuser.guard", context.binding.key)

    def reserve(self, context: BindContext, /) -> Result:
        return plugin_kit.refusal("Refuser.reserve", context.binding.key)

    def unreserve(self, context: BindContext, /) -> None:
        """Nothing is reserved."""

    async def permit(self, context: BindContext, /) -> Result:
        return plugin_kit.refusal("Refuser.permit", context.binding.key)
