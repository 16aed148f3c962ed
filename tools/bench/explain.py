"""Latency of explanations: ``make bench-explain``

CPU time and wall time of one explanation after the objects were read, cold (no cached decision) and for a placed binding,
at several numbers of clusters, and of its text.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Explanation
from karmada_advisor.views.layout import Style
from karmada_advisor.views.text import explanation_text
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import Estimators
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import binding, cluster, framework

_CORDON = "cluster.karmada.io/unschedulable:NoSchedule"
_REGIONS = 30


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print one row per number of clusters."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.explain", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--rounds", type=int, default=7, help="the median counts (default: %(default)s)")
    options = parser.parse_args(arguments)
    print(
        f"{'clusters':>8}  {'new: cpu':>9} {'wall':>8}  {'placed: cpu':>11} {'wall':>8}  {'text: cpu':>9}  (ms)"
    )
    for count in options.clusters:
        fleet = tuple(_cluster(index) for index in range(count))
        fresh = _binding()
        would_be = explain(_inputs(fresh, fleet)).would_be
        assert would_be is not None
        placement = {each.name: each.replicas for each in would_be.placement}
        placed = _binding(placement)
        gc.collect()
        gc.disable()
        new_cpu, new_wall = _measured(partial(_explain, fresh, fleet), options.rounds)
        placed_cpu, placed_wall = _measured(partial(_explain, placed, fleet), options.rounds)
        found = explain(_inputs(fresh, fleet))
        text_cpu, _ = _measured(partial(explanation_text, found, Style()), options.rounds)
        gc.enable()
        print(
            f"{count:>8}  {new_cpu:>9.0f} {new_wall:>8.0f}  {placed_cpu:>11.0f} {placed_wall:>8.0f}  {text_cpu:>9.1f}"
        )
    return 0


def _explain(asked: Binding, fleet: tuple[Cluster, ...]) -> Explanation:
    return explain(_inputs(asked, fleet))


def _measured(run: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the medians of CPU time and wall time, in milliseconds."""
    cpu, wall = [], []
    for _ in range(rounds):
        began, began_wall = time.process_time(), time.perf_counter()
        run()
        cpu.append(time.process_time() - began)
        wall.append(time.perf_counter() - began_wall)
    return 1000 * median(cpu), 1000 * median(wall)


def _cluster(index: int) -> Cluster:
    made = cluster(f"c{index:05}").region(f"r{index % _REGIONS:02}")
    made.capacity(cpu=10 + index % 97, memory="1000Gi")
    return (made.taint(_CORDON) if index % 10 == 0 else made).build()


def _binding(placement: dict[str, int] | None = None) -> Binding:
    made = binding("web").replicas(240, cpu="500m", memory="1Gi").dynamic_weight()
    made.spread("region", 2, 4).spread("cluster", 2, 9)
    if placement is not None:
        made.on(**placement).applied().last_scheduled("2026-11-22T10:00:00Z")
    return made.build()


def _inputs(asked: Binding, fleet: tuple[Cluster, ...]) -> ExplainInputs:
    gates = FeatureGates()
    local = (GeneralEstimator(gates),)
    algorithm = SchedulingAlgorithm(gates, local)
    return ExplainInputs(
        asked, Snapshot.of(fleet), framework(gates=gates), gates, algorithm, Estimators(local)
    )


if __name__ == "__main__":
    sys.exit(main())
