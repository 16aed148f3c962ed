"""CPU time per decision of our core and of the Go core, on the same fleets in one run. ``make bench-decisions``

    python -m tools.bench.decisions --sizes 100 1000 --json FILE

The two take turns: each round has as many bindings as it is given, of which the Go core decides as many as it can in
its seconds (karmada-scheduler's genericScheduler.Schedule, the copy of all clusters that it makes included) and ours
all, one pass each: karmada-scheduler schedules Duplicated bindings again after its write, ours before it. Both see the clusters
report in between, and the decisions are compared. A figure is the median over the rounds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from karmada_advisor.views.text import table
from karmada_scheduler.testing import framework
from tools.bench.cores import Batch, Bill, Go, Ours, OwnRule
from tools.bench.fleet import PLACEMENTS, Bindings, Fleet
from tools.oracle import program

MIXED: Final = tuple(PLACEMENTS)


@dataclass(frozen=True)
class Scenario:
    """The kind of bindings, and what changes between decisions.

    Attributes:
        placements: Of the bindings, in turn.
        bindings: ``new``, ``scaled`` (placed before, now with other replicas) or ``unlike`` (new, each with a request
            that no other has).
        moves: Whether clusters report between decisions.
        cold: Whether ours has nothing remembered at any decision.
        own_rule: Whether both have a Filter and Score plugin of somebody's own, without keys (``cores.OwnRule``).
    """

    placements: tuple[str, ...]
    bindings: str = "new"
    moves: bool = True
    cold: bool = False
    own_rule: bool = False

    @property
    def label(self) -> str:
        """The label in the table."""
        what = "mixed" if self.placements == MIXED else self.placements[0]
        fleet = "first ever" if self.cold else "moves" if self.moves else "still"
        return f"{what}, {self.bindings}, {fleet}" + (", own rule" if self.own_rule else "")


def scenarios(*, models: bool) -> Iterator[Scenario]:
    """Yield all scenarios; with models, those with status updates and the first decision."""
    for placement in PLACEMENTS:
        for moves in (True,) if models else (False, True):
            yield Scenario((placement,), moves=moves)
            yield Scenario((placement,), "scaled", moves=moves)
        if not models:
            yield Scenario((placement,), "unlike")
            yield Scenario((placement,), own_rule=True)
        yield Scenario((placement,), moves=False, cold=True)
    yield Scenario(MIXED)


@dataclass(frozen=True)
class Row:
    """The figures of one scenario: milliseconds of CPU per decision, medians over the rounds.

    Attributes:
        ratio: Of ours to Go's, as a median; ``least`` and ``most`` are those of single rounds.
        compared: Decisions that both have taken; ``different`` of them came out otherwise.
    """

    clusters: int
    models: bool
    scenario: str
    go_cpu_ms: float
    go_wall_ms: float
    ours_cpu_ms: float
    ratio: float
    least: float
    most: float
    decisions: int
    compared: int
    different: int

    @classmethod
    def of(cls, clusters: int, models: bool, scenario: str, rounds: Sequence[tuple[Bill, Bill]]) -> Row:
        """Sum up rounds of (Go's, ours)."""
        ratios = [ours.cpu_each / go.cpu_each for go, ours in rounds]
        pairs = [pair for go, ours in rounds for pair in zip(go.results, ours.results, strict=False)]
        return cls(
            clusters,
            models,
            scenario,
            go_cpu_ms=1e3 * statistics.median(go.cpu_each for go, _ in rounds),
            go_wall_ms=1e3 * statistics.median(go.wall / go.decisions for go, _ in rounds),
            ours_cpu_ms=1e3 * statistics.median(ours.cpu_each for _, ours in rounds),
            ratio=statistics.median(ratios),
            least=min(ratios),
            most=max(ratios),
            decisions=sum(ours.decisions for _, ours in rounds),
            compared=len(pairs),
            different=sum(1 for go, ours in pairs if go != ours),
        )


class Bench:
    """One fleet under both cores."""

    def __init__(self, fleet: Fleet, go: Go, options: argparse.Namespace, *, own_rule: bool = False) -> None:
        self._fleet = fleet
        self._go = go
        self._options = options
        self._go.load(list(fleet.clusters.values()), own_rule=own_rule)
        self._profile = framework(OwnRule) if own_rule else None
        self._ours = Ours(list(fleet.clusters.values()), self._profile)

    def close(self) -> None:
        """Release the process-wide timeout."""
        self._ours.close()

    def measure(self, scenario: Scenario) -> Row:
        """Measure both in turns, after warm-up rounds with every request."""
        self._ours.forget()
        bindings = Bindings(scenario.placements, unlike=scenario.bindings == "unlike")
        for _ in scenario.placements:
            self._round(scenario, bindings, seconds=0.01)
        rounds = [
            self._round(scenario, bindings, seconds=self._options.seconds)
            for _ in range(self._options.rounds)
        ]
        return Row.of(self._fleet.size, self._fleet.models, scenario.label, rounds)

    def _round(self, scenario: Scenario, bindings: Bindings, *, seconds: float) -> tuple[Bill, Bill]:
        if scenario.cold:
            return self._cold_round(bindings, seconds=seconds)
        count = self._options.decisions
        scaled = scenario.bindings == "scaled"
        drawn = [bindings.scaled(self._ours.place) if scaled else bindings.draw() for _ in range(count)]
        batch = Batch(drawn, self._fleet.reports(count) if scenario.moves else ())
        return self._go.run(batch, seconds=seconds), self._ours.run(batch)

    def _cold_round(self, bindings: Bindings, *, seconds: float) -> tuple[Bill, Bill]:
        """Measure a single decision with empty caches, also of values derived from clusters."""
        batch = Batch([bindings.draw()])
        go = self._go.run(Batch([*batch.bindings] * 50), seconds=seconds)
        self._ours.close()
        self._ours = Ours(list(self._fleet.clusters.values()), self._profile)
        return Bill(go.cpu, go.wall, go.results), self._ours.run(batch)


def run(options: argparse.Namespace, report: Callable[[Row], None]) -> None:
    """Measure all selected scenarios."""
    for size, models, own_rule in itertools.product(options.sizes, (False, True), (False, True)):
        wanted = [
            scenario
            for scenario in scenarios(models=models)
            if scenario.own_rule is own_rule and options.only in scenario.label
        ]
        if wanted:
            with Go(program.ensure()) as go:
                bench = Bench(Fleet(size, models=models), go, options, own_rule=own_rule)
                for scenario in wanted:
                    report(bench.measure(scenario))
                bench.close()


HEADING: Final = (
    "clusters",
    "models",
    "placement, bindings, fleet",
    "Go ms",
    "ours ms",
    "ours/Go",
    "range",
    "n",
    "≠",
)


def cells(row: Row) -> tuple[object, ...]:
    """Return a line of the table."""
    return (
        row.clusters,
        "yes" if row.models else "",
        row.scenario,
        f"{row.go_cpu_ms:.2f}",
        f"{row.ours_cpu_ms:.3f}",
        f"1/{1 / row.ratio:.1f}",
        f"1/{1 / row.most:.0f}..1/{1 / row.least:.0f}",
        row.compared,
        row.different,
    )


def markdown(rows: Sequence[Row]) -> str:
    """Return tables for a page: a line per scenario, a column per size."""
    sizes = sorted({row.clusters for row in rows})
    lines = []
    for models in (False, True):
        some = {(row.scenario, row.clusters): row for row in rows if row.models is models}
        if not some:
            continue
        title = "with resource models" if models else "placement, bindings, fleet"
        lines += [f"| {title} | " + " | ".join(f"{size:,} clusters" for size in sizes) + " |"]
        lines += ["|---|" + "---|" * len(sizes)]
        for scenario in dict.fromkeys(label for label, _ in some):
            found = [some.get((scenario, size)) for size in sizes]
            texts = [
                "" if row is None else f"{row.go_cpu_ms:.1f} → {row.ours_cpu_ms:.2f}: {_factor(row.ratio)}"
                for row in found
            ]
            lines.append(f"| {scenario} | " + " | ".join(texts) + " |")
        lines.append("")
    return "\n".join(lines)


def _factor(ratio: float) -> str:
    if ratio > 1:
        return f"{ratio:.1f} times"
    return f"1/{1 / ratio:.1f}" if ratio > 0.1 else f"**1/{1 / ratio:.0f}**"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make bench-decisions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 5000], help="clusters")
    parser.add_argument("--decisions", type=int, default=100, help="of ours in a round")
    parser.add_argument("--seconds", type=float, default=0.5, help="for the Go core in a round")
    parser.add_argument("--rounds", type=int, default=3, help="that are counted")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print what --json wrote, as Markdown")
    options = parser.parse_args(arguments)
    if options.page:
        print(markdown([Row(**row) for row in json.loads(options.page.read_text())["rows"]]))
        return 0
    rows: list[Row] = []

    about = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "rounds": options.rounds,
        "decisions": options.decisions,
    }

    def report(row: Row) -> None:
        rows.append(row)
        if options.json:
            document = {**about, "rows": [asdict(each) for each in rows]}
            options.json.write_text(json.dumps(document, indent=1) + "\n")
        print("  ".join(str(cell) for cell in cells(row)), file=sys.stderr, flush=True)

    run(options, report)
    print(table(HEADING, [cells(row) for row in rows]))
    return 1 if any(row.different for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
