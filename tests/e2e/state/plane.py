"""The control plane of the check: members, schedulers side by side, and the users who ask."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml

from tests import fork_server
from tools.controlplane import ControlPlane, Node, Object, RealMember
from tools.controlplane.fleet import real_members, simulated_members
from tools.controlplane.ours import Scheduler, start_scheduler, start_web
from tools.controlplane.processes import free_port

MINE: Final = "my-scheduler"
GUARDED: Final = "west-scheduler"
PLUGGED: Final = "south-scheduler"
GATED: Final = "north-scheduler"
STOCK: Final = "default-scheduler"
CITIES: Final = (
    "oslo lima bern riga kyiv doha accra quito tunis hanoi cairo delhi turin porto leeds basel malmo split sofia varna "
    "izmir perth davao osaka kobe busan jinan wuhan pune surat agra cusco la-paz bogota cali recife natal belem rosario "
    "salta minsk gomel brest nantes dijon metz lille tours bari siena pisa genoa parma padua lecce trento"
).split()

READS: Final[dict[str, tuple[str, Sequence[str]]]] = {
    "clusters": ("cluster.karmada.io", ["clusters"]),
    "bindings": ("work.karmada.io", ["resourcebindings", "clusterresourcebindings"]),
    "works": ("work.karmada.io", ["works"]),
    "policies": ("policy.karmada.io", ["propagationpolicies", "clusterpropagationpolicies"]),
    "overrides": ("policy.karmada.io", ["overridepolicies", "clusteroverridepolicies"]),
    "quotas": ("policy.karmada.io", ["federatedresourcequotas"]),
    "workloads": ("apps", ["deployments", "statefulsets", "daemonsets"]),
    "jobs": ("batch", ["jobs", "cronjobs"]),
    "core": ("", ["configmaps", "services", "namespaces", "pods"]),
    "events": ("", ["events"]),
    "other-events": ("events.k8s.io", ["events"]),
    "leases": ("coordination.k8s.io", ["leases"]),
    "gadgets": ("example.com", ["*"]),
    "roles": ("rbac.authorization.k8s.io", ["clusterroles"]),
    "crds": ("apiextensions.k8s.io", ["customresourcedefinitions"]),
}
"""What the commands may read, by a short name of the right."""

ABSENT_IMAGE: Final = "registry.example.com/"
"""No member can pull an image whose name begins so."""

_PLUGINS: Final = '''\
"""Plugins of one scheduler, which the commands do not have unless a flag names them."""

from karmada_scheduler.framework import SUCCESS, Result


class Contracts:
    """Refuse clusters for workloads that have a certain annotation, and hold others back."""

    name = "Contracts"
    needs_workload = True
    free_of_side_effects = True

    def pre_enqueue(self, context, /):
        workload = context.workload
        if workload is not None and workload.annotations.get("contract") == "pending":
            return Result.unschedulable("the contract is not signed")
        return SUCCESS

    def filter(self, context, /):
        workload = context.workload
        if workload is not None and workload.annotations.get("contract") == "none":
            return Result.unschedulable("cluster(s) had no contract")
        return SUCCESS
'''


class Plane:
    """What all situations share.

    Attributes:
        karmada: The control plane.
        records: Addresses of the records of our schedulers, by scheduler name.
        page: The address of the page.
        files: The directory of files that the check writes.
        plugins: The directory of the plugins of one scheduler.
    """

    def __init__(self, karmada: ControlPlane, files: Path) -> None:
        self.karmada = karmada
        self.records: dict[str, str] = {}
        self.page = ""
        self.files = files
        self.plugins = files / "plugins"
        self.schedulers: dict[str, Scheduler] = {}
        self._cities = itertools.chain(CITIES, (f"{a}-{b}" for a, b in itertools.product(CITIES, CITIES)))
        self._namespaces = itertools.count(1)
        self._lock = threading.Lock()

    def start(self) -> None:
        """Add the members and start the schedulers."""
        quick = [Node(cpu="8"), Node(cpu="8")]
        self.karmada.add(
            *real_members(2),
            RealMember("real3", tuple(quick), "local", "real-3", "real-3-1", {"kind": "real"}, runs=_runs),
            RealMember("real4", tuple(quick), "local", "real-4", "real-4-1", {"kind": "real"}),
            *simulated_members(6),
        )
        self.karmada.start_karmada_scheduler(STOCK, leader_elect=True)
        self.start_ours(MINE, f"--config={self._configuration()}")
        self.records[GUARDED] = self.records[MINE]
        self.plugins.mkdir(parents=True, exist_ok=True)
        (self.plugins / "contracts.py").write_text(_PLUGINS)
        self.start_ours(PLUGGED, f"--plugin-dir={self.plugins}", kubeconfig=self.karmada.kubeconfig)
        gates = ("MultiplePodTemplatesScheduling", "CustomizedClusterResourceModeling", "WorkloadAffinity")
        self.start_ours(GATED, "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates))
        self.reader = self.user("reader", *READS)
        _, self.page = start_web(self.karmada, f"--from={self.records[MINE]}")

    def start_ours(self, name: str, *flags: str, kubeconfig: Path | None = None) -> Scheduler:
        """Start a scheduler of ours that has a record."""
        address = f"127.0.0.1:{free_port()}"
        started = start_scheduler(
            self.karmada, f"--explain-bind-address={address}", *flags, name=name, kubeconfig=kubeconfig
        )
        self.records[name] = f"http://{address}"
        self.schedulers[name] = started
        return started

    def _configuration(self) -> Path:
        guard = {
            "nothingFits": "keep",
            "budgets": [{"scope": "namespace", "window": "1h", "bindings": 1}],
            "lastHealthyCopy": {"enabled": False},
        }
        fail_back = {"stabilizationSeconds": 3600, "checkSeconds": 1}
        guarded = {
            "schedulerName": GUARDED,
            "plugins": {"multiPoint": {"enabled": [{"name": "PlacementGuard"}, {"name": "FailBack"}]}},
            "pluginConfig": [
                {"name": "PlacementGuard", "args": guard},
                {"name": "FailBack", "args": fail_back},
            ],
        }
        kind = {
            "apiVersion": "pyscheduler.karmada.io/v1alpha1",
            "kind": "KarmadaSchedulerConfiguration",
        }
        path = self.files / "config.yaml"
        path.write_text(yaml.safe_dump({**kind, "profiles": [{"schedulerName": MINE}, guarded]}))
        return path

    def user(self, name: str, *rights: str) -> Path:
        """Return the kubeconfig of a user who may get and list what these names of ``READS`` stand for."""
        return self.karmada.kubeconfig_of_reader(name, [READS[right] for right in rights])

    def next_city(self) -> str:
        """Return the name of a cluster that does not exist yet."""
        with self._lock:
            return next(self._cities)

    def next_namespace(self) -> str:
        """Return the name of a namespace that does not exist yet."""
        return f"n{next(self._namespaces):03}"


def _runs(deployment: Object) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return not any(each["image"].startswith(ABSENT_IMAGE) for each in containers)


@contextmanager
def running(folder: Path) -> Iterator[Plane]:
    """Run the control plane of the situations in a folder."""
    quick = ["--cluster-failure-threshold=3s", "--cluster-status-update-frequency=2s"]
    gates = ("FederatedQuotaEnforcement", "PropagationPolicyPreemption", "WorkloadAffinity")
    with ControlPlane(
        folder / "run",
        feature_gates=dict.fromkeys(gates, True),
        extra_flags={"controller-manager": quick},
        start=fork_server.start,
    ) as karmada:
        plane = Plane(karmada, folder)
        plane.start()
        yield plane
