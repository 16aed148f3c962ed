"""Workloads that are placed on a control plane, and what a user who may only get and list learns about them."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import requests

from karmada_scheduler.command import main as command
from tools import manifests
from tools.controlplane import ControlPlane, SimulatedMember
from tools.controlplane.parallel import in_parallel
from tools.controlplane.workspace import DEFAULT, workspace
from tools.manifests import Manifest, targets_of

SCHEDULER: Final = "my-scheduler"
REGIONS: Final = 6
REST_SECONDS: Final = 8.0
_TIMEOUT_SECONDS: Final = 900.0
_USER: Final = "reader"
_READ: Final = {
    "cluster.karmada.io": ["clusters"],
    "work.karmada.io": ["resourcebindings", "clusterresourcebindings"],
    "policy.karmada.io": [
        "propagationpolicies",
        "clusterpropagationpolicies",
        "clustertaintpolicies",
        "federatedresourcequotas",
    ],
    "coordination.k8s.io": ["leases"],
    "apps": ["deployments"],
}


@contextmanager
def control_plane(name: str, **options: Any) -> Iterator[ControlPlane]:
    """Run a control plane whose files stay in ``.controlplane/NAME``; the options are those of ``ControlPlane``."""
    with workspace(DEFAULT / name) as folder, ControlPlane(folder, **options) as plane:
        yield plane


def report_of(*arguments: str) -> dict[str, Any]:
    """Return what a command of ours prints as JSON; AssertionError if its status is not 0."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = command([*arguments, "-o=json"])
    assert status == 0, f"{' '.join(arguments)} ended with status {status}"
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


class Workloads:
    """Deployments in a namespace, with policies.

    Attributes:
        plane: The control plane, which has members and a scheduler.
        bindings_path: Of the bindings.
    """

    def __init__(
        self, plane: ControlPlane, space: str, policies: Sequence[Manifest], deployments: Sequence[Manifest]
    ) -> None:
        """Create the namespace and everything in it, and wait until all is placed."""
        self.plane, self._space = plane, space
        self.bindings_path = f"/apis/work.karmada.io/v1alpha2/namespaces/{space}/resourcebindings"
        self._kubeconfig = plane.kubeconfig_of_reader(_USER, _READ.items())
        plane.client.create(manifests.namespace(space))
        for policy in policies:
            plane.client.apply(policy)
        in_parallel(plane.client.apply, deployments)
        self.settled(at_least=len(deployments))

    def ask(self, question: str, *flags: str) -> dict[str, Any]:
        """Return the answer of a command to the user who may only get and list."""
        whose = (f"--kubeconfig={self._kubeconfig}", f"--scheduler-name={SCHEDULER}", "--fail-on=none")
        return report_of(question, *flags, *whose)

    def writes(self) -> int:
        """Return how many writes of that user the audit log has."""
        return sum(request["verb"] not in {"get", "list", "watch"} for request in self.plane.requests(_USER))

    def targets(self) -> dict[str, dict[str, int]]:
        """Return the replicas by cluster of each Deployment."""
        return {
            name.removesuffix("-deployment"): targets_of(found) for name, found in self._bindings().items()
        }

    def settled(self, *, at_least: int = 0) -> dict[str, Manifest]:
        """Return the bindings by name, once all are scheduled and nothing of that has changed for some seconds."""
        deadline, last, since = time.monotonic() + _TIMEOUT_SECONDS, "", time.monotonic()
        while True:
            self.plane.check()
            found = self._bindings()
            waiting = [name for name, binding in found.items() if not _is_settled(binding)]
            state = json.dumps(
                [[binding["spec"], binding.get("status", {}).get("conditions")] for binding in found.values()]
            )
            if waiting or len(found) < at_least or state != last:
                last, since = state, time.monotonic()
            elif time.monotonic() - since > REST_SECONDS:
                return found
            assert time.monotonic() < deadline, f"{len(found)} bindings, not settled: {waiting[:5]}"
            time.sleep(1)

    def _bindings(self) -> dict[str, Manifest]:
        """Return all bindings by name; on a busy machine a long answer may be cut off, and is asked for again."""
        for is_last in (False, False, True):
            try:
                listed = self.plane.client.list(self.bindings_path)
                break
            except requests.RequestException:
                if is_last:
                    raise
        return {binding["metadata"]["name"]: binding for binding in listed}


def has_failed(binding: Manifest) -> bool:
    """Return whether the last decision failed."""
    conditions = binding.get("status", {}).get("conditions") or ()
    return any(found["type"] == "Scheduled" and found["status"] != "True" for found in conditions)


def _is_settled(binding: Manifest) -> bool:
    status = binding.get("status") or {}
    is_observed = status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
    return has_failed(binding) or (is_observed and bool(status.get("conditions")))


def members() -> list[SimulatedMember]:
    """Return 24 members in 6 regions, of different sizes; each third one has the label ``tier=gold``."""
    return [
        SimulatedMember(
            f"m{number:02}",
            provider="paper",
            region=f"r{number % REGIONS}",
            zone=f"r{number % REGIONS}-{number}",
            labels={"kind": "sim", "tier": "silver" if number % 3 else "gold"},
            cpu=str(200 + 37 * number),
            memory="4Ti",
            pods="9000",
        )
        for number in range(24)
    ]


def deployment(space: str, number: int, *, groups: int) -> Manifest:
    """Return a Deployment of 1 to 13 replicas, in one of some groups."""
    labels, cpu = {"group": str(number % groups)}, f"{(number % 4 + 1) * 100}m"
    return manifests.deployment(space, f"web-{number}", number % 13 + 1, cpu=cpu, labels=labels)


def policy(space: str, group: int, placement: Manifest) -> Manifest:
    """Return the policy of a group of Deployments."""
    selector = {"labelSelector": {"matchLabels": {"group": str(group)}}}
    return manifests.policy(space, f"group-{group}", placement, scheduler=SCHEDULER, selector=selector)


def losses_of(report: Mapping[str, Any]) -> dict[str, tuple[str, dict[str, int]]]:
    """Return the effect of a loss on each Deployment, and its replicas by cluster afterwards."""
    found = {}
    for forecast in report["bindings"]:
        [loss] = forecast["losses"]
        after = {target["name"]: target["replicas"] for target in loss["after"]}
        found[forecast["name"].removesuffix("-deployment")] = loss["effect"], after
    return found
