"""Cost: prefer cheap clusters, by prices that are read from a JSON file or Prometheus every n seconds."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from karmada_scheduler.framework import SKIP, SUCCESS, Handle, PreScoreContext, Result, ScoreContext


class Cost:
    """Score by price: 0 for the highest or an unknown price, 100 for price 0; skip Score without prices."""

    name = "Cost"

    @dataclass
    class Args:
        prices: str  # a JSON file, {"m1": 0.5}, or the URL of a Prometheus query; by label "cluster"
        seconds: float = 30.0

    def __init__(self, args: Args, handle: Handle) -> None:
        self.source, self.seconds, self.prices = args.prices, args.seconds, dict[str, float]()

    async def run(self) -> None:
        while True:
            await self._read()
            await asyncio.sleep(self.seconds)

    async def _read(self) -> None:
        with suppress(OSError, ValueError, KeyError, aiohttp.ClientError):  # keeps the last prices
            if self.source.startswith("http"):
                async with aiohttp.request("GET", self.source, timeout=aiohttp.ClientTimeout(1)) as answer:
                    rows = (await answer.json())["data"]["result"]
                self.prices = {row["metric"]["cluster"]: float(row["value"][1]) for row in rows}
            else:
                self.prices = json.loads(Path(self.source).read_text())

    async def pre_score(self, context: PreScoreContext, /) -> Result:
        if not self.prices:  # before the first response, and in simulate, which does not call run
            await self._read()
        return SUCCESS if self.prices else SKIP

    def score(self, context: ScoreContext, /) -> int:
        highest = max(self.prices.values()) or 1
        return 100 - round(100 * self.prices.get(context.cluster.name, highest) / highest)
