"""BusinessHours: bindings are placed and moved during business hours only."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from karmada_scheduler.framework import SUCCESS, BindContext, Handle, Result


class BusinessHours:
    """Permit changes on working days between two hours; otherwise keep the placement and retry at the opening."""

    name = "BusinessHours"

    @dataclass
    class Args:
        timezone: str = "UTC"
        opens: int = 9
        closes: int = 17
        days: tuple[int, ...] = (0, 1, 2, 3, 4)  # 0 is Monday

        def __post_init__(self) -> None:
            if not self.days:
                raise ValueError("at least one day is needed")

    def __init__(self, args: Args, handle: Handle) -> None:
        self.args, self.handle, self.zone = args, handle, ZoneInfo(args.timezone)

    async def permit(self, context: BindContext, /) -> Result:
        now = datetime.fromtimestamp(self.handle.now(), self.zone)
        if now.weekday() in self.args.days and self.args.opens <= now.hour < self.args.closes:
            return SUCCESS
        opening = now.replace(hour=self.args.opens, minute=0, second=0, microsecond=0)
        while opening <= now or opening.weekday() not in self.args.days:
            opening += timedelta(days=1)
        pause = opening.timestamp() - now.timestamp()
        return Result.unschedulable(f"outside business hours until {opening:%A %H:%M %Z}", retry_after=pause)
