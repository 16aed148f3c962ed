"""Tables from the JSON of ``tools.bench.plane``."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from karmada_advisor.views.text import table
from tools.bench.scenarios import BARE, DEFAULT, LIFTED, OURS
from tools.bench.summary import Summary, summaries
from tools.report import markdown_table, number

CONTROL_PLANE = ("kube-apiserver", "etcd", "webhook", "aggregated")


def line(entry: dict[str, Any]) -> str:
    """Return the result of one run as a line."""
    case, result = entry["case"], entry["result"]
    what = "backlog" if case["rate"] is None else f"{case['rate']:g}/s"
    parts = [
        f"{case['clusters']} clusters, {case['placement']}, {what}, {Summary(case, []).label}",
        f"{number(result['rate'])}/s",
    ]
    if case["rate"] is not None:
        waits = result["latency"].get("answered", {})
        parts.append(
            "p50/p90/p99 " + "/".join(number(waits.get(name)) for name in ("p50", "p90", "p99")) + " ms"
        )
    used = " + ".join(number(result["servers_cpu"].get(name)) for name in CONTROL_PLANE)
    parts.append(f"CPU {number(result['scheduler_cpu'])} ms, servers {used} ms")
    parts.append("writes " + " ".join(f"{what} {count:.2f}" for what, count in result["writes"].items()))
    if missing := case["bindings"] - result["placed"]:
        parts.append(f"{missing} NOT PLACED")
    if result["unsettled"]:
        parts.append(f"{result['unsettled']} WITHOUT STATUS")
    parts.append(f"load {result['load']:.1f}")
    return "; ".join(parts)


def _share(value: float | None, base: float | None, *, percent: bool = False) -> str:
    if value is None or not base:
        return "-"
    return f"{value / base:.0%}" if percent else f"{value / base:.2f}x"


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, and rows of cells."""

    title: str
    heading: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Return it as Markdown."""
        return f"**{self.title}**\n\n{markdown_table(self.heading, self.rows)}"

    def aligned(self) -> str:
        """Return it for a terminal."""
        return f"{self.title}\n\n{table(self.heading, self.rows)}"


def _groups(found: Sequence[Summary]) -> list[list[Summary]]:
    groups: dict[tuple[object, ...], list[Summary]] = {}
    for each in found:
        key = (each.case["rate"], each.case["clusters"], each.case["placement"])
        groups.setdefault(key, []).append(each)
    return list(groups.values())


def _rate_of(group: Sequence[Summary], scheduler: str, what: str = "rate") -> float | None:
    rates = [each.median(what) for each in group if each.case["scheduler"] == scheduler]
    return max((rate for rate in rates if rate is not None), default=None)


def _range(each: Summary) -> str:
    """Return the range of the rounds' rates, if there are several rounds."""
    rates = each.values(lambda result: result["rate"])
    return f" ({number(min(rates))} to {number(max(rates))})" if len(rates) > 1 else ""


def _writes(each: Summary) -> list[str]:
    binding = each.of(
        lambda result: (
            result["writes"]["resourcebindings"] + result["writes"]["resourcebindings/status"]
            if result["writes"]
            else None
        )
    )
    return [number(binding), number(each.median("writes", "events"))]


def _cpu(each: Summary) -> list[str]:
    webhook = each.median("servers_cpu", "webhook")
    return [number(each.median("scheduler_cpu")), number(each.servers_cpu), number(webhook)]


def backlogs(found: Sequence[Summary]) -> Table:
    """Return the table of backlogs."""
    rows = []
    for group in _groups([each for each in found if each.case["rate"] is None]):
        bare, lifted = _rate_of(group, BARE), _rate_of(group, LIFTED)
        bare_status_rate = _rate_of(group, BARE, "status_rate")
        for each in group:
            rate, done = each.median("rate"), each.case["scheduler"] != DEFAULT
            status_rate = each.median("status_rate")
            rows.append([
                f"{each.case['clusters']:,}", each.case["placement"], each.label,
                number(rate) + _range(each), _share(rate, bare, percent=True), _share(rate, lifted),
                number(status_rate), _share(status_rate, bare_status_rate, percent=True),
                number(each.median("total_seconds")) if done else "-",
                *_cpu(each), *_writes(each), number(each.median("peak_mib")),
            ])  # fmt: skip
    heading = ["clusters", "placement", "writer", "bindings/s", "of bare", "x lifted", "with status/s", "of bare", "total s",
               "CPU ms", "API server + etcd CPU ms", "webhook CPU ms", "writes", "events", "peak MiB"]  # fmt: skip
    return Table("Backlog", heading, rows)


def streams(found: Sequence[Summary]) -> Table:
    """Return the table of streams."""
    rows = []
    for each in found:
        case = each.case
        if case["rate"] is None:
            continue
        placed = each.of(lambda result, case=case: result["placed"] / case["bindings"])  # type: ignore[misc]
        rows.append([
            f"{case['clusters']:,}", f"{case['rate']:g}", each.label, f"{placed or 0:.0%}",
            *(number(each.median("latency", "answered", name)) for name in ("p50", "p90", "p99", "max")),
            *_cpu(each), *_writes(each), number(each.median("peak_mib")),
        ])  # fmt: skip
    heading = ["clusters", "created/s", "writer", "placed", "p50 ms", "p90 ms", "p99 ms", "max ms",
               "CPU ms", "API server + etcd CPU ms", "webhook CPU ms", "writes", "events", "peak MiB"]  # fmt: skip
    return Table("Stream", heading, rows)


def ratios(found: Sequence[Summary]) -> Table:
    """Return ours compared with the others, if they were measured together."""
    rows = []
    for group in _groups(found):
        by_name = {each.case["scheduler"]: each for each in group}
        if OURS not in by_name or LIFTED not in by_name:
            continue
        ours, lifted, case = by_name[OURS], by_name[LIFTED], group[0].case
        backlog = case["rate"] is None
        what = "backlog" if backlog else f"{case['rate']:g}/s"
        rate, bare = ours.median("rate"), _rate_of(group, BARE)
        status_rate, bare_status_rate = ours.median("status_rate"), _rate_of(group, BARE, "status_rate")
        p99 = _share(ours.median("latency", "answered", "p99"), lifted.median("latency", "answered", "p99"))
        rows.append([
            f"{case['clusters']:,}", case["placement"], what,
            _share(rate, bare, percent=True) if backlog else "-",
            _share(rate, lifted.median("rate")) if backlog else "-",
            _share(status_rate, bare_status_rate, percent=True) if backlog else "-",
            "-" if backlog else p99,
            _share(ours.median("scheduler_cpu"), lifted.median("scheduler_cpu")),
            _share(ours.servers_cpu, lifted.servers_cpu),
            _share(ours.median("peak_mib"), lifted.median("peak_mib")),
        ])  # fmt: skip
    heading = ["clusters", "placement", "scenario", "rate, of bare", "rate, x lifted", "rate with status, of bare", "p99, x lifted",
               "CPU, x lifted", "API server + etcd CPU, x lifted", "peak memory, x lifted"]  # fmt: skip
    return Table("Ours compared with karmada-scheduler with limits lifted and the bare client", heading, rows)


def facts(document: dict[str, Any]) -> str:
    """Return machine and date of the measurement."""
    machine, runs = document["machine"], document["runs"]
    loads = [entry["result"]["load"] for entry in runs]
    idle = [entry["result"]["idle_cores"] for entry in runs]
    late = max((entry["result"]["late_ms"] or 0.0 for entry in runs), default=0.0)
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    rounds = max((entry["round"] for entry in runs), default=0)
    return (
        f"{document['date']}, commit {machine['commit']}, {document.get('minutes', 0)} minutes, "
        f"{rounds} round{'s' if rounds > 1 else ''}; {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_gib']} GiB, Linux {machine['kernel']}, Python {machine['python']}; {versions}. "
        f"Load average at the start {machine['load_before']:.1f}, before the runs "
        f"{min(loads, default=0):.1f} to {max(loads, default=0):.1f}; the idle control plane used "
        f"{statistics.median(idle or [0]):.2f} cores (at most {max(idle, default=0):.2f}); the latest creation of a "
        f"stream was sent {late:.0f} ms after its time."
    )


def tables(document: dict[str, Any]) -> list[Table]:
    """Return the tables that have rows."""
    found = summaries(document)
    return [each for each in (backlogs(found), streams(found), ratios(found)) if each.rows]


def text(document: dict[str, Any]) -> str:
    """Return everything for a terminal."""
    return "\n\n".join([facts(document), *(each.aligned() for each in tables(document))])


def markdown(document: dict[str, Any]) -> str:
    """Return everything as Markdown."""
    return "\n\n".join([facts(document), *(each.markdown() for each in tables(document))])
