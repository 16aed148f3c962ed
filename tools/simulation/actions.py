"""What people and controllers do to the objects of the API server, and what befalls servers and processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from tests.fake_apiserver.objects import DUPLICATED, DYNAMIC, cluster, deployment
from tools.apiserver_model import Backup
from tools.manifests import AGGREGATED, static
from tools.simulation.bindings import kind_and_key, new_binding
from tools.simulation.process import SchedulerProcess

if TYPE_CHECKING:
    from tools.simulation.run import Run

Object = dict[str, Any]

STATIC: Final[Object] = static({("m0",): 2, ("m1", "m2"): 1})
STRATEGIES: Final = {"duplicated": DUPLICATED, "dynamic": DYNAMIC, "static": STATIC, "aggregated": AGGREGATED}


def placement(strategy: str, region: str = "", groups: int = 0, terms: Sequence[str] = ()) -> Object:
    """Return a placement.

    Args:
        strategy: A key of ``STRATEGIES``.
        region: Only clusters with this value of the label ``region``; "" for all.
        groups: How many clusters to spread over at most; 0 for no constraint.
        terms: The regions of affinity terms, which have their names.
    """
    found: Object = {"replicaScheduling": STRATEGIES[strategy]}
    if region:
        found["clusterAffinity"] = {"labelSelector": {"matchLabels": {"region": region}}}
    if terms:
        found["clusterAffinities"] = [
            {"affinityName": each, "labelSelector": {"matchLabels": {"region": each}}} for each in terms
        ]
    if groups:
        found["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": groups}]
    return found


_FINALIZER: Final = "karmada.io/cluster-controller"
_UNJOIN_SECONDS: Final = 5.0


class Actions:
    """Takes the steps of a plan.

    Attributes:
        taken: How often each action had an effect.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._simulation = run.simulation
        self._model = run.model
        self._network = run.network
        self._backups: list[tuple[float, Backup]] = []
        self.taken: Counter[str] = Counter()

    def take(self, action: str, arguments: dict[str, Any]) -> None:
        """Take one step; one that is impossible by now, as a change of a deleted object, is left out."""
        method: Callable[..., bool | None] = getattr(self, f"do_{action}")
        if method(**arguments) is not False:
            self.taken[action] += 1

    def backup(self) -> None:
        """Keep the state for a later ``restore``."""
        self._backups.append((self._simulation.now, self._model.backup()))

    def _change(self, kind: str, name: str, change: Callable[[Object], None], *, namespace: str = "") -> bool:
        found = self._model.get(kind, namespace, name)
        if found is None:
            return False
        change(found)
        self._model.put(found)
        return True

    def _change_binding(self, name: str, change: Callable[[Object], None]) -> bool:
        """Change a binding; ``name`` is as in ``bindings.kind_and_key``."""
        kind, namespace, plain = kind_and_key(name)
        return self._change(kind, plain, change, namespace=namespace)

    def _delete(self, kind: str, namespace: str, name: str) -> bool:
        if self._model.get(kind, namespace, name) is None:
            return False
        self._model.delete(kind, namespace, name)
        return True

    def do_create_binding(
        self,
        name: str,
        replicas: int,
        strategy: str,
        region: str = "",
        groups: int = 0,
        terms: Sequence[str] = (),
        tolerations: Sequence[Object] = (),
        **more: Any,
    ) -> bool:
        """Create a binding, as the detector does for a new workload; see ``new_binding`` for ``more``."""
        if self._model.get(*kind_and_key(name)) is not None:
            return False
        wanted = placement(strategy, region, groups, terms)
        if tolerations:
            wanted["clusterTolerations"] = [*tolerations]
        self._model.put(new_binding(name, replicas, wanted, **more))
        return True

    def do_delete_binding(self, name: str) -> bool:
        """Delete a binding."""
        return self._delete(*kind_and_key(name))

    def do_recreate_binding(self, name: str, replicas: int, strategy: str) -> bool:
        """Delete a binding and create another one of the same name at once."""
        deleted = self.do_delete_binding(name)
        return deleted and self.do_create_binding(name, replicas, strategy)

    def do_put_workload(self, name: str, label: str) -> bool:
        """Create the Deployment of a binding, or change its labels."""
        _, namespace, plain = kind_and_key(name)
        found = self._model.get("Deployment", namespace, plain) or deployment(plain, namespace=namespace)
        found["metadata"]["labels"] = {"label": label}
        self._model.put(found)
        return True

    def do_delete_workload(self, name: str) -> bool:
        """Delete the Deployment of a binding; Karmada's detector deletes the binding later, or never."""
        _, namespace, plain = kind_and_key(name)
        return self._delete("Deployment", namespace, plain)

    def do_scale(self, name: str, replicas: int) -> bool:
        """Change the replicas of a binding."""
        return self._change_binding(name, lambda found: found["spec"].update(replicas=replicas))

    def do_change_placement(self, name: str, strategy: str, region: str = "", groups: int = 0) -> bool:
        """Change the placement of a binding, as the detector does when a policy changes."""
        new = placement(strategy, region, groups)
        return self._change_binding(name, lambda found: found["spec"].update(placement=new))

    def do_suspend(self, name: str, suspended: bool) -> bool:
        """Suspend the scheduling of a binding, or resume it."""
        return self._change_binding(
            name, lambda found: found["spec"].update(suspension={"scheduling": suspended})
        )

    def do_assign_scheduler(self, name: str, scheduler: str) -> bool:
        """Change the scheduler of a binding."""
        return self._change_binding(name, lambda found: found["spec"].update(schedulerName=scheduler))

    def do_report_status(self, name: str) -> bool:
        """Report the status of a binding's workload: only its resourceVersion changes for the scheduler."""

        def report(found: Object) -> None:
            items = [
                {"clusterName": each["name"], "applied": True, "health": "Healthy"}
                for each in found["spec"].get("clusters") or ()
            ]
            found.setdefault("status", {})["aggregatedStatus"] = items
            found["metadata"].setdefault("annotations", {})["reported"] = f"{self._simulation.now:.3f}"

        return self._change_binding(name, report)

    def do_report_late(self, name: str, reason: str) -> bool:
        """Report a failure of a binding, as a former leader does whose write arrives after its end."""

        def report(found: Object) -> None:
            conditions = found.setdefault("status", {}).get("conditions") or []
            others = [each for each in conditions if each["type"] != SCHEDULED_CONDITION]
            failure = {
                "type": SCHEDULED_CONDITION,
                "status": "False",
                "reason": reason,
                "message": "late",
            }
            found["status"]["conditions"] = [
                *others,
                {**failure, "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ]

        return self._change_binding(name, report)

    def do_evict(self, name: str) -> bool:
        """Evict a binding gracefully from its first cluster, as the taint manager does."""

        def evict(found: Object) -> None:
            clusters = found["spec"].get("clusters") or []
            if clusters:
                gone = clusters.pop(0)
                tasks = found["spec"].setdefault("gracefulEvictionTasks", [])
                tasks.append({
                    "fromCluster": gone["name"], "reason": "TaintUntolerated", "producer": "TaintManager",
                    "replicas": gone.get("replicas", 0), "creationTimestamp": "2026-01-01T00:00:00Z",
                })  # fmt: skip

        return self._change_binding(name, evict)

    def do_finish_eviction(self, name: str) -> bool:
        """End the graceful evictions of a binding."""
        return self._change_binding(name, lambda found: found["spec"].pop("gracefulEvictionTasks", None))

    def do_put_cluster(self, name: str, region: str, cpu: int) -> None:
        """Create or replace a cluster with so many available CPUs, once it is not being deleted."""
        found = self._model.get("Cluster", "", name)
        if found is not None and found["metadata"].get("deletionTimestamp"):
            self._simulation.after(1.0, lambda: self.do_put_cluster(name, region, cpu))
            return
        new = cluster(name, labels={"region": region}, cpu=str(cpu), region=region)
        new["metadata"]["finalizers"] = [_FINALIZER]
        self._model.put(new)

    def do_delete_cluster(self, name: str, seconds: float = _UNJOIN_SECONDS) -> bool:
        """Delete a cluster as Karmada does: it is gone when no binding has it any more, after some seconds at least."""
        if not self._delete("Cluster", "", name):
            return False
        self._simulation.after(seconds, lambda: self._finish_deletion(name))
        return True

    def _finish_deletion(self, name: str) -> None:
        found = self._model.get("Cluster", "", name)
        if found is None or not found["metadata"].get("deletionTimestamp"):
            return
        kinds = ("ResourceBinding", "ClusterResourceBinding")
        bindings = (orjson.loads(raw) for kind in kinds for raw in self._model.state(kind).values())
        if any(each["name"] == name for found in bindings for each in found["spec"].get("clusters") or ()):
            self._simulation.after(_UNJOIN_SECONDS, lambda: self._finish_deletion(name))
            return
        self._model.patch("Cluster", "", name, {"metadata": {"finalizers": None}})

    def do_unjoin_by_force(self, cluster: str, name: str = "") -> bool:
        """Delete a cluster at once, as when its finalizers are removed; ``name`` is of the binding of a moment."""
        del name
        if self._model.get("Cluster", "", cluster) is None:
            return False
        self._model.delete("Cluster", "", cluster, force=True)
        return True

    def do_taint_cluster(self, name: str, tainted: bool) -> bool:
        """Taint a cluster, or remove its taints."""
        taints = [{"key": "down", "value": "", "effect": "NoSchedule"}] if tainted else []
        return self._change("Cluster", name, lambda found: found["spec"].update(taints=taints))

    def do_report_cluster(self, name: str, cpu: int) -> bool:
        """Report other resources of a cluster."""

        def report(found: Object) -> None:
            found["status"]["resourceSummary"]["allocatable"]["cpu"] = str(cpu)

        return self._change("Cluster", name, report)

    def do_break_cluster(self, name: str, broken: bool, part: str = "status") -> bool:
        """Make a cluster, or a quantity in its status, unreadable for the scheduler, or repair it."""

        def change(found: Object) -> None:
            if part == "spec":
                found["spec"]["taints"] = "none" if broken else []
                return
            cpu = "1e20000" if broken else "10"
            found["status"]["resourceSummary"]["allocatable"]["cpu"] = cpu

        return self._change("Cluster", name, change)

    def do_set_ready(self, name: str, ready: bool) -> bool:
        """Change the condition Ready of a cluster, on which no decision depends."""
        condition = {"type": "Ready", "status": str(ready), "reason": "Simulated"}
        return self._change("Cluster", name, lambda found: found["status"].update(conditions=[condition]))

    def do_kill(self, process: int) -> bool:
        """Kill a replica; it is started again."""
        return self._on(process, SchedulerProcess.kill)

    def do_terminate(self, process: int) -> bool:
        """Stop a replica by a signal; it is started again."""
        return self._on(process, SchedulerProcess.terminate)

    def do_freeze(self, process: int, seconds: float) -> bool:
        """Freeze a replica."""
        return self._on(process, lambda found: found.freeze(seconds))

    def do_freeze_leader(self, seconds: float, name: str = "") -> bool:
        """Freeze the leader, as soon as it has sent a write that is not answered yet, or at once if it writes nothing."""
        del name  # of the binding of a moment
        leader = self._run.leader()
        if leader is None:
            return False
        leader.freeze(seconds)
        return True

    def do_kill_leader(self, name: str = "") -> bool:
        """Kill the leader; it is started again."""
        del name  # of the binding of a moment
        leader = self._run.leader()
        if leader is not None:
            leader.kill()
        return leader is not None

    def do_place_binding(self, name: str, cluster: str) -> bool:
        """Move a binding to a cluster, as a person does."""

        def place(found: Object) -> None:
            found["spec"]["clusters"] = [{"name": cluster, "replicas": found["spec"].get("replicas", 0)}]

        return self._change_binding(name, place)

    def do_stall(self, process: int, seconds: float) -> bool:
        """Block the main event loop of a replica."""
        return self._on(process, lambda found: found.stall(seconds))

    def do_set_clock(self, process: int, offset: float) -> bool:
        """Change the time of day of a replica's machine."""

        def change(found: SchedulerProcess) -> None:
            found.machine.clock_offset = offset

        return self._on(process, change)

    def do_outage(self, seconds: float) -> None:
        """Take the API server down."""
        self._network.is_down = True
        self._network.cut_watches()
        self._simulation.after(seconds, self._up)

    def do_restore(self, back: float, seconds: float, ahead: int = 0) -> bool:
        """Take the API server down, and restore it from the newest backup that is older than ``back`` seconds.

        ``ahead`` is by how much the revision is bumped beyond that of the lost state; 0 for that of the backup.
        """
        old = [each for each in self._backups if each[0] <= self._simulation.now - back]
        if not old:
            return False
        self.do_outage(seconds)
        backup = old[-1][1]
        if ahead:
            backup = replace(backup, revision=self._model.revision + ahead)
        self._simulation.after(seconds / 2, lambda: self._model.restore(backup))
        return True

    def do_cut_watches(self) -> None:
        """Break the connections of all watches."""
        self._network.cut_watches()

    def do_compact(self) -> None:
        """Forget the history of changes: older watches and lists expire."""
        self._model.compact(self._model.revision)

    def do_take_lease(self, seconds: float) -> bool:
        """Let a stranger take the Lease away, who does not renew it."""
        return self._lease(
            lambda spec: spec.update(holderIdentity="stranger", leaseDurationSeconds=max(1, int(seconds)))
        )

    def do_clear_lease(self) -> bool:
        """Clear the holder of the Lease."""
        return self._lease(lambda spec: spec.update(holderIdentity=""))

    def do_delete_lease(self) -> bool:
        """Delete the Lease."""
        return self._delete("Lease", *LEASE)

    def _lease(self, change: Callable[[Object], None]) -> bool:
        found = self._model.get("Lease", *LEASE)
        if found is None:
            return False
        change(found["spec"])
        self._model.put(found)
        return True

    def _on(self, index: int, call: Callable[[SchedulerProcess], object]) -> bool:
        process = self._run.process(index)
        if process is None:
            return False
        call(process)
        return True

    def _up(self) -> None:
        self._network.is_down = False


LEASE: Final = ("karmada-system", "karmada-scheduler")
"""Namespace and name of the Lease."""
