"""What runs on the clusters of a binding, as its status and the Clusters say, and whether its dispatching is suspended.

Source: karmada v1.18.2 pkg/util/helper/workstatus.go (aggregatedStatus, condition FullyApplied), pkg/controllers/status/cluster_status_controller.go
(condition Ready), pkg/resourceinterpreter/default/native/reflectstatus.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from karmada_advisor.state.model import Applied, ClusterStatus
from karmada_advisor.state.stored import (
    Copy,
    Manifest,
    copies_of,
    live_tasks,
    mapping,
    mappings,
    part,
    required_on,
    text_of,
)
from karmada_scheduler.api.binding import Binding, ObjectReference
from karmada_scheduler.api.manifest import integer_at
from karmada_scheduler.api.policy import claims, policy_name
from karmada_scheduler.api.workload import leaves_out_zeros, reported_replicas, under_way
from karmada_scheduler.structs import Struct, replace


class Suspended(Struct, frozen=True):
    """The suspension of dispatching.

    Attributes:
        everywhere: Whether no cluster gets changes.
        clusters: The clusters of the binding that get none.
        listed: All clusters that are named.
    """

    everywhere: bool = False
    clusters: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Read it from a binding."""
        spec = mapping(manifest.get("spec"))
        suspension = mapping(spec.get("suspension"))
        if not suspension:
            return cls()
        names = mapping(suspension.get("dispatchingOnClusters")).get("clusterNames")
        listed = frozenset(
            map(str, names if isinstance(names, Sequence) and not isinstance(names, str) else ())
        )
        stored = {str(each.get("name")) for each in mappings(spec.get("clusters"))} | {*required_on(manifest)}
        return cls(suspension.get("dispatching") is True, listed & stored, listed)

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.clusters)

    def concerns(self, cluster: str) -> bool:
        """Return whether a cluster gets no changes."""
        return self.everywhere or cluster in self.listed

    def text(self, binding: Binding, policies: Sequence[Manifest] | None) -> str:
        """Return who suspends it, for people."""
        field = "dispatching" if self.everywhere else "dispatchingOnClusters"
        where = "" if self.everywhere else f" to {', '.join(sorted(self.clusters))}"
        policy = next((claimant for claimant in policies or () if claims(claimant, binding.labels)), None)
        wanted = mapping(mapping(policy and policy.get("spec")).get("suspension"))
        by = policy_name(policy) if policy is not None and wanted.get(field) else "the binding itself"
        suspended = f"dispatching{where} is suspended by {by} (spec.suspension.{field})"
        return f"{suspended}: changes do not arrive there"


def manager_of(manifest: Manifest, *path: str) -> tuple[str, str]:
    """Return who wrote a field last, and when, as ``metadata.managedFields`` says; empty texts if it does not."""
    for entry in reversed(mappings(mapping(manifest.get("metadata")).get("managedFields"))):
        found: Any = entry.get("fieldsV1")
        for name in path:
            found = mapping(found).get(f"f:{name}")
        if found is not None:
            return str(entry.get("manager") or ""), str(entry.get("time") or "")
    return "", ""


_UNHEALTHY: Final = "Unhealthy"
_SYNC_MODE: Final = ("spec", "syncMode")

_ALL_FAILED: Final = re.compile(r"^Failed to apply all manifests \(\d+/\d+\): ")

_WHOLE: Final = frozenset({"FlinkDeployment"})
"""Kinds whose replicas Karmada divides in the binding and not in the manifest.

Source: karmada v1.18.2 pkg/resourceinterpreter/default/thirdparty/resourcecustomizations (no replicaRevision).
"""


def fully_applied(binding: Binding) -> tuple[str, str]:
    """Return status and time of the condition FullyApplied; empty texts without one."""
    condition = binding.status.condition("FullyApplied") or {}
    return str(condition.get("status") or ""), str(condition.get("lastTransitionTime") or "")


def rows_of(
    binding: Binding,
    manifest: Manifest,
    cluster_of: Callable[[str], Manifest | None] | None,
    suspended: Suspended,
) -> tuple[ClusterStatus, ...]:
    """Return one row for each cluster that has a copy, or is being left by the binding; not for one that is left and gone.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        cluster_of: Returns a Cluster as it was read, None if there is none; None if the Clusters are not known.
        suspended: The suspension of its dispatching.
    """
    copies, reports = copies_of(binding, manifest), _Reports(binding, manifest)
    names = dict.fromkeys((*copies, *(task.from_cluster for task in live_tasks(binding, cluster_of))))
    rows = []
    for name in names:
        cluster = None if cluster_of is None else cluster_of(name)
        reason, problem, message = cluster_problem(name, cluster) if cluster_of else ("", "", "")
        if reason == "ClusterNotReady" and name in reports.by_name:
            problem += "; what it has reported may be old"
        row = reports.row(name, copies.get(name))
        if not reason and suspended.concerns(name):
            runs = f"; {row.problem}" if row.reason in {"OtherNumber", "RollingOut"} else ""
            reason, problem = "DispatchingSuspended", f"dispatching to {name} is suspended{runs}"
        if reason:
            row = replace(row, reason=reason, problem=problem, message=row.message or message)
        elif row.reason in {"OtherNumber", "NotOurs"} and text_of(cluster or {}, *_SYNC_MODE) == "Pull":
            agent = f"{name} is in Pull mode: nothing arrives without a karmada-agent there"
            row = replace(row, problem=f"{row.problem}; {agent}")
        rows.append(row)
    return tuple(rows)


class _Reports:
    """What clusters have reported about a binding.

    Attributes:
        by_name: Their reports.
    """

    def __init__(self, binding: Binding, manifest: Manifest) -> None:
        items = mappings(part(manifest, "status").get("aggregatedStatus"))
        self.by_name = {str(item.get("clusterName") or ""): item for item in items}
        self._spec = binding.spec
        self._applied, self._since = fully_applied(binding)
        reported = [integer_at(part(item, "status"), "resourceTemplateGeneration") for item in items]
        self._template = max((generation or 0 for generation in reported), default=0)

    def row(self, name: str, copy: Copy | None) -> ClusterStatus:
        """Return what a cluster has reported, and the first thing that is wrong with it.

        Args:
            name: The cluster.
            copy: What it should run; None if the binding leaves it.
        """
        item = self.by_name.get(name, {})
        applied, message = _applied(item)
        status, health = mapping(item.get("status")), str(item.get("health") or "")
        resource = self._spec.resource
        ready, running = _ready(status, resource), reported_replicas(status, resource)
        wanted = None if copy is None else copy.replicas
        reason = problem = ""
        if applied is Applied.NO:
            reason, problem = "NotApplied", f"not applied on {name}"
        elif failed := _failure(status):
            reason, problem = "WorkloadFailed", f"failed on {name}: {failed}"
        elif health == _UNHEALTHY:
            count = "but unhealthy" if ready is None or not wanted else f"{ready} of {wanted} ready"
            reason, problem = "Unhealthy", f"applied, {count} on {name}"
        elif copy is not None and (other := self._other_number(copy, status, running)):
            reason, problem = "OtherNumber", f"{name} {other}"
            if change := under_way(status, running):
                reason, problem = "RollingOut", f"{name} {other}: {change}"
        elif copy is not None and (old := self._old_generation(status)):
            reason, problem = "RollingOut", f"{name} runs {old}"
        elif wanted and ready is not None and ready < wanted and "observedGeneration" in status:
            reason, problem = "NotStarted", f"applied, {ready} of {wanted} ready on {name}"
        elif copy is not None and applied is Applied.NOT_REPORTED and self._expects_reports:
            since = f"; FullyApplied is False since {self._since}" if self._applied == "False" else ""
            reason, problem = "NotOurs", f"no report from {name} that the Work is applied{since}"
        by = () if copy is None else copy.required_by
        return ClusterStatus(name, wanted, applied, ready, health, reason, problem, message, running, by)

    @property
    def _expects_reports(self) -> bool:
        """Whether a cluster without a report is one to which nothing came: others have reported, or Karmada says so."""
        reports = self.by_name.values()
        return self._applied == "False" or any(_applied(item)[0] is Applied.YES for item in reports)

    def _other_number(self, copy: Copy, status: Manifest, running: int | None) -> str:
        """Return that a cluster runs another number of replicas than is assigned; "" if not, or if that is not known."""
        resource = self._spec.resource
        if not self._spec.is_workload or len(self._spec.components) > 1:
            return ""
        if running is None:
            if resource.kind not in _WHOLE or copy.replicas == self._spec.replicas:
                return ""
            assigned = f"{copy.replicas} of {self._spec.replicas} are assigned, and"
            return f"runs all: {assigned} every cluster runs the whole of it, as Karmada does not divide a {resource.kind}"
        if running == copy.replicas:
            return ""
        replicas, old = "replica" if copy.replicas == 1 else "replicas", self._old_generation(status)
        return f"runs {running} instead of {copy.replicas} {replicas}{old and f', by {old}'}"

    def _old_generation(self, status: Manifest) -> str:
        """Return that a cluster has an older generation of the template than others; "" if not, or if that is not known."""
        found = integer_at(status, "resourceTemplateGeneration")
        is_old = found is not None and found < self._template
        return f"generation {found} of the template; others have {self._template}" if is_old else ""


def _failure(status: Manifest) -> str:
    """Return why a workload that ends, such as a Job, has failed; "" if it has not."""
    for condition in mappings(status.get("conditions")):
        if condition.get("type") in {"Failed", "FailureTarget"} and condition.get("status") == "True":
            words = (str(condition.get(name) or "") for name in ("reason", "message"))
            return ": ".join(filter(None, words)) or "Failed"
    return "Failed" if status.get("phase") == "Failed" else ""


def _applied(item: Manifest) -> tuple[Applied, str]:
    """Return whether a Work is applied, and the message of one that is not.

    An item without a message is one about which the member cluster has said nothing yet.
    """
    # While it retries, Karmada writes the message of the member now with and now without this prefix.
    message = _ALL_FAILED.sub("", str(item.get("appliedMessage") or ""))
    if item.get("applied") is True:
        return Applied.YES, ""
    return (Applied.NO, message) if message else (Applied.NOT_REPORTED, "")


def _ready(status: Manifest, resource: ObjectReference) -> int | None:
    ready = integer_at(status, "readyReplicas")
    if ready is not None or not leaves_out_zeros(resource):
        return ready
    return 0 if {"replicas", "unavailableReplicas", "observedGeneration"} & status.keys() else None


def cluster_problem(name: str, cluster: Manifest | None) -> tuple[str, str, str]:
    """Return code, text and message of what is wrong with a cluster; empty for one that is ready, or says nothing."""
    if cluster is None:
        return "ClusterMissing", f"cluster {name} does not exist", ""
    for condition in mappings(mapping(cluster.get("status")).get("conditions")):
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            since = str(condition.get("lastTransitionTime") or "")
            reason = str(condition.get("reason") or condition.get("status") or "")
            text = f"cluster {name} is not ready" + (f" since {since}" if since else "")
            text = f"{text} ({reason})" if reason else text
            return "ClusterNotReady", text, str(condition.get("message") or "")
    return "", "", ""
