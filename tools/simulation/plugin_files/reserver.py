"""Fails at Reserve and Unreserve, after the books."""

from karmada_scheduler.framework import SUCCESS, BindContext, Result
from tools.simulation import plugin_kit


class Reserver:
    """Reserve nothing."""

    name = "Reserver"

    def reserve(self, context: BindContext, /) -> Result:
        return plugin_kit.plain("Reserver.reserve", lambda: SUCCESS)

    def unreserve(self, context: BindContext, /) -> None:
        plugin_kit.plain("Reserver.unreserve", lambda: None)
