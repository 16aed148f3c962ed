"""Workloads that are placed in a namespace, what a user who may only get and list learns about the loss of a cluster, and
how much is not as forecast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tools import manifests
from tools.check_frame import report_of
from tools.controlplane import ControlPlane
from tools.manifests import targets_of
from tools.plan_check.objects import SCHEDULER

Manifest = dict[str, Any]
Placement = dict[str, int]

REST_SECONDS: Final = 8.0
_READ: Final = {
    "cluster.karmada.io": ["clusters"],
    "work.karmada.io": ["resourcebindings", "clusterresourcebindings"],
    "policy.karmada.io": ["propagationpolicies", "clusterpropagationpolicies", "clustertaintpolicies"],
    "coordination.k8s.io": ["leases"],
}


class PlacedWorkloads:
    """Workloads on a control plane.

    Attributes:
        plane: The control plane.
        bindings: The path of their bindings.
        different: What was not as forecast.
    """

    def __init__(
        self, plane: ControlPlane, space: str, policies: Sequence[Manifest], deployments: Sequence[Manifest]
    ) -> None:
        """Take a control plane with members and a scheduler; create a namespace with workloads, and wait until they are placed."""
        self.plane, self.different, self._space = plane, 0, space
        self.bindings = f"/apis/work.karmada.io/v1alpha2/namespaces/{space}/resourcebindings"
        self._kubeconfig = plane.kubeconfig_of_reader("survivor", _READ.items())
        plane.client.create(manifests.namespace(space))
        for each in (*policies, *deployments):
            plane.client.apply(each)
        plane.wait_for(
            self.targets,
            "all workloads to be placed",
            timeout=240,
            until=lambda found: len(found) == len(deployments) and all(found.values()),
        )

    def targets(self) -> dict[str, Placement]:
        """Return where each workload is."""
        found = self.plane.client.list(self.bindings)
        return {each["metadata"]["name"].removesuffix("-deployment"): targets_of(each) for each in found}

    def forecast(self, lost: str, *flags: str) -> Manifest:
        """Return what ``survive`` says about the loss of a cluster."""
        return report_of(
            "survive", lost, "--domain=cluster", "--all", "--no-remedies", "--fail-on=none", "-n", self._space,
            f"--kubeconfig={self._kubeconfig}", f"--scheduler-name={SCHEDULER}", *flags,
        )  # fmt: skip

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Print what was found, and count it if it is not what is wanted."""
        self.different += found != wanted
        mark = "" if found == wanted else f"  DIFFERENT: expected {wanted}"
        print(f"{what}: {found}{mark}", flush=True)


def outcomes(report: Mapping[str, Any]) -> dict[str, tuple[str, Placement]]:
    """Return the effect of the loss on each workload, and where it is afterwards."""
    found = {}
    for each in report["bindings"]:
        [loss] = each["losses"]
        after = {target["name"]: target["replicas"] for target in loss["after"]}
        found[each["name"].removesuffix("-deployment")] = loss["effect"], after
    return found
