"""What a plugin costs a decision, by extension point: CPU time of profiles with one plugin each, measured in turns.

The peak memory is that of a process for each profile, which reads the most clusters and decides about these bindings.

    make bench-plugins                     # the table of docs/writing-plugins.md
    python -m tools.bench.plugin_costs --sizes 1000 5000 --rounds 9

Every plugin does next to nothing, so a row has what the framework costs. All decide about 200 bindings of one policy.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, Final

from karmada_advisor.views.text import table
from karmada_scheduler.framework import SUCCESS, EstimateContext, ReplicaEstimate
from karmada_scheduler.testing import framework
from tools.bench.cores import Batch, Ours
from tools.bench.fleet import Bindings, Fleet
from tools.bench.plane_meters import peak_mib

_HARMLESS: Final[Mapping[str, Callable[..., Any]]] = {
    "filter": lambda _self, _context: SUCCESS,
    "filter_clusters": lambda _self, context: [SUCCESS] * len(context.clusters),
    "filter_key": lambda _self, _cycle: (),
    "pre_filter": lambda _self, _context: SUCCESS,
    "pre_score": lambda _self, _context: SUCCESS,
    "score": lambda _self, _context: 0,
    "score_key": lambda _self, _cycle: (),
    "normalize_score": lambda _self, context: context.scores,
    "post_filter": lambda _self, _context: SUCCESS,
    "guard": lambda _self, _context: SUCCESS,
    "reserve": lambda _self, _context: SUCCESS,
    "unreserve": lambda _self, _context: None,
}


def _estimating(count: int) -> Callable[[object, EstimateContext], ReplicaEstimate]:
    """Return an ``estimate_replicas`` that names so many clusters."""

    def estimate(_self: object, context: EstimateContext) -> ReplicaEstimate:
        names = [each.name for each in context.cycle.snapshot][:count]
        return ReplicaEstimate(most=dict.fromkeys(names, 3))

    return estimate


def _with(*methods: str, **own: Any) -> list[Any]:
    return [type("Own", (), {"name": "Own", **{name: _HARMLESS[name] for name in methods}, **own})()]


PROFILES: Final[Mapping[str, Sequence[Any]]] = {
    "no own plugin": [],
    "Filter with filter_key": _with("filter", "filter_key"),
    "Filter": _with("filter"),
    "Filter with filter_clusters": _with("filter_clusters"),
    "PreFilter and Filter": _with("pre_filter", "filter"),
    "Score with score_key": _with("score", "score_key"),
    "Score": _with("score"),
    "Filter and Score": _with("filter", "score"),
    "PreScore and Score": _with("pre_score", "score"),
    "Score and NormalizeScore": _with("score", "normalize_score"),
    "EstimateReplicas, 10 clusters": _with(estimate_replicas=_estimating(10)),
    "EstimateReplicas, 100 clusters": _with(estimate_replicas=_estimating(100)),
    "EstimateReplicas, all clusters": _with(estimate_replicas=_estimating(1 << 30)),
    "PostFilter for capacity, Guard, Reserve": _with(
        "post_filter", "guard", "reserve", "unreserve", post_filter_for=frozenset({"filter", "capacity"})
    ),
}


def measured(size: int, *, rounds: int, bindings: int) -> dict[str, float]:
    """Return the milliseconds of CPU per decision of each profile, the median of the rounds."""
    fleet = Fleet(size)
    profiles = {
        label: Ours(list(fleet.clusters.values()), framework(*own)) for label, own in PROFILES.items()
    }
    drawn = Bindings(["dynamic weight"])
    found: dict[str, list[float]] = {label: [] for label in profiles}
    for number in range(rounds + 1):  # the first one fills the caches
        batch = Batch([drawn.draw() for _ in range(bindings)])
        for label, ours in profiles.items():
            bill = ours.run(batch)
            if number:
                found[label].append(1e3 * bill.cpu_each)
    for ours in reversed(profiles.values()):
        ours.close()
    return {label: statistics.median(each) for label, each in found.items()}


def peak(label: str, size: int, bindings: int) -> float:
    """Return the peak memory of this process in MiB, after it has read clusters and decided with a profile."""
    fleet, drawn = Fleet(0), Bindings(["dynamic weight"])
    ours = Ours((fleet.manifest(number) for number in range(size)), framework(*PROFILES[label]))
    ours.run(Batch([drawn.draw() for _ in range(bindings)]))
    return peak_mib(os.getpid())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="make bench-plugins", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 5000], help="clusters")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bindings", type=int, default=200, help="in a round")
    options = parser.parse_args(arguments)
    sizes = [measured(size, rounds=options.rounds, bindings=options.bindings) for size in options.sizes]
    most = max(options.sizes)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        peaks = pool.map(partial(peak, size=most, bindings=options.bindings), PROFILES)
        rows = [
            (label, *(f"{each[label]:.2f}" for each in sizes), f"{mib:.1f}")
            for label, mib in zip(PROFILES, peaks, strict=True)
        ]
    header = ("plugin", *(f"{size:,} clusters, ms" for size in options.sizes), f"{most:,} clusters, peak MiB")
    sys.stdout.write(table(header, rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
