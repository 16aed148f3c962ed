"""Writes the tables and charts of ceilings and storms into docs/benchmark, from their JSON. ``make bench-page``"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tools.bench import plane_storms
from tools.bench.plot import Panel, picture
from tools.fast_apiserver import ceiling, storms
from tools.fast_apiserver.ceiling import Ceiling
from tools.fast_apiserver.storms import Storm
from tools.pages import markdown_table, with_section

FOLDER: Final = Path(__file__).parents[2] / "docs" / "benchmark"


def with_table(page: str, name: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a page whose table of this name is replaced.

    Raises:
        ValueError: It has no markers for it.
    """
    begin = f"<!-- {name}: made by tools.fast_apiserver.page -->"
    content = f"\n\n{markdown_table(heading, rows)}\n\n"
    return with_section(page, begin, f"<!-- end of {name} -->", content)


def facts(machine: dict[str, Any]) -> str:
    """Return the machine in one line."""
    return (
        f"{machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, commit {machine['commit']}"
    )


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


def main() -> int:
    """Write everything for which there is JSON."""
    document = json.loads((FOLDER / "ceiling.json").read_text())
    ceilings = [Ceiling(**each) for each in document["runs"]]
    page = FOLDER / "ceiling.md"
    page.write_text(with_table(page.read_text(), "ceiling", *ceiling.cells(ceilings)))
    (FOLDER / "ceiling.svg").write_text(picture(ceiling_panels(ceilings)))
    print(f"ceiling: {facts(document['machine'])}")
    document = json.loads((FOLDER / "storms.json").read_text())
    found = [Storm(**each) for each in document["runs"]]
    page = FOLDER / "storms.md"
    page.write_text(with_table(page.read_text(), "storms", *storms.cells(found)))
    (FOLDER / "storms.svg").write_text(picture(storm_panels(found)))
    print(f"storms: {facts(document['machine'])}")
    document = json.loads((FOLDER / "storms-plane.json").read_text())
    rows = plane_storms.cells([plane_storms.Storm(**each) for each in document["runs"]])
    page.write_text(with_table(page.read_text(), "storms-plane", *rows))
    print(f"storms on a real control plane: {facts(document['machine'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
