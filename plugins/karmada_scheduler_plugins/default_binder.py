"""DefaultBinder: write the decision with one patch."""

from __future__ import annotations

from typing import Final

from karmada_scheduler.framework import SUCCESS, BindContext, Result


class DefaultBinder:
    """Bind by patching the binding's clusters and its applied placement."""

    name = "DefaultBinder"
    timeout: Final = None
    """No timeout: the client has its own deadline, and the rate limit may delay a write for longer."""

    async def bind(self, context: BindContext, /) -> Result:
        """Write, unless the binding has changed since the decision."""
        await context.patch()
        return SUCCESS
