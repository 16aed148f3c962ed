"""A Deployment with its policy on the control plane, and its binding."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools import manifests
from tools.controlplane import ControlPlane, Object

WORK = "/apis/work.karmada.io/v1alpha2"
DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
DUPLICATED = {"replicaSchedulingType": "Duplicated"}


def named(*clusters: str, **rest: Any) -> Object:
    """A placement on clusters by name; ``rest`` are further fields of it."""
    return {"clusterAffinity": {"clusterNames": list(clusters)}, **rest}


def labelled(kind: str, **rest: Any) -> Object:
    """A placement on clusters by their label ``kind``: real or sim."""
    return {"clusterAffinity": {"labelSelector": {"matchLabels": {"kind": kind}}}, **rest}


@dataclass
class Workload:
    """One Deployment ``name`` in a namespace and the policy of the same name."""

    plane: ControlPlane
    namespace: str
    name: str = "web"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def binding_path(self) -> str:
        return f"{WORK}/namespaces/{self.namespace}/resourcebindings/{self.name}-deployment"

    @property
    def deployment_path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"

    @property
    def policy_path(self) -> str:
        return f"/apis/policy.karmada.io/v1alpha1/namespaces/{self.namespace}/propagationpolicies/{self.name}"

    def create(
        self,
        placement: Mapping[str, Any],
        *,
        replicas: int = 4,
        scheduler: str | None = "my-scheduler",
        cpu: str = "500m",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **policy: Any,
    ) -> Workload:
        """Apply the policy and the Deployment; ``labels`` are further ones of it, and ``annotations`` all."""
        self.apply_policy(placement, scheduler=scheduler, **policy)
        manifest = manifests.deployment(self.namespace, self.name, replicas, cpu=cpu, labels=labels)
        if annotations:
            manifest["metadata"]["annotations"] = dict(annotations)
        self.plane.client.create(manifest)
        return self

    def apply_policy(
        self, placement: Mapping[str, Any], *, scheduler: str | None = "my-scheduler", **fields: Any
    ) -> None:
        """Create the policy or replace its placement; ``fields`` are further ones of its spec."""
        self.plane.client.apply(
            manifests.policy(self.namespace, self.name, placement, scheduler=scheduler, **fields)
        )

    def scale(self, replicas: int) -> None:
        self.plane.client.patch(self.deployment_path, {"spec": {"replicas": replicas}})

    def rebalance(self) -> None:
        """Create a WorkloadRebalancer that is newer than the last scheduling, whose time has whole seconds."""
        last = self.binding()["status"]["lastScheduledTime"]
        self.plane.wait_for(
            lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > last, "a later second"
        )
        target = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": self.namespace,
            "name": self.name,
        }
        self.plane.client.create(
            {
                "apiVersion": "apps.karmada.io/v1alpha1",
                "kind": "WorkloadRebalancer",
                "metadata": {"name": f"{self.namespace}-{self.name}"},
                "spec": {"workloads": [target]},
            }
        )

    def delete(self) -> None:
        """Delete the policy and the Deployment, and wait until the binding is gone."""
        for path in (self.policy_path, self.deployment_path):
            self.plane.client.delete(path)
        self.plane.wait_for(
            lambda: self.plane.client.find(self.binding_path),
            f"no binding of {self.key}",
            until=lambda found: found is None,
        )

    def binding(self) -> Object:
        return self.plane.client.get(self.binding_path)

    def placed(self) -> dict[str, int]:
        """Cluster name to replicas, as the binding has them now."""
        return placed(self.binding())

    def scheduled(self) -> Object:
        """The Scheduled condition, {} before there is one."""
        return condition(self.binding())

    def wait(self, until: Callable[[Object], object], what: str, *, timeout: float = 20.0) -> Object:
        """Wait for a state of the binding and return it."""
        found: Object = self.plane.wait_for(
            self.binding, f"{self.name} in {self.namespace}: {what}", until=until, timeout=timeout
        )
        return found

    def wait_placed(self, expected: Mapping[str, int], *, timeout: float = 20.0) -> Object:
        """Wait until the binding is settled on exactly these clusters and replicas."""
        return self.wait(
            lambda found: placed(found) == expected and is_settled(found), f"on {expected}", timeout=timeout
        )

    def wait_settled(self, *, replicas: int, timeout: float = 20.0) -> dict[str, int]:
        """Wait until the binding is scheduled for a number of replicas, and return where it is."""
        found = self.wait(
            lambda found: found["spec"].get("replicas", 0) == replicas and is_settled(found),
            f"scheduled with {replicas} replicas",
            timeout=timeout,
        )
        return placed(found)

    def events(self, reason: str | None = None) -> list[Object]:
        """The Events about the binding."""
        listed = self.plane.client.list(f"/api/v1/namespaces/{self.namespace}/events")
        about = ("ResourceBinding", f"{self.name}-deployment")
        return [
            event
            for event in listed
            if (event["involvedObject"].get("kind"), event["involvedObject"].get("name")) == about
            and reason in (None, event["reason"])
        ]

    def wait_event_from(self, scheduler: str) -> None:
        """Wait until the success event comes from that scheduler alone."""
        self.plane.wait_for(
            lambda: {event["source"]["component"] for event in self.events("ScheduleBindingSucceed")},
            f"the event of {scheduler} about {self.name}",
            until=lambda sources: sources == {scheduler},
        )

    def wait_ready_in(self, member: str, replicas: int) -> None:
        """Wait until a real member's API server reports that many ready replicas."""
        self.plane.wait_for(
            lambda: (self.in_member(member) or {}).get("status", {}).get("readyReplicas"),
            f"{replicas} ready replicas of {self.name} in {member}",
            until=lambda ready: ready == replicas,
        )

    def in_member(self, member: str) -> Object | None:
        """The Deployment as a real member's API server has it."""
        return self.plane.members[member].client.find(self.deployment_path)


def placed(binding: Object) -> dict[str, int]:
    """Cluster name to replicas of a binding's manifest."""
    return {target["name"]: target.get("replicas", 0) for target in binding["spec"].get("clusters") or ()}


def tasks(binding: Object) -> list[Object]:
    """The graceful eviction tasks of a binding's manifest."""
    found: list[Object] = binding["spec"].get("gracefulEvictionTasks") or []
    return found


def is_reported(binding: Object, cluster: str) -> bool:
    """Whether the status of a binding has a healthy workload on a cluster."""
    items = binding.get("status", {}).get("aggregatedStatus") or []
    return any(each["clusterName"] == cluster and each.get("health") == "Healthy" for each in items)


def running(binding: Object, cluster: str) -> int | None:
    """Return how many replicas a cluster has reported; None if it has not."""
    reports = binding.get("status", {}).get("aggregatedStatus") or ()
    statuses = (report.get("status") or {} for report in reports if report["clusterName"] == cluster)
    return next((status.get("replicas") for status in statuses), None)


def condition(binding: Object, kind: str = "Scheduled") -> Object:
    """One condition of a binding's manifest, {} if it has none of the kind."""
    for entry in binding.get("status", {}).get("conditions") or ():
        if entry["type"] == kind:
            found: Object = entry
            return found
    return {}


def is_settled(binding: Object) -> bool:
    """Whether the scheduler agrees with the binding as it is."""
    observed = binding.get("status", {}).get("schedulerObservedGeneration")
    return bool(observed == binding["metadata"]["generation"] and condition(binding).get("status") == "True")
