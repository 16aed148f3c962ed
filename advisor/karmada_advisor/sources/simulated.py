"""The scheduler of why-not: changed objects, scheduled as ``simulate`` schedules those of files."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from karmada_advisor.plan.decide import is_coupled
from karmada_advisor.sources.files import as_binding, as_cluster
from karmada_advisor.sources.rules import Frameworks
from karmada_advisor.whynot.objects import Scheduled
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.dryrun.forecast import Simulation, as_new
from karmada_scheduler.dryrun.result import Outcome as ResultOutcome
from karmada_scheduler.dryrun.result import SimulationResult
from karmada_scheduler.dryrun.state import SimulatedBindings, SimulatedHandle
from karmada_scheduler.dryrun.workloads import ReadWorkloads, StoredWorkloads, Workloads
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.snapshot import Snapshot


class SimulatedScheduler:
    """Schedules changed objects; implements ``whynot.objects.Scheduler``.

    Attributes:
        estimator: The estimator of the core.
        core: The core; all decisions share its caches.
        workloads: The workloads of the files.
        peers: The bindings of workload groups; None without the gate WorkloadAffinity.
    """

    def __init__(
        self,
        gates: FeatureGates,
        arguments: argparse.Namespace,
        workloads: Sequence[Workload] | None,
        *,
        read_workloads: ReadWorkloads | None = None,
    ) -> None:
        """Use the gates and flags of the command line, and workloads as ``Workloads`` takes them."""
        self._gates = gates
        self._as_new: bool = getattr(arguments, "as_new", False)
        self.empty_workload_propagation: bool = arguments.enable_empty_workload_propagation == "true"
        self._snapshot = Snapshot()
        self._known = SimulatedBindings(())
        self.workloads = Workloads(workloads, read=read_workloads)
        self._stored = StoredWorkloads(self.workloads, self._known.get)
        self.estimator = GeneralEstimator(gates)
        self.peers = self._known if gates.enabled("WorkloadAffinity") else None
        self.core = SchedulingAlgorithm(
            gates,
            [self.estimator],
            empty_workload_propagation=self.empty_workload_propagation,
            peers=self.peers,
            stored=self._known.get,
            stored_workload=self._stored.of,
        )

    def handle_for(self, profile: str) -> SimulatedHandle:
        """Return the handle of the plugins of a profile."""
        return SimulatedHandle(
            profile, lambda: self._snapshot, self._known, time.time, self._stored.for_profile
        )

    def use(self, frameworks: Frameworks) -> None:
        """Use these plugins from now on."""
        self._frameworks = frameworks
        self._stored.framework_of, self._stored.declaring = frameworks.of, frameworks.declaring

    def parse_cluster(self, manifest: Manifest) -> Cluster:
        """Return a Cluster; ManifestError if it cannot be read."""
        return as_cluster(manifest)

    def parse_binding(self, manifest: Manifest) -> Binding:
        """Return a binding; ManifestError if it cannot be read."""
        return as_binding(manifest)

    def show(self, snapshot: Snapshot, bindings: Sequence[Binding]) -> None:
        """Let plugins see these objects, until the next call of ``schedule``."""
        self._snapshot = snapshot
        self._known.replace([as_new(each) for each in bindings] if self._as_new else bindings)

    def schedule(self, snapshot: Snapshot, bindings: Sequence[Binding], key: BindingKey) -> Scheduled:
        """Return what a binding has after the bindings were scheduled in their order.

        The others are scheduled only where their decisions can change this one.
        """
        self._snapshot = snapshot
        every = [as_new(each) for each in bindings] if self._as_new and self.is_coupled else bindings
        if self.is_coupled:
            self._known.replace(every)
            chosen = every
        else:
            mine = next(each for each in bindings if each.key == key)
            chosen = [as_new(mine) if self._as_new else mine]
        simulation = Simulation(
            snapshot,
            framework_of=self._frameworks.of,
            gates=self._gates,
            known=self._known,
            empty_workload_propagation=self.empty_workload_propagation,
            workload_of=self.workloads.of,
            stored_workload=self._stored.of,
            algorithm=self.core,
        )
        return _scheduled(next(each for each in simulation.run(chosen) if each.binding.key == key))

    @property
    def is_coupled(self) -> bool:
        """Whether the decision about one binding can change that about another."""
        frameworks = self._frameworks
        return is_coupled(
            self._gates, has_own_plugins=frameworks.has_own_plugins, has_guards=frameworks.has_guards
        )


def _scheduled(result: SimulationResult) -> Scheduled:
    code, problem = "", ""
    if result.outcome is ResultOutcome.OTHER_SCHEDULER:
        code, problem = "OtherScheduler", result.binding.spec.responsible_scheduler
    elif result.held is not None:
        code = "Gated" if result.held.point is Point.PRE_ENQUEUE else "Waiting"
        problem = str(result.held)
    elif result.decision is not None:
        condition = condition_for(result.decision.error)
        code = condition.reason
        problem = "" if result.decision.error is None else condition.message
    return Scheduled(result.type, result.targets, result.decision, problem, code)
