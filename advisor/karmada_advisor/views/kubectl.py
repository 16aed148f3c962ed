"""Patches of a remedy as commands that can be pasted into a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.model import PolicyRef
from karmada_scheduler.api.binding import KINDS
from karmada_scheduler.api.policy import ID_LABELS

_OTHER_POLICIES: Final = ("FederatedResourceQuota", "OverridePolicy", "ClusterOverridePolicy")
_GROUPS: Final[Mapping[str, str]] = {
    "Cluster": "cluster.karmada.io",
    **dict.fromkeys(KINDS, "work.karmada.io"),
    **dict.fromkeys((*ID_LABELS, *_OTHER_POLICIES), "policy.karmada.io"),
}
_PLACEMENT: Final = "/spec/placement"
_OF_BINDING: Final = ("/spec/suspension",)
"""Fields of a binding that nobody but a person sets; Karmada writes the others from the policy and the workload."""


def resource_name(kind: str, name: str) -> str:
    """Return an object as ``kubectl -o name`` does: ``resourcebinding.work.karmada.io/web-deployment``, ``deployment/web``."""
    return f"{kind.lower()}.{_GROUPS[kind]}/{name}" if kind in _GROUPS else f"{kind.lower()}/{name}"


def patch_command(
    kind: str, namespace: str, name: str, patch: Sequence[Mapping[str, Any]], policy: PolicyRef | None
) -> str:
    """Return the command that applies a patch, "" if there is none that lasts.

    Karmada copies the placement of a policy into its bindings, so a patch of the placement is one of the policy. Other
    fields of a binding are written again from the workload, and a status by who reports it.

    Args:
        kind: The kind of the object.
        namespace: Its namespace; "" for a cluster-scoped one.
        name: Its name.
        patch: The operations of RFC 6902.
        policy: The policy that claims the binding; None without one.
    """
    paths = [str(operation.get("path", "")) for operation in patch]
    if kind in KINDS and not all(path.startswith(_OF_BINDING) for path in paths):
        if policy is None or not all(path.startswith(_PLACEMENT) for path in paths):
            return ""
        kind, namespace, name = policy.kind, policy.namespace, policy.name
    if kind not in _GROUPS or not paths or any(path.startswith("/status") for path in paths):
        return ""
    words = ["kubectl", "patch", f"{kind.lower()}.{_GROUPS[kind]}", name]
    words += ["--namespace", namespace] if namespace else []
    listed = [dict(operation) for operation in patch]
    operations = json.dumps(listed, ensure_ascii=False, separators=(", ", ": "))
    return shlex.join([*words, "--type=json", f"--patch={operations}"])
