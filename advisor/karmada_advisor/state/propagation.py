"""What runs on the clusters of a binding, as its status and the Clusters say, and whether its dispatching is suspended.

Source: karmada v1.18.2 pkg/util/helper/workstatus.go (aggregatedStatus), pkg/controllers/status/cluster_status_controller.go
(condition Ready).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self

from karmada_advisor.state.model import Applied, ClusterStatus
from karmada_advisor.state.stored import Manifest, mapping, mappings
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.policy import claims, policy_name
from karmada_scheduler.structs import Struct


class Suspended(Struct, frozen=True):
    """The suspension of dispatching.

    Attributes:
        everywhere: Whether no cluster gets changes.
        clusters: The clusters of the binding that get none.
    """

    everywhere: bool
    clusters: frozenset[str]

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Read it from a binding."""
        spec = mapping(manifest.get("spec"))
        suspension = mapping(spec.get("suspension"))
        names = mapping(suspension.get("dispatchingOnClusters")).get("clusterNames")
        listed = names if isinstance(names, Sequence) and not isinstance(names, str) else ()
        stored = {str(each.get("name")) for each in mappings(spec.get("clusters"))}
        return cls(suspension.get("dispatching") is True, frozenset(map(str, listed)) & stored)

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.clusters)

    def concerns(self, cluster: str) -> bool:
        """Return whether a cluster gets no changes."""
        return self.everywhere or cluster in self.clusters

    def text(self, binding: Binding, policies: Sequence[Manifest] | None) -> str:
        """Return who suspends it, for people."""
        field = "dispatching" if self.everywhere else "dispatchingOnClusters"
        where = "" if self.everywhere else f" to {', '.join(sorted(self.clusters))}"
        policy = next((each for each in policies or () if claims(each, binding.labels)), None)
        wanted = mapping(mapping(policy and policy.get("spec")).get("suspension"))
        by = policy_name(policy) if policy is not None and wanted.get(field) else "the binding itself"
        return (
            f"dispatching{where} is suspended by {by} (spec.suspension.{field}): changes do not arrive there"
        )


def manager_of(manifest: Manifest, *path: str) -> tuple[str, str]:
    """Return who wrote a field last, and when, as ``metadata.managedFields`` says; empty texts if it does not."""
    for each in reversed(mappings(mapping(manifest.get("metadata")).get("managedFields"))):
        found: Any = each.get("fieldsV1")
        for name in path:
            found = mapping(found).get(f"f:{name}")
        if found is not None:
            return str(each.get("manager") or ""), str(each.get("time") or "")
    return "", ""


_UNHEALTHY: Final = "Unhealthy"

_ALL_FAILED: Final = re.compile(r"^Failed to apply all manifests \(\d+/\d+\): ")


def rows_of(
    binding: Binding,
    manifest: Manifest,
    cluster_of: Callable[[str], Manifest | None] | None,
    suspended: Suspended,
) -> tuple[ClusterStatus, ...]:
    """Return one row for each cluster that has the binding, or is being left by it.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        cluster_of: Returns a Cluster as it was read, None if there is none; None if the Clusters are not known.
        suspended: The suspension of its dispatching.
    """
    reported = _reported(manifest)
    wanted = {each.name: each.replicas for each in sorted(binding.spec.clusters)}
    leaving = [each.from_cluster for each in binding.spec.graceful_eviction_tasks]
    names = [*wanted, *dict.fromkeys(name for name in leaving if name not in wanted)]
    return tuple(
        _row(name, wanted.get(name), reported.get(name), cluster_of, is_suspended=suspended.concerns(name))
        for name in names
    )


def _row(
    name: str,
    wanted: int | None,
    item: Manifest | None,
    cluster_of: Callable[[str], Manifest | None] | None,
    *,
    is_suspended: bool,
) -> ClusterStatus:
    item = item or {}
    applied, message = _applied(item)
    ready, health = _ready(item), str(item.get("health") or "")
    reason, problem, of_cluster = "", "", ""
    if cluster_of is not None:
        reason, problem, of_cluster = cluster_problem(name, cluster_of(name))
    if not reason and is_suspended:
        reason, problem = "DispatchingSuspended", f"dispatching to {name} is suspended"
    elif not reason and applied is Applied.NO:
        reason, problem = "NotApplied", f"not applied on {name}"
    elif not reason and health == _UNHEALTHY:
        count = "but unhealthy" if ready is None or not wanted else f"{ready} of {wanted} ready"
        reason, problem = "Unhealthy", f"applied, {count} on {name}"
    return ClusterStatus(name, wanted, applied, ready, health, reason, problem, message or of_cluster)


def _applied(item: Manifest) -> tuple[Applied, str]:
    """Return whether a Work is applied, and the message of one that is not.

    An item without a message is one about which the member cluster has said nothing yet.
    """
    # While it retries, Karmada writes the message of the member now with and now without this prefix.
    message = _ALL_FAILED.sub("", str(item.get("appliedMessage") or ""))
    if item.get("applied") is True:
        return Applied.YES, ""
    return (Applied.NO, message) if message else (Applied.NOT_REPORTED, "")


def _ready(item: Manifest) -> int | None:
    status = item.get("status")
    if not isinstance(status, Mapping):
        return None
    ready = status.get("readyReplicas")
    if isinstance(ready, int) and not isinstance(ready, bool):
        return ready
    # Kubernetes leaves a count of 0 out.
    return 0 if "replicas" in status or "unavailableReplicas" in status else None


def cluster_problem(name: str, cluster: Manifest | None) -> tuple[str, str, str]:
    """Return code, text and message of what is wrong with a cluster; empty for one that is ready, or says nothing."""
    if cluster is None:
        return "ClusterMissing", f"cluster {name} does not exist", ""
    for each in mappings(mapping(cluster.get("status")).get("conditions")):
        if each.get("type") == "Ready" and each.get("status") != "True":
            since = str(each.get("lastTransitionTime") or "")
            reason = str(each.get("reason") or each.get("status") or "")
            text = f"cluster {name} is not ready" + (f" since {since}" if since else "")
            text = f"{text} ({reason})" if reason else text
            return "ClusterNotReady", text, str(each.get("message") or "")
    return "", "", ""


def _reported(manifest: Manifest) -> dict[str, Manifest]:
    items = mappings(mapping(manifest.get("status")).get("aggregatedStatus"))
    return {str(each.get("clusterName") or ""): each for each in items}
