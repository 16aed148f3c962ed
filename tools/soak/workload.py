"""A fixed live set, and everybody but the scheduler who writes to it. Names of deleted objects never come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fake_apiserver.objects import POLICY_ID, binding, cluster, policy
from tools.oracle.generator.rng import Random
from tools.placements import LABELS, PROVIDERS, REGIONS, placement
from tools.soak.server import SoakServer

Object = dict[str, Any]

CLUSTER_POLICY_ID: Final = "clusterpropagationpolicy.karmada.io/permanent-id"
_CLUSTER_SCOPED: Final = 20
"""One of so many policies is a ClusterPropagationPolicy with ClusterResourceBindings."""

_SCHEDULER: Final = "my-scheduler"
_FOREIGN: Final = 5
"""One of so many policies names another scheduler: this one watches its bindings and decides nothing about them."""

_IMPOSSIBLE: Final = 100
"""One of so many bindings fits no cluster."""

WEIGHTS: Final = {
    "report a cluster": 50_000,
    "report a status": 20_000,
    "replace a foreign": 6000,
    "scale a binding": 1500,
    "replace a binding": 1200,
    "change a placement": 30,
    "replace a policy": 20,
    "replace a cluster": 20,
}
"""How often each change is made, compared with the others. A day of 100 clusters that report every 10 s has 864,000
reports."""


@dataclass(slots=True)
class Owner:
    """A policy and the names of its bindings."""

    name: str
    namespace: str
    placement: Object
    scheduler: str
    bindings: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "ResourceBinding" if self.namespace else "ClusterResourceBinding"


class Workload:
    """The live set.

    Attributes:
        made: The number of objects made so far.
        changes: The number of changes by name.
    """

    def __init__(self, server: SoakServer, *, clusters: int, bindings: int, policies: int, seed: int) -> None:
        """Store the live set."""
        self.made = 0
        self.changes = dict.fromkeys(WEIGHTS, 0)
        self._server = server
        self._dice = Random(seed)
        self._clusters: list[str] = []
        for _ in range(clusters):
            self._join()
        self._policies = [
            self._make_policy(
                bindings // policies,
                "default-scheduler" if number % _FOREIGN == 0 else _SCHEDULER,
                is_cluster_scoped=number % _CLUSTER_SCOPED == 1,
            )
            for number in range(policies)
        ]
        self._choices = self._chosen()

    def change(self) -> None:
        """Make one change."""
        name = next(self._choices)
        self.changes[name] += 1
        getattr(self, "_" + name.replace(" a ", "_"))()

    def unsettled(self) -> list[str]:
        """Return the names of the bindings without a condition, or with a decision about an older spec."""
        found = []
        for kind in ("ResourceBinding", "ClusterResourceBinding"):
            for each in self._server.all(kind):
                if each["spec"]["schedulerName"] != _SCHEDULER:
                    continue
                status = each.get("status") or {}
                condition = next(
                    (c for c in status.get("conditions") or [] if c["type"] == "Scheduled"), None
                )
                observed = status.get("schedulerObservedGeneration")
                if condition is None or (
                    condition["status"] == "True" and observed != each["metadata"]["generation"]
                ):
                    found.append(each["metadata"]["name"])
        return found

    def _chosen(self) -> Iterator[str]:
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        while True:
            yield from self._dice.choices(names, weights, k=1000)

    def _number(self) -> int:
        self.made += 1
        return self.made

    def _join(self) -> None:
        number, dice = self._number(), self._dice
        name = f"member-{number}"
        self._clusters.append(name)
        found = cluster(
            name,
            labels={
                "member": f"label-{number}",
                **{key: dice.choice(values) for key, values in LABELS.items()},
            },
            region=REGIONS[number % len(REGIONS)],
            cpu=str(dice.randint(800, 4000)),
            memory=f"{dice.randint(2000, 9000)}Gi",
            pods="20000",
        )
        found["spec"]["provider"] = dice.choice(PROVIDERS)
        self._server.put(found)

    def _report_cluster(self) -> None:
        dice = self._dice

        def report(found: Object) -> None:
            found["status"]["resourceSummary"]["allocated"] = {
                "cpu": f"{dice.randrange(400_000)}m",
                "memory": f"{dice.randrange(1 << 30)}Ki",
                "pods": str(dice.randrange(2000)),
            }

        self._server.change("Cluster", dice.choice(self._clusters), report)

    def _replace_cluster(self) -> None:
        gone = self._clusters.pop(self._dice.randrange(len(self._clusters)))
        self._server.delete("Cluster", gone)
        self._join()

    def _placement(self, number: int) -> Object:
        """Return a placement whose content no other one has: a toleration of a value of its own."""
        found = placement(self._dice, self._dice.sample(self._clusters, 10))
        own = {"key": "soak", "operator": "Equal", "value": f"v{number}"}
        return {**found, "clusterTolerations": [*found.get("clusterTolerations", ()), own]}

    def _make_policy(self, bindings: int, scheduler: str, *, is_cluster_scoped: bool) -> Owner:
        number = self._number()
        namespace = "" if is_cluster_scoped else f"team-{number}"
        place = self._placement(number)
        made = Owner(f"policy-{number}", namespace, place, scheduler)
        self._put_policy(made)
        for _ in range(bindings):
            self._make_binding(made)
        return made

    def _put_policy(self, owner: Owner) -> None:
        found = policy(owner.name, namespace=owner.namespace, placement=owner.placement)
        self._server.put(self._of_scope(found, owner, "PropagationPolicy"))

    def _of_scope(self, found: Object, owner: Owner, kind: str) -> Object:
        """Give an object the kind and the label of its policy's scope."""
        metadata = found["metadata"]
        label, found["kind"] = POLICY_ID, kind
        if not owner.namespace:
            del metadata["namespace"]
            label, found["kind"] = CLUSTER_POLICY_ID, f"Cluster{kind}"
        metadata.setdefault("labels", {}).pop(POLICY_ID, None)
        metadata["labels"][label] = f"id-{owner.name}"
        return found

    def _make_binding(self, owner: Owner) -> None:
        number, dice = self._number(), self._dice
        name = f"app-{number}"
        owner.bindings.append(name)
        place = owner.placement
        if number % _IMPOSSIBLE == 0:
            place = {"clusterAffinity": {"labelSelector": {"matchLabels": {"nobody": f"n{number}"}}}}
        elif number % 4 == 0 or owner.scheduler != _SCHEDULER:
            place = self._placement(number)
        found = binding(
            name,
            namespace=owner.namespace or "none",
            replicas=dice.randint(1, 600),
            placement=place,
            clusters=self._somewhere() if owner.scheduler != _SCHEDULER else None,
            requests={"cpu": f"{dice.randint(1, 200)}m", "memory": f"{dice.randint(1, 4000)}Mi"},
            scheduler=owner.scheduler,
            labels={"app": name, "build": f"build-{number}", "owner": f"owner-{number}"},
        )
        found["metadata"]["annotations"] = {"soak": f"note-{number}"}
        self._server.put(self._of_scope(found, owner, "ResourceBinding"))

    def _somewhere(self) -> dict[str, int]:
        return {name: self._dice.randint(1, 300) for name in self._dice.sample(self._clusters, 5)}

    def _any_binding(self) -> tuple[Owner, str]:
        owner = self._dice.choice(self._policies)
        return owner, self._dice.choice(owner.bindings)

    def _change_binding(self, owner: Owner, name: str, change: Any) -> None:
        self._server.change(owner.kind, name, change, owner.namespace)

    def _scale_binding(self) -> None:
        replicas = self._dice.randint(1, 600)
        self._change_binding(*self._any_binding(), lambda found: found["spec"].update(replicas=replicas))

    def _report_status(self) -> None:
        dice = self._dice

        def report(found: Object) -> None:
            found.setdefault("status", {})["aggregatedStatus"] = [
                {
                    "clusterName": each["name"],
                    "applied": True,
                    "health": dice.choice(("Healthy", "Unhealthy", "Unknown")),
                    "status": {"readyReplicas": dice.randint(0, 600), "replicas": each.get("replicas", 0)},
                }
                for each in found["spec"].get("clusters") or ()
            ]

        self._change_binding(*self._any_binding(), report)

    def _replace_binding(self) -> None:
        self._replace_one(self._any_binding())

    def _replace_foreign(self) -> None:
        owner = self._dice.choice([each for each in self._policies if each.scheduler != _SCHEDULER])
        self._replace_one((owner, self._dice.choice(owner.bindings)))

    def _replace_one(self, chosen: tuple[Owner, str]) -> None:
        owner, name = chosen
        self._delete_binding(owner, name)
        self._make_binding(owner)

    def _delete_binding(self, owner: Owner, name: str) -> None:
        owner.bindings.remove(name)
        self._server.delete(owner.kind, name, owner.namespace)

    def _change_placement(self) -> None:
        owner = self._dice.choice(self._policies)
        owner.placement = self._placement(self._number())
        self._put_policy(owner)
        for name in owner.bindings:
            self._change_binding(owner, name, lambda found: found["spec"].update(placement=owner.placement))

    def _replace_policy(self) -> None:
        owner = self._policies.pop(self._dice.randrange(len(self._policies)))
        count = len(owner.bindings)
        for name in list(owner.bindings):
            self._delete_binding(owner, name)
        kind = "PropagationPolicy" if owner.namespace else "ClusterPropagationPolicy"
        self._server.delete(kind, owner.name, owner.namespace)
        is_cluster_scoped = not owner.namespace
        self._policies.append(self._make_policy(count, owner.scheduler, is_cluster_scoped=is_cluster_scoped))
