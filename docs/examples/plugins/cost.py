"""Cost: prefer cheap clusters, by prices from a JSON file or from Prometheus."""

import json
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from karmada_scheduler.framework import SKIP, SUCCESS, PreScoreContext, Result, ScoreContext, StateKey

PRICES = StateKey[dict[str, float]]("Cost/prices")


class Cost:
    """Score by price: 0 for the dearest and the unknown, 100 for what is free; without prices not at all."""

    name = "Cost"

    @dataclass
    class Args:
        prices: str  # a JSON file, {"m1": 0.5}, or the URL of a Prometheus query; by label "cluster"

    def __init__(self, args: Args) -> None:
        self.source = args.prices

    async def pre_score(self, context: PreScoreContext, /) -> Result:
        try:
            if self.source.startswith("http"):
                async with aiohttp.request("GET", self.source, timeout=aiohttp.ClientTimeout(1)) as answer:
                    rows = (await answer.json())["data"]["result"]
                prices = {row["metric"]["cluster"]: float(row["value"][1]) for row in rows}
            else:
                prices = json.loads(Path(self.source).read_text())
        except (OSError, ValueError, KeyError, aiohttp.ClientError):  # a timeout is an OSError
            return SKIP
        context.cycle.state.write(PRICES, prices)
        return SUCCESS

    def score(self, context: ScoreContext, /) -> int:
        dearest = max((prices := context.cycle.state.read(PRICES)).values(), default=0) or 1
        return 100 - round(100 * prices.get(context.cluster.name, dearest) / dearest)
