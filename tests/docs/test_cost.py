"""Cost: cheap clusters first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from karmada_scheduler.framework import RunPlugin
from karmada_scheduler.testing import binding, cluster, schedule, scheduling
from tests.docs.conftest import Example

MEMBERS = [cluster("m1"), cluster("m2"), cluster("m3")]
ANYWHERE = binding("web").replicas(2).spread("cluster", 1, 1)
QUERY = "/api/v1/query?query=cluster_price_per_hour"


class Prometheus(ThreadingHTTPServer):
    """Answers one query, with these prices or with an error."""

    prices: dict[str, float] | None = None

    @property
    def query(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{QUERY}"


class Handler(BaseHTTPRequestHandler):
    server: Prometheus

    def do_GET(self) -> None:
        prices = self.server.prices if self.path == QUERY else None
        rows = [
            {"metric": {"cluster": name}, "value": [1767600000.0, str(price)]}
            for name, price in (prices or {}).items()
        ]
        self.send_response(503 if prices is None else 200)
        self.send_header("Content-Type", "text/plain" if prices is None else "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"status": "success", "data": {"result": rows}}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
        """Log nothing."""


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    with Prometheus(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_cheapest_cluster_is_chosen_by_prices_from_a_file(example: Example, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"m1": 2, "m2": 0.5}')
    run = schedule(ANYWHERE, *MEMBERS, plugins=example("cost", prices=str(prices)))
    assert run.placed == {"m2": 2}
    assert run.scores["Cost"] == {"m1": 0, "m2": 750, "m3": 0}


async def test_a_price_file_is_read_again_at_its_interval(example: Example, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"m1": 2, "m2": 1, "m3": 3}')
    plugins = example("cost", prices=str(prices), seconds=0.001)
    [plugin] = [each for each in plugins.plugins.unique if isinstance(each, RunPlugin)]
    running = asyncio.create_task(plugin.run())
    assert (await scheduling(ANYWHERE, *MEMBERS, plugins=plugins)).placed == {"m2": 2}
    prices.write_text('{"m1": 2, "m2": 1, "m3": 0}')
    async with asyncio.timeout(30):
        while (await scheduling(ANYWHERE, *MEMBERS, plugins=plugins)).placed != {"m3": 2}:
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_prices_that_cannot_be_read_again_stay(example: Example, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"m1": 2, "m2": 1}')
    plugins = example("cost", prices=str(prices))
    assert schedule(ANYWHERE, *MEMBERS, plugins=plugins).placed == {"m2": 2}
    prices.unlink()
    assert schedule(ANYWHERE, *MEMBERS, plugins=plugins).placed == {"m2": 2}


def test_prices_come_from_prometheus(example: Example, prometheus: Prometheus) -> None:
    prometheus.prices = {"m1": 4, "m2": 3, "m3": 1}
    run = schedule(ANYWHERE, *MEMBERS, plugins=example("cost", prices=prometheus.query))
    assert run.placed == {"m3": 2}
    assert run.scores["Cost"] == {"m1": 0, "m2": 250, "m3": 750}


def test_without_prices_all_clusters_have_the_same_score(
    example: Example, prometheus: Prometheus, tmp_path: Path
) -> None:
    for source in (prometheus.query, "http://127.0.0.1:1", str(tmp_path / "gone.json")):
        run = schedule(ANYWHERE, *MEMBERS, plugins=example("cost", prices=source))
        assert run.placed == {"m1": 2}
        assert "Cost" not in run.scores or not any(run.scores["Cost"].values())
