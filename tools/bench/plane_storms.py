"""A cluster is lost on a real control plane. ``make bench-storm-plane``

    python -m tools.bench.plane_storms --bindings 5000 --json FILE

lost        A cluster that every binding uses gets a NoExecute taint. Karmada's taint manager, the real one, evicts the bindings.
deleted     Such a cluster is deleted. Karmada's cluster controller, the real one, keeps it until its finalizer is removed.

Of Karmada's controllers only the cluster controller runs, with the taint manager, without its limits. Meanwhile new bindings are
created, five per second. Each run has a namespace, a scheduler, and a cluster to lose of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from karmada_advisor.cli.output import table
from tools.bench import plane_meters as meters
from tools.bench import scenarios
from tools.bench.bare_client import Job
from tools.bench.plane import add_clusters, machine
from tools.bench.plane_http import BINDINGS, ROOT
from tools.bench.plane_observer import Observer
from tools.bench.plane_run import LEASE, NO_LIMIT
from tools.bench.scenarios import FRESH_FIRST, LIFTED, OURS
from tools.controlplane import ControlPlane, Process, karmada
from tools.controlplane.ours import start_scheduler

PLACEMENT: Final = "dynamic"
_PER_SECOND: Final = 5.0
_DISABLED: Final = (
    "clusterStatus", "binding", "bindingStatus", "execution", "workStatus", "namespace", "serviceExport", "endpointSlice",
    "serviceImport", "unifiedAuth", "federatedResourceQuotaSync", "federatedResourceQuotaStatus",
    "federatedResourceQuotaEnforcement", "gracefulEviction", "applicationFailover", "federatedHorizontalPodAutoscaler",
    "cronFederatedHorizontalPodAutoscaler", "hpaScaleTargetMarker", "deploymentReplicasSyncer", "multiclusterservice",
    "endpointsliceCollect", "endpointsliceDispatch", "remedy", "workloadRebalancer", "agentcsrapproving", "clustertaintpolicy",
)  # fmt: skip
_CONTROLLERS: Final = (
    f"--controllers={','.join(f'-{each}' for each in _DISABLED)}",
    "--resource-eviction-rate=100000",
    "--rate-limiter-qps=100000",
    "--rate-limiter-bucket-size=100000",
    "--rate-limiter-base-delay=1ms",
    "--kube-api-qps=10000",
    "--kube-api-burst=10000",
)
_TAINT: Final = {"key": "example.com/lost", "effect": "NoExecute"}


@dataclass(frozen=True, slots=True)
class Storm:
    """What was measured.

    Attributes:
        placed: How many bindings have all their replicas elsewhere.
        seconds: From the request that begins it until the last of them, or until the end of the time.
        fresh: New bindings created meanwhile.
        fresh_ms: From the response to the creation until the placement: p50, p99, max. One that was not placed counts with its
            age.
        cpu_ms: Of the scheduler, per binding.
        servers_cpu: Of the control plane's processes, per binding.
        peak: MiB, of the scheduler.
    """

    scenario: str
    scheduler: str
    bindings: int
    clusters: int
    round: int
    placed: int
    seconds: float
    fresh: int
    fresh_ms: tuple[float, float, float]
    cpu_ms: float
    servers_cpu: dict[str, float]
    peak: float


class _Creator:
    """Creates new bindings at a steady rate in a thread of its own."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane, self._namespace = plane, namespace
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="creator", daemon=True)
        self.created: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        begin, number = time.monotonic(), 0
        while not self._ended.wait(max(0.0, begin + number / _PER_SECOND - time.monotonic())):
            name = f"fresh-{number}"
            self._plane.client.create(
                scenarios.binding(self._namespace, name, number, PLACEMENT, self._namespace)
            )
            self.created[name] = time.monotonic()
            number += 1


class Runner:
    """Measures storms one after the other on one control plane."""

    def __init__(self, plane: ControlPlane, quiet: meters.Quiet, clusters: int) -> None:
        self._plane, self._quiet, self._clusters = plane, quiet, clusters
        self._runs = 0

    def measure(self, scenario: str, scheduler: str, bindings: int, number: int, window: float) -> Storm:
        """Measure one storm, and delete its bindings."""
        lost, name = self._runs, f"storm-{self._runs}"
        self._runs += 1
        self._plane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        job = Job(str(self._plane.kubeconfig), name, name, PLACEMENT, self._clusters, bindings, lost=lost)
        subprocess.run(job.argv(), cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        process = self._start(scheduler, name)
        try:
            return self._storm(scenario, scheduler, bindings, number, window, lost, process)
        finally:
            process.stop()
            self._plane.forget(process)
            for path in (BINDINGS, "/api/v1/namespaces/{namespace}/events"):
                self._plane.client.request("DELETE", path.format(namespace=name), timeout=600)

    def _storm(
        self,
        scenario: str,
        scheduler: str,
        bindings: int,
        number: int,
        window: float,
        lost: int,
        process: Process,
    ) -> Storm:
        plane, name, cluster = self._plane, f"storm-{lost}", f"{karmada.CLUSTERS}/m{lost}"
        self._quiet.wait_idle()
        observer = Observer(plane.kubeconfig, name, bindings, lost=f"m{lost}")
        with _Creator(plane, name) as creator:
            time.sleep(3.0)  # so that new bindings arrive before the storm as well
            cpu, servers = meters.cpu_seconds(process.pid), meters.servers_cpu(plane)
            begin = time.monotonic()
            if scenario == "lost":
                plane.client.patch(cluster, {"spec": {"taints": [_TAINT]}})
            else:
                plane.client.request("DELETE", cluster)
            while not (over := observer.reported("all", 0.2)) and time.monotonic() < begin + window:
                plane.check()
            end = time.monotonic()
            spent = meters.cpu_seconds(process.pid) - cpu
            servers_spent = {key: used - servers[key] for key, used in meters.servers_cpu(plane).items()}
        time.sleep(5.0)  # the last new bindings are placed soon, if the storm is over
        found, given_up = observer.finish(), time.monotonic()
        work = [at for key, at in found["placed"].items() if key.startswith("work-")]
        if over:
            end = max(work)
        new = {key: at for key, at in creator.created.items() if begin <= at <= end}
        waits = [1e3 * (found["placed"].get(key, given_up) - at) for key, at in new.items()]
        return Storm(
            scenario,
            scheduler,
            bindings,
            self._clusters,
            number,
            len(work),
            end - begin,
            len(new),
            (meters.percentile(waits, 0.5), meters.percentile(waits, 0.99), max(waits)),
            1e3 * spent / max(1, len(work)),
            {key: 1e3 * used / max(1, len(work)) for key, used in servers_spent.items()},
            meters.peak_mib(process.pid),
        )

    def _start(self, scheduler: str, name: str) -> Process:
        """Start a scheduler, and wait until it leads."""
        if scheduler == LIFTED:
            self._plane.client.delete(LEASE)  # the one before did not give it back
            return self._plane.start_karmada_scheduler(name, *NO_LIMIT, leader_elect=True)
        flags = []
        if scheduler == FRESH_FIRST:
            config = self._plane.folder / f"{name}.yaml"
            config.write_text(scenarios.fresh_first(name))
            flags = [f"--config={config}"]
        return start_scheduler(self._plane, *flags, name=name).process


@contextmanager
def running(clusters: int) -> Iterator[Runner]:
    """Start a control plane whose only controller is the cluster controller with the taint manager."""
    flags = {"controller-manager": _CONTROLLERS}
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder) / "plane", extra_flags=flags) as plane,
    ):
        process = next(each for each in plane.processes if each.name == "kube-controller-manager")
        process.stop()
        plane.forget(process)
        etcd = next(each for each in plane.processes if each.name == "etcd")
        flag = "--listen-client-urls="
        url = next(part.removeprefix(flag) for part in etcd.argv if part.startswith(flag))
        with closing(meters.Quiet(plane, url)) as quiet:
            add_clusters(plane, 0, clusters)
            yield Runner(plane, quiet, clusters)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        prog="make bench-storm-plane", description=(__doc__ or "").splitlines()[0]
    )
    option = parser.add_argument
    option("--scenarios", nargs="+", default=("lost", "deleted"), choices=("lost", "deleted"))
    every = (LIFTED, OURS, FRESH_FIRST)
    option("--schedulers", nargs="+", default=every, choices=every)
    option("--bindings", type=int, default=5000, metavar="N", help="all use the cluster that is lost (5000)")
    option("--clusters", type=int, default=100, metavar="N", help="(100)")
    option("--rounds", type=int, default=1, metavar="N")
    option("--window", type=float, default=600.0, metavar="S", help="end of a storm that is not over (600)")
    option("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(words)
    runs: list[Storm] = []
    with running(chosen.clusters) as runner:
        for number in range(1, chosen.rounds + 1):
            for scenario in chosen.scenarios:
                for scheduler in chosen.schedulers[:: 1 if number % 2 else -1]:
                    runs.append(runner.measure(scenario, scheduler, chosen.bindings, number, chosen.window))
                    print(runs[-1], file=sys.stderr, flush=True)
                    if chosen.json is not None:
                        document = {"machine": machine(), "runs": [asdict(each) for each in runs]}
                        chosen.json.write_text(json.dumps(document, indent=1) + "\n")
    print(table(*cells(runs)))
    return 0


def cells(runs: Sequence[Storm]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heading and the rows of the table."""
    heading = ("SCENARIO", "SCHEDULER", "BINDINGS", "DONE", "SECONDS", "NEW P50 MS", "P99", "MAX", "CPU MS", "API SERVER + ETCD CPU MS",
               "PEAK MIB")  # fmt: skip
    rows = [
        (each.scenario, each.scheduler, f"{each.bindings:,}", f"{each.placed / each.bindings:.1%}", f"{each.seconds:.1f}",
         *(f"{value:,.0f}" for value in each.fresh_ms), f"{each.cpu_ms:.2f}",
         f"{each.servers_cpu['kube-apiserver'] + each.servers_cpu['etcd']:.1f}", f"{each.peak:.0f}")
        for each in runs
    ]  # fmt: skip
    return heading, rows


if __name__ == "__main__":
    sys.exit(main())
