"""The place of one situation: a namespace with a neutral name, and what a user creates there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.e2e.state.plane import MINE, Plane
from tests.e2e.workload import WORK, condition, is_settled, placed
from tools import manifests
from tools.controlplane import Object, SimulatedMember, WaitTimeoutError
from tools.controlplane.karmada import CLUSTERS

DEPLOYMENT: Final = {"apiVersion": "apps/v1", "kind": "Deployment"}


class Scene:
    """One namespace.

    Attributes:
        namespace: Its name.
        clusters: The clusters that belong to this situation alone.
        notes: What ``make`` wants to tell the questions: ``{binding}`` and others.
    """

    def __init__(self, plane: Plane, namespace: str) -> None:
        self.plane = plane
        self.karmada = plane.karmada
        self.client = plane.karmada.client
        self.namespace = namespace
        self.clusters: list[str] = []
        self.notes: dict[str, str] = {"namespace": namespace, "binding": "web-deployment"}

    def open(self, labels: Mapping[str, str]) -> None:
        """Create the namespace."""
        self.client.apply(manifests.namespace(self.namespace, labels=dict(labels)))

    def cluster(self, *, agents: bool = True, **fields: Any) -> str:
        """Add a simulated cluster that no other situation uses, and return its name."""
        name = self.plane.next_city()
        fields = {"provider": "paper", "region": f"r-{name}", "zone": f"r-{name}-1", **fields}
        taints = fields.pop("taints", ())
        of_karmada = any(each["key"].startswith("cluster.karmada.io/") for each in taints)
        if not of_karmada:  # else the harness waits for Karmada to remove them
            fields["taints"] = tuple(taints)
        labels = {"kind": "own", **fields.pop("labels", {})}
        self.karmada.add(SimulatedMember(name, labels=labels, **fields), agents=agents)
        if of_karmada:
            self.taint(name, *taints)
        self.clusters.append(name)
        self.notes.setdefault("cluster", name)
        return name

    def taint(self, cluster: str, *taints: Mapping[str, str]) -> None:
        """Replace the taints of a cluster."""
        self.client.patch(f"{CLUSTERS}/{cluster}", {"spec": {"taints": [dict(each) for each in taints]}})

    def set_ready(self, cluster: str, *, ready: bool) -> None:
        """Report a simulated cluster as ready or not, and wait until Karmada has tainted it or not."""
        path = f"{CLUSTERS}/{cluster}"
        conditions = self.client.get(path)["status"]["conditions"]
        status, reason = ("True", "ClusterReady") if ready else ("False", "ClusterNotReachable")
        changed = [
            {**each, "status": status, "reason": reason, "message": "the API server does not answer"}
            if each["type"] == "Ready"
            else each
            for each in conditions
        ]
        self.client.patch(f"{path}/status", {"status": {"conditions": changed}})
        self.karmada.wait_for(
            lambda: [each["key"] for each in self.client.get(path)["spec"].get("taints") or ()],
            f"Karmada to taint {cluster}",
            until=lambda keys: ("cluster.karmada.io/not-ready" in keys) is not ready,
            timeout=60,
        )

    def deployment(
        self,
        *,
        name: str = "web",
        replicas: int = 4,
        cpu: str | None = "500m",
        requests: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        image: str = "nginx:1.29",
        volumes: object = None,
    ) -> Object:
        """Create a Deployment."""
        made = manifests.deployment(self.namespace, name, replicas, labels=labels)
        made["metadata"]["annotations"] = dict(annotations or {})
        pod = made["spec"]["template"]["spec"]
        container = pod["containers"][0]
        container["image"] = image
        wanted = {**({"cpu": cpu, "memory": "64Mi"} if cpu else {}), **(requests or {})}
        limits = {key: value for key, value in wanted.items() if "/" in key}
        container["resources"] = (
            {"requests": wanted, **({"limits": limits} if limits else {})} if wanted else {}
        )
        if volumes:
            pod["volumes"] = volumes
        return self.client.create(made)

    def policy(
        self,
        placement: Mapping[str, Any],
        *,
        name: str = "web",
        selector: Mapping[str, Any] | None = None,
        scheduler: str | None = MINE,
        **spec: Any,
    ) -> Object:
        """Create or replace a PropagationPolicy, by default for the Deployment web."""
        chosen = {"name": "web"} if selector is None else selector
        made = manifests.policy(self.namespace, name, placement, scheduler=scheduler, selector=chosen, **spec)
        return self.client.apply(made)

    def web(self, placement: Mapping[str, Any], *, scheduler: str | None = MINE, **fields: Any) -> None:
        """Create the policy and the Deployment web."""
        self.policy(placement, scheduler=scheduler)
        self.deployment(**fields)

    def web_applied(self, placement: Mapping[str, Any], **fields: Any) -> None:
        """Create the policy and the Deployment web, and wait until its clusters have reported it as healthy."""
        self.web(placement, **fields)
        self.wait_applied()

    def scale(self, replicas: int, *, name: str = "web") -> None:
        """Scale a Deployment."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}"
        self.client.patch(path, {"spec": {"replicas": replicas}})

    def path(self, name: str = "web-deployment") -> str:
        """Return the path of a binding."""
        return f"{WORK}/namespaces/{self.namespace}/resourcebindings/{name}"

    def binding(self, name: str = "web-deployment") -> Object:
        """Return a binding."""
        return self.client.get(self.path(name))

    def wait(
        self,
        until: Callable[[Object], object],
        what: str,
        *,
        name: str = "web-deployment",
        timeout: float = 45,
    ) -> Object:
        """Wait for a state of a binding and return it."""
        last: list[Object] = []

        def look() -> Object:
            last[:] = [self.binding(name)]
            return last[0]

        described = f"{self.namespace}/{name}: {what}"
        try:
            return self.karmada.wait_for(look, described, until=until, timeout=timeout)
        except WaitTimeoutError as error:
            if not last:
                raise
            spec, status = last[0]["spec"], last[0].get("status") or {}
            shown = {
                "clusters": spec.get("clusters"),
                "conditions": [
                    (each["type"], each["reason"], each["message"]) for each in status.get("conditions") or ()
                ],
                "reports": status.get("aggregatedStatus"),
            }
            raise WaitTimeoutError(f"waited {timeout:g} s for {described}; last seen: {shown}") from error

    def wait_refused(self, reason: str, *, name: str = "web-deployment") -> Object:
        """Wait until the condition Scheduled is False with a reason, for the binding as it is."""
        return self.wait(
            lambda found: condition(found).get("reason") == reason, f"refused: {reason}", name=name
        )

    def wait_placed(
        self, expected: Mapping[str, int] | None = None, *, name: str = "web-deployment"
    ) -> Object:
        """Wait until the scheduler has placed a binding (exactly so)."""
        return self.wait(
            lambda found: is_settled(found) and (expected is None or placed(found) == expected),
            f"placed on {expected}",
            name=name,
        )

    def wait_applied(self, *, name: str = "web-deployment", healthy: bool = True) -> Object:
        """Wait until every cluster of a placed binding has reported it as applied, and healthy."""

        def is_reported(found: Object) -> bool:
            reports = found.get("status", {}).get("aggregatedStatus") or ()
            good = {
                each["clusterName"]
                for each in reports
                if each.get("applied") and (not healthy or each.get("health") == "Healthy")
            }
            return is_settled(found) and good >= placed(found).keys()

        return self.wait(is_reported, "applied and healthy", name=name)

    def patch_binding(self, spec: Object, *, name: str = "web-deployment") -> None:
        """Merge into the spec of a binding."""
        self.client.patch(self.path(name), {"spec": spec})

    def wait_binding(self, *, name: str = "web-deployment") -> Object:
        """Wait until a binding exists."""
        return self.wait(bool, "to exist", name=name)
