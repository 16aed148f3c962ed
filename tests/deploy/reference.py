"""The tables of docs/operations.md and docs/web.md that are made from the code: every flag, every metric."""

from __future__ import annotations

import re
from typing import Final

from prometheus_client import CollectorRegistry

from karmada_advisor.web.metrics import WebMetrics
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.config import flags

from .chart import ROOT

PAGES: Final = (ROOT / "docs" / "operations.md", ROOT / "docs" / "web.md")


def updated(text: str) -> str:
    """Return the page with its tables as they should be."""
    for name, lines in (
        ("flags", _flags()),
        ("metrics", _metrics()),
        ("metrics of the page", _web_metrics()),
    ):
        table = "\n".join(lines)
        text = re.sub(
            rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)",
            lambda match, table=table: f"{match[1]}{table}\n{match[2]}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


def _flags() -> list[str]:
    lines, unused = ["| flag | default | what it does |", "|---|---|---|"], []
    for action in flags.make_parser()._actions:
        name = f"`{action.option_strings[-1]}`"
        if not action.help or action.dest == "help":
            continue
        if "no effect" in action.help:
            unused.append(name)
            continue
        default = action.default
        text, has_default, shown = action.help.removesuffix(")").partition(" (default ")
        if not has_default:
            text = action.help
            shown = (
                str(default).lower() if isinstance(default, bool) else str("" if default is None else default)
            )
        lines.append(f"| {name} | {shown and f'`{shown}`'} | {text.replace('|', '/')} |")
    return [
        *lines,
        "",
        "Accepted, because karmada-scheduler has them, and without effect: " + ", ".join(unused) + ".",
    ]


def _metrics() -> list[str]:
    metrics = Metrics()
    metrics.workqueues.of("scheduler-queue")
    lines, common = _table(metrics.registry)
    return [*lines, "", f"As in every program with client-go: {', '.join(common)}."]


def _web_metrics() -> list[str]:
    metrics = WebMetrics()
    metrics.expose_certificate(lambda: 0.0)
    return _table(metrics.registry)[0]


def _table(registry: CollectorRegistry) -> tuple[list[str], list[str]]:
    """Return the lines of a table of metrics, and the names of those that every program has."""
    lines, common = ["| metric | what it is |", "|---|---|"], []
    for family in sorted(registry.collect(), key=lambda family: family.name):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if name.startswith(("process_", "workqueue_")):
            common.append(f"`{name}`")
            continue
        collector = registry._names_to_collectors.get(family.name)
        labels = ",".join(getattr(collector, "_labelnames", ()))
        shown = f"{name}{{{labels}}}" if labels else name
        lines.append(f"| `{shown}` ({family.type}) | {family.documentation} |")
    return lines, common
