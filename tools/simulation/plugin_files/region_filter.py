"""A filter whose results are cached."""

from collections.abc import Hashable

from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Result
from tools.simulation import plugin_kit

VERSION = 1


class RegionFilter:
    """Refuse one cluster in four, another one for each binding."""

    name = "RegionFilter"
    version = VERSION

    def filter_key(self, cycle: Cycle) -> Hashable:
        return plugin_kit.plain(
            "RegionFilter.filter_key", lambda: plugin_kit.number_of(cycle.binding.key.name)
        )

    def filter(self, context: FilterContext, /) -> Result:
        def work() -> Result:
            number = plugin_kit.number_of(context.cycle.binding.key.name)
            if (number + plugin_kit.number_of(context.cluster.name)) % (3 + self.version) == 1:
                return Result.unschedulable("cluster(s) were in the wrong region")
            return SUCCESS

        return plugin_kit.plain("RegionFilter.filter", work)
