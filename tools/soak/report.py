"""The result of a run as a table and as JSON."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tools.soak.judge import RSS_LIMIT, Judgement, window_of
from tools.soak.run import Faults, Plan
from tools.soak.samples import Sample

COLUMNS: Final = {
    "RSS MiB": "rss_kib",
    "threads": "threads",
    "fds": "descriptors",
    "series": "series",
    "tasks": "tasks",
    "objects": "objects",
    "blocks": "blocks",
}
MEBI: Final = 1 << 20
_GARBAGE_TYPES: Final = 12


def header() -> str:
    """Return the first line of the table."""
    return f"{'events':>9} {'seconds':>8} {'pid':>3} " + " ".join(f"{name:>8}" for name in COLUMNS)


def row(sample: Sample) -> str:
    """Return a line of the table."""
    values = [sample.figures.get(name, 0) / (1024 if name == "rss_kib" else 1) for name in COLUMNS.values()]
    return f"{sample.events:>9,} {sample.seconds:>8.0f} {sample.process:>3} " + " ".join(
        f"{value:>8.1f}" if name == "RSS MiB" else f"{value:>8,.0f}"
        for name, value in zip(COLUMNS, values, strict=True)
    )


def summary(judgement: Judgement, faults: Faults, *, unsettled: int) -> str:
    """Return the judgement in words."""
    rss = judgement.rss
    error = rss.error * 1024
    lines = [
        f"window: events {judgement.window[0]:,} to {judgement.window[1]:,}, {judgement.samples} samples",
        (
            f"RSS: {rss.first / 1024:.1f} to {rss.last / 1024:.1f} MiB, slope {judgement.rss_slope:.0f} bytes per 1,000 events "
            f"(limit {RSS_LIMIT:.0f}), by least squares {rss.slope * 1024:.0f} +- {error:.0f}, noise {rss.noise:.0f} KiB"
        ),
        *_used(judgement),
        f"figures: {len(judgement.trends) + 1} judged, {len(judgement.leaks)} grow, {len(judgement.filling)} grow within a bound",
        *(f"  within a bound: {_trend(judgement, name)}" for name in judgement.filling),
        f"faults: {', '.join(f'{name} {count}' for name, count in dataclasses.asdict(faults).items())}",
        f"bindings without a current decision at rest: {unsettled}",
        *(f"PROBLEM: {each}" for each in judgement.problems),
        "ok" if not judgement.problems and not unsettled else "not ok",
    ]
    return "\n".join(lines)


def _used(judgement: Judgement) -> list[str]:
    used = judgement.used
    if used is None:
        return []
    slope = f"slope {used.slope:.0f} +- {used.error:.0f} per 1,000 events, noise {used.noise / 1024:.0f} KiB"
    return [f"bytes in use: {used.first / MEBI:.1f} to {used.last / MEBI:.1f} MiB, {slope}"]


def _trend(judgement: Judgement, name: str) -> str:
    trend = judgement.trends[name]
    return f"{name}: {trend.first:g} to {trend.last:g} of {trend.bound}"


def garbage_line(garbage: Mapping[str, int]) -> str:
    """Return what a full collection at the end freed."""
    most = sorted(garbage.items(), key=lambda each: -each[1])[:_GARBAGE_TYPES]
    named = ", ".join(f"{count:,} {name.rpartition('.')[2]}" for name, count in most)
    return f"garbage in reference cycles at the end: {sum(garbage.values()):,} objects ({named})"


def document(
    plan: Plan, samples: Sequence[Sample], judgement: Judgement, faults: Faults, *, unsettled: int
) -> dict[str, Any]:
    """Return everything for ``soak.json``; a figure that never changed is one number."""
    names = sorted({name for each in samples for name in each.figures})
    found: dict[str, Any] = {}
    for name in names:
        values = [_number(each.figures.get(name)) for each in samples]
        found[name] = values if len(set(values)) > 1 else values[0]
    for name in sorted({name for each in samples for name in each.bounded}):
        counts = [each.bounded.get(name, (None,))[0] for each in samples]
        found[f"lru {name}"] = counts if len(set(counts)) > 1 else counts[0]
    last, window = samples[-1], window_of(samples)
    return {
        "plan": dataclasses.asdict(plan),
        "machine": {
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        "judgement": judged(judgement, unsettled=unsettled),
        "faults": dataclasses.asdict(faults),
        "totals": last.other,
        "types": {"first": window[0].types, "last": last.types},
        "bounds": {f"lru {name}": bound for name, (_, bound) in last.bounded.items()},
        "samples": {
            "events": [each.events for each in samples],
            "seconds": [each.seconds for each in samples],
            "process": [each.process for each in samples],
            "series": found,
        },
    }


def judged(judgement: Judgement, *, unsettled: int) -> dict[str, Any]:
    """Return a judgement as JSON."""
    used = judgement.used
    return {
        "window": judgement.window,
        "rss_bytes_per_1000_events": round(judgement.rss_slope, 1),
        "rss_least_squares": round(judgement.rss.slope * 1024, 1),
        "rss_standard_error": round(judgement.rss.error * 1024, 1),
        "rss_noise_kib": round(judgement.rss.noise, 1),
        "rss_limit": RSS_LIMIT,
        "used_bytes_per_1000_events": None if used is None else round(used.slope, 1),
        "used_standard_error": None if used is None else round(used.error, 1),
        "figures": len(judgement.trends) + 1,
        "problems": judgement.problems,
        "within_a_bound": {
            name: [judgement.trends[name].first, judgement.trends[name].last, judgement.trends[name].bound]
            for name in judgement.filling
        },
        "unsettled": unsettled,
    }


def _number(value: float | None) -> float | None:
    return int(value) if value is not None and value == int(value) else value
