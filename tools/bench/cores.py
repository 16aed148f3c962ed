"""The two cores at work on the same fleet: ours in this process, the Go one in the oracle's."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.profiles import DEFAULT_PLUGIN_SECONDS
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import SUCCESS, FilterContext, Result, ScoreContext
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.process import memory
from karmada_scheduler.testing import framework
from tools.bench.fleet import Manifest
from tools.oracle.program import Oracle

Targets = list[tuple[str, int]]


@dataclass(frozen=True)
class Batch:
    """Bindings, and for each the clusters that report before its decision."""

    bindings: Sequence[Manifest]
    changes: Sequence[Sequence[Manifest]] = ()


@dataclass(frozen=True)
class Bill:
    """CPU and wall seconds of a batch, and the targets per decision (None: an error)."""

    cpu: float
    wall: float
    results: Sequence[Targets | None]

    @property
    def decisions(self) -> int:
        """Number of decisions."""
        return len(self.results)

    @property
    def cpu_each(self) -> float:
        """CPU seconds per decision."""
        return self.cpu / len(self.results)


class Go:
    """``oracle cost``: genericScheduler.Schedule over the scheduler's own cache; a context manager."""

    def __init__(self, program: Path) -> None:
        self._oracle = Oracle(program, "cost", patience_seconds=600.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._oracle.close()

    def load(self, clusters: Sequence[Manifest], *, own_rule: bool = False) -> None:
        """Start with a new fleet, and with the rule of ``OwnRule`` compiled in (own_rule.go)."""
        plugins = ["*", OwnRule.name] if own_rule else ["*"]
        self._request({"plugins": plugins, "clusters": clusters})

    def run(self, batch: Batch, *, seconds: float) -> Bill:
        """Take decisions of a batch until the seconds are over, one at least."""
        answer = self._request({"bindings": batch.bindings, "changes": batch.changes, "seconds": seconds})
        results = [
            None if error else sorted((name, replicas) for name, replicas in targets)
            for targets, error in zip(answer["results"], answer["errors"], strict=True)
        ]
        return Bill(answer["cpuNanos"] / 1e9, answer["wallNanos"] / 1e9, results)

    def _request(self, work: dict[str, Any]) -> dict[str, Any]:
        self._oracle.send(work)
        return self._oracle.receive()


class OwnRule:
    """A Filter and Score plugin without keys: small workloads only in one tier, which the label of clusters says."""

    name = "OwnRule"

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse the tier 3 to workloads of more than three replicas."""
        if context.cycle.binding.spec.replicas > 3 and context.cluster.labels.get("tier") == "3":
            return Result.unschedulable("cluster(s) were for small workloads")
        return SUCCESS

    def score(self, context: ScoreContext, /) -> int:
        """Prefer production."""
        return 10 if context.cluster.labels.get("environment") == "production" else 0


class Ours:
    """The core as ``Scheduler`` runs it: its cache, plugins with metrics and timeouts, the general estimator."""

    def __init__(self, clusters: Iterable[Manifest], profile: Framework | None = None) -> None:
        """Fill the cache with a fleet; without a profile, decide with the in-tree plugins."""
        self._gates = FeatureGates({})
        self._plugins = (profile or framework(gates=self._gates)).plugins
        self._observer = Metrics().plugins
        self._alarm = SigalrmTimeout(DEFAULT_PLUGIN_SECONDS)
        self._clusters = ClusterCache()
        for manifest in clusters:
            self._clusters.put(Cluster.from_manifest(manifest))
        self.forget()

    def close(self) -> None:
        """Release the timeout's signal handler."""
        self._alarm.close()

    def forget(self) -> None:
        """Continue with empty caches."""
        self._framework = Framework(
            self._plugins, caller=PluginCaller(observer=self._observer, timeout=self._alarm)
        )
        self._algorithm = SchedulingAlgorithm(self._gates, [GeneralEstimator(self._gates)])

    def run(self, batch: Batch) -> Bill:
        """Take all decisions of a batch; reading manifests is not counted."""
        bindings = [Binding.from_manifest(each) for each in batch.bindings]
        changes = [[Cluster.from_manifest(each) for each in changed] for changed in batch.changes]
        changes += [[]] * (len(bindings) - len(changes))
        decisions = []
        with _settled_memory():
            wall, cpu = time.perf_counter(), time.process_time()
            for binding, changed in zip(bindings, changes, strict=True):
                for cluster in changed:
                    self._clusters.put(cluster)
                decisions.append(_outcome(self._decide(binding)))
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return Bill(cpu, wall, [_targets(*each) for each in decisions])

    def place(self, manifest: Manifest) -> Targets:
        """Return the targets of one binding."""
        return _targets(*_outcome(self._decide(Binding.from_manifest(manifest)))) or []

    def _decide(self, binding: Binding) -> Decision:
        return run_sync(
            self._algorithm.decide(binding, self._clusters.snapshot(), self._framework, until_stable=False)
        )


def _outcome(decision: Decision) -> tuple[Any, Any]:
    """Return the result of the only pass. karmada-scheduler's second pass is a decision after its write (``core.schedule``)."""
    first = decision.attempts[0]
    return first.targets, first.error


def _targets(targets: Sequence[tuple[str, int]] | None, error: Exception | None) -> Targets | None:
    return None if error is not None else sorted((name, replicas) for name, replicas in targets or ())


@contextmanager
def _settled_memory() -> Iterator[None]:
    """Tune the garbage collector as the scheduler does once its caches are filled."""
    before = gc.get_threshold()
    memory.freeze_objects()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
