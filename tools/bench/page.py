"""Writes build/benchmark.md and the charts of docs/benchmark, from the JSON there. ``make bench-page``"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tools.bench.report import markdown
from tools.bench.scenarios import BARE, DEFAULT, FRESH_FIRST, LIFTED, OURS
from tools.bench.summary import Summary, summaries
from tools.fast_apiserver import ceiling, storms
from tools.fast_apiserver.ceiling import Ceiling
from tools.fast_apiserver.storms import Storm
from tools.report import Panel, markdown_table, picture

FOLDER: Final = Path(__file__).parents[2] / "docs" / "benchmark"
TABLES: Final = Path(__file__).parents[2] / "build" / "benchmark.md"
COLOURS: Final = {
    BARE: "#9aa5b1",
    DEFAULT: "#e8c07d",
    LIFTED: "#d98a3d",
    OURS: "#2f6f9f",
    FRESH_FIRST: "#6aa5cf",
}


def _panel(title: str, group: Sequence[Summary], value: Callable[[Summary], float | None]) -> Panel:
    best: dict[str, float] = {}
    for each in group:
        found, name = value(each), each.case["scheduler"]
        if found is not None:
            best[name] = max(found, best.get(name, 0.0))
    return Panel(title, [(name, best[name]) for name in COLOURS if name in best])


def _keeps_up(each: Summary) -> bool:
    placed = each.median("placed")
    return placed is not None and placed >= 0.99 * each.case["bindings"]


def throughput_panels(document: dict[str, Any]) -> list[list[Panel]]:
    """Return a column of charts for each number of clusters, those without a bar left out."""
    found = summaries(document)
    columns = []
    for clusters in sorted({each.case["clusters"] for each in found}):
        here = [each for each in found if each.case["clusters"] == clusters]
        backlog = [each for each in here if each.case["rate"] is None]
        placements = list(dict.fromkeys(each.case["placement"] for each in backlog))
        size = f"{clusters:,} clusters"
        column = []
        for placement in placements:
            group = [each for each in backlog if each.case["placement"] == placement]
            title = f"Backlog, {placement}, {size}: bindings/s"
            column.append(_panel(title, group, lambda each: each.median("rate")))
        first = [each for each in backlog if each.case["placement"] in placements[:1]]
        title = f"Backlog, {size}: CPU of the writer per binding, ms"
        column.append(_panel(title, first, lambda each: each.median("scheduler_cpu")))
        title = f"Backlog, {size}: CPU of API server and etcd per binding, ms"
        column.append(_panel(title, first, lambda each: each.servers_cpu))
        for rate in sorted({each.case["rate"] for each in here if each.case["rate"] is not None}):
            # A scheduler that does not keep up has no latency: it has a queue that grows.
            group = [each for each in here if each.case["rate"] == rate and _keeps_up(each)]
            title = f"Stream of {rate:g}/s, {size}: p99 to a place, ms"
            column.append(_panel(title, group, lambda each: each.median("latency", "answered", "p99")))
        columns.append([panel for panel in column if panel.bars])
    return columns


def ceiling_panels(runs: Sequence[Ceiling]) -> list[list[Panel]]:
    """Return a column of charts for each number of clusters."""
    columns = []
    for clusters in sorted({each.clusters for each in runs}):
        here = [each for each in runs if each.clusters == clusters]
        columns.append(
            [
                Panel(
                    f"Ceiling, {placement}, {clusters:,} clusters: bindings/s",
                    [(each.scheduler, each.rate) for each in here if each.placement == placement],
                )
                for placement in dict.fromkeys(each.placement for each in here)
            ]
        )
    return columns


def storm_panels(runs: Sequence[Storm]) -> list[list[Panel]]:
    """Return two columns of charts: the time until all is done, and that of new bindings."""
    time, new = [], []
    for name, count in dict.fromkeys((each.scenario, each.bindings) for each in runs):
        here = [each for each in runs if (each.scenario, each.bindings) == (name, count)]
        time.append(
            Panel(f"{name}, {count:,} bindings: seconds", [(each.scheduler, each.seconds) for each in here])
        )
        new.append(
            Panel("p99 of new bindings meanwhile: ms", [(each.scheduler, each.fresh_ms[1]) for each in here])
        )
    return [time, new]


def _document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def tables() -> str:
    """Return all tables as Markdown, each below the name of its JSON."""
    ceilings = [Ceiling(**each) for each in _document("ceiling")["runs"]]
    found = [Storm(**each) for each in _document("storms")["runs"]]
    parts = {name: markdown(_document(name)) for name in ("throughput", "rounds", "streams")}
    parts["ceiling"] = markdown_table(*ceiling.cells(ceilings))
    parts["storms"] = markdown_table(*storms.cells(found))
    return "# Benchmarks\n" + "".join(f"\n## {name}\n\n{text}\n" for name, text in parts.items())


def main() -> int:
    """Write everything."""
    TABLES.parent.mkdir(exist_ok=True)
    TABLES.write_text(tables())
    for name, columns in (
        ("throughput", throughput_panels(_document("throughput"))),
        ("ceiling", ceiling_panels([Ceiling(**each) for each in _document("ceiling")["runs"]])),
        ("storms", storm_panels([Storm(**each) for each in _document("storms")["runs"]])),
    ):
        (FOLDER / f"{name}.svg").write_text(picture(columns, COLOURS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
