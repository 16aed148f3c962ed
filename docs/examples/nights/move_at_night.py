"""Move workloads at night only, by the extension point Guard: an example of docs/writing-plugins.md."""

from datetime import UTC, datetime

from karmada_scheduler.framework import SUCCESS, GuardContext, Handle, Result


class MoveAtNight:
    """Take workloads off a cluster between 22:00 and 06:00 UTC only."""

    name = "MoveAtNight"

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    def guard(self, context: GuardContext, /) -> Result:
        hour = datetime.fromtimestamp(self.handle.now(), UTC).hour
        if not context.leaving or not 6 <= hour < 22:
            return SUCCESS
        return Result.unschedulable("moves wait until 22:00 UTC", retry_after=600)
