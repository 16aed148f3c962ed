"""What is alive: a control plane, both schedulers with identities of their own, simulated members."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import requests

from tools.controlplane import ControlPlane
from tools.controlplane.api import local_session
from tools.controlplane.fleet import simulated_members
from tools.controlplane.ours import Scheduler, start_scheduler
from tools.live.proxy import Network, Proxy

SCHEDULER: Final = "my-scheduler"
"""The name of our scheduler and of its Lease."""

OTHER: Final = "default-scheduler"
OTHER_PROCESS: Final = f"karmada-scheduler-{OTHER}"
OTHER_USER: Final = "system:karmada:karmada-scheduler"
_MEMBERS: Final = 8
_QUOTA: Final = 384 << 20
QUOTA_MEGABYTES: Final = _QUOTA >> 20

_AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [
                {
                    "group": "work.karmada.io",
                    "resources": ["resourcebindings", "resourcebindings/status"],
                }
            ],
        },
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
            "namespaces": ["karmada-system"],
        },
        {"level": "Metadata", "users": [f"live-{number}" for number in range(9)]},
        {"level": "None"},
    ],
}


@dataclass(slots=True)
class Replica:
    """One replica of our scheduler.

    Attributes:
        name: The name of its process and of its log.
        user: Its user at the API server; no other client has it.
        kubeconfig: Its kubeconfig, which names the address of its proxy.
        proxy: Its network.
        scheduler: Its addresses.
    """

    name: str
    user: str
    kubeconfig: Path
    proxy: Proxy
    scheduler: Scheduler

    def leads(self) -> bool:
        """Return whether it says that it leads; False without an answer."""
        return 'leader_election_master_status{name=""} 1' in self.metrics()

    def metrics(self) -> str:
        """Return its metrics, "" without an answer."""
        return _get(f"{self.scheduler.metrics}/metrics")[1]

    def status(self, path: str) -> int:
        """Return the status of a path of its health server, 0 without an answer."""
        return _get(self.scheduler.health + path)[0]


class LivePlane:
    """The control plane with everything around it.

    Attributes:
        karmada: The control plane.
        replicas: The replicas of our scheduler.
    """

    def __init__(self, karmada: ControlPlane, replicas: Sequence[Replica]) -> None:
        self.karmada = karmada
        self.replicas = tuple(replicas)

    def leader(self) -> Replica | None:
        """Return the replica that says that it leads."""
        return next((each for each in self.replicas if each.leads()), None)

    def facts(self) -> dict[str, object]:
        """Return what the judge has to know."""
        return {
            "scheduler": SCHEDULER,
            "other": OTHER,
            "other user": OTHER_USER,
            "users": {each.user: each.name for each in self.replicas},
            "lease": f"/registry/leases/karmada-system/{SCHEDULER}",
        }


@contextmanager
def live_plane(
    folder: Path, *, replicas: int, planted: str | None, say: Callable[[str], None]
) -> Iterator[LivePlane]:
    """Start everything, with replicas of our scheduler, which may have a planted bug (``program``)."""
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(_AUDIT_POLICY))
    extra_flags = {
        "kube-apiserver": [
            f"--audit-policy-file={policy}",
            "--audit-log-maxsize=200",
            "--storage-media-type=application/json",
            "--etcd-compaction-interval=1m",
        ],
        "server": [f"--quota-backend-bytes={_QUOTA}"],
    }
    network = Network()
    try:
        with ControlPlane(folder / "plane", audit_log=True, extra_flags=extra_flags, say=say) as karmada:
            karmada.add(*simulated_members(_MEMBERS))
            say(f"{_MEMBERS} simulated members have joined")
            karmada.start_karmada_scheduler(OTHER)
            module = ["karmada_scheduler"] if planted is None else ["tools.live.program", planted]
            program = (sys.executable, "-m", *module)
            made = [_start(karmada, network, number, program) for number in range(replicas)]
            plane = LivePlane(karmada, made)
            karmada.wait_for(
                lambda: plane.leader() is not None and all(each.status("/readyz") == 200 for each in made),
                "all replicas to be ready and one to lead",
            )
            say(f"karmada-scheduler and {replicas} replicas of ours are ready")
            yield plane
    finally:
        network.close()


def _start(karmada: ControlPlane, network: Network, number: int, program: Sequence[str]) -> Replica:
    user = f"live-{number}"
    karmada.kubeconfig_for_scheduler(user, lease=SCHEDULER)
    upstream = urlsplit(karmada.client.server).port
    assert upstream is not None
    proxy = network.proxy_to(upstream)
    kubeconfig = karmada.folder / "kubeconfigs" / f"{user}-proxy.kubeconfig"
    karmada.write_kubeconfig(kubeconfig, user, server=f"https://127.0.0.1:{proxy.port}")
    scheduler = start_scheduler(
        karmada,
        "--v=2",
        name=SCHEDULER,
        process_name=f"scheduler-{number}",
        kubeconfig=kubeconfig,
        wait_ready=False,
        program=program,
    )
    time.sleep(0.2)
    return Replica(f"scheduler-{number}", user, kubeconfig, proxy, scheduler)


def _get(url: str) -> tuple[int, str]:
    try:
        with local_session() as session:
            response = session.get(url, timeout=2)
            return response.status_code, response.text
    except requests.RequestException:
        return 0, ""
