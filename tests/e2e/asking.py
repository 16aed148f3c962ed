"""Runs ``explain`` and ``why-not`` against the control plane, as a user who may only get and list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.commands import Ran, run
from tools.controlplane import ControlPlane, Object

READER = "explain-reader"
_READ = ["get", "list"]
CLUSTERS: Object = {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters"], "verbs": _READ}
BINDINGS: Object = {
    "apiGroups": ["work.karmada.io"],
    "resources": ["resourcebindings", "clusterresourcebindings"],
    "verbs": _READ,
}
POLICIES: Object = {
    "apiGroups": ["policy.karmada.io"],
    "resources": ["propagationpolicies", "clusterpropagationpolicies"],
    "verbs": _READ,
}
LEASES: Object = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": _READ}
WORKLOADS: Object = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": _READ}


class Answer(Ran):
    """What a command printed about a binding."""

    @property
    def codes(self) -> list[str]:
        """The codes of the causes, the primary one first."""
        causes = self.fields["causes"]
        assert [bool(each.get("primary")) for each in causes] == [index == 0 for index in range(len(causes))]
        return [each["code"] for each in causes]

    @property
    def evidence(self) -> dict[str, Any]:
        """The evidence of the primary cause."""
        found: dict[str, Any] = self.fields["causes"][0]["evidence"]
        return found


def reader(plane: ControlPlane, user: str = READER, *rules: Object) -> Path:
    """Return the kubeconfig of a user who may read with these rules, or all that the commands read."""
    chosen = list(rules) or [CLUSTERS, BINDINGS, POLICIES, WORKLOADS]
    return plane.kubeconfig_with_rules(user, chosen)


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks about one namespace."""

    kubeconfig: Path
    namespace: str

    def explain(self, name: str = "deployment/web", *flags: str) -> Answer:
        """Run ``explain``; no process of a scheduler is asked unless a flag names one."""
        return self.run("explain", name, "--no-remedies", "-o", "json", *flags)

    def why_not(self, *arguments: str) -> Answer:
        """Run ``why-not``."""
        return self.run("why-not", "-o", "json", *arguments)

    def run(self, command: str, *arguments: str) -> Answer:
        """Run any command."""
        done = run(command, *arguments, "-n", self.namespace, f"--kubeconfig={self.kubeconfig}")
        return Answer(done.status, done.out, done.err)
