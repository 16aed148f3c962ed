"""What runs Pods in a real member: kube-controller-manager, kube-scheduler, and kwok in place of kubelets.

The first two are those of the pinned Kubernetes, so Pods are created, bound, evicted and left pending by the rules
of a real cluster. kwok reports nodes and the Pods on them as `kwok/stages.yaml` says; it renews the Leases of all nodes
of a member, so nodes are lost all at once by stopping it, and one by one by `Member.report_ready`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from . import karmada, programs
from .apiserver import Site
from .processes import Process, free_port

KWOK: Final = Path(__file__).parent / "kwok"
CONTROLLERS: Final = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "job-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "resourcequota-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
)
EVICTED_AFTER: Final = 15
"""Seconds until Pods leave a node that is not ready; Kubernetes' default is 300."""
FLAGS: Final = (
    f"--default-not-ready-toleration-seconds={EVICTED_AFTER}",
    f"--default-unreachable-toleration-seconds={EVICTED_AFTER}",
)
"""Further flags of the member's kube-apiserver."""

_NO_LOOKUP: Final = "--authentication-skip-lookup=true"
"""Nobody calls these two, and the lookup fails where no proxy of API servers is configured."""


def ensure() -> Path:
    """Return kwok, building it first if this machine does not have it yet."""
    return programs.ensure(
        "kwok", KWOK, [KWOK / "go.mod", KWOK / "go.sum"], package="sigs.k8s.io/kwok/cmd/kwok"
    )


def start(site: Site, member: str, kubeconfig: Path) -> list[Process]:
    """Start the three programs of a member; its kubeconfig is an administrator's."""
    server = site.server
    argvs = {
        "kube-controller-manager": karmada.kube_controller_manager_flags(
            kubeconfig=kubeconfig, server=server, port=free_port(), controllers=CONTROLLERS
        ),
        "kube-scheduler": karmada.kube_scheduler_flags(
            kubeconfig=kubeconfig, server=server, port=free_port()
        ),
    }
    kwok = [str(ensure()), f"--kubeconfig={kubeconfig}", f"--config={KWOK / 'stages.yaml'}"]
    return [
        *(
            site.supervisor.spawn(f"{member}-{name}", [str(site.binaries.path(name)), *flags, _NO_LOOKUP])
            for name, flags in argvs.items()
        ),
        site.supervisor.spawn(
            f"{member}-kwok", [*kwok, "--manage-all-nodes", "--node-lease-duration-seconds=40"]
        ),
    ]
