"""A fixed live set on the fake API server, and everybody but the scheduler who writes to it, much faster than Karmada can.

Names of deleted objects never come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fake_apiserver import FakeApiServer, status
from tests.fake_apiserver.objects import POLICY_ID, binding, cluster, policy
from tools.controlplane import Object
from tools.oracle.generator.rng import Random
from tools.placements import LABELS, PROVIDERS, REGIONS, placement

SCHEDULER: Final = "my-scheduler"
OTHER: Final = "default-scheduler"
CLUSTER_POLICY_ID: Final = "clusterpropagationpolicy.karmada.io/permanent-id"
_CLUSTER_SCOPED, _FOREIGN, _IMPOSSIBLE = 20, 5, 100
"""One of so many policies is a ClusterPropagationPolicy, one names another scheduler; one of so many bindings fits nowhere."""

WEIGHTS: Final = {
    "report_cluster": 50_000,
    "report_status": 20_000,
    "replace_foreign": 6000,
    "scale_binding": 1500,
    "replace_binding": 1200,
    "change_placement": 30,
    "replace_policy": 20,
    "replace_cluster": 20,
}
"""How often each change is made, compared with the others. A day of 100 clusters that report every 10 s has 864,000 reports."""

FAULTS: Final[Mapping[str, int]] = {"cut": 15_000, "expire": 70_000, "refuse": 4000}
"""Events between two faults of a kind: watches end; they end and cannot be continued (410); writes are refused."""


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
        """The kind of the bindings."""
        return "ResourceBinding" if self.namespace else "ClusterResourceBinding"


class Churn:
    """The live set.

    Attributes:
        faults: The number of faults by name.
    """

    def __init__(
        self, server: FakeApiServer, *, clusters: int, bindings: int, policies: int, seed: int
    ) -> None:
        """Store the live set."""
        self.faults: Counter[str] = Counter()
        self._server, self._random, self._made = server, Random(seed), 0
        self._clusters: list[str] = []
        self._due = dict.fromkeys(FAULTS, 0)
        for _ in range(clusters):
            self._join()
        self._policies = [
            self._make_policy(
                bindings // policies,
                OTHER if number % _FOREIGN == 0 else SCHEDULER,
                is_cluster_scoped=number % _CLUSTER_SCOPED == 1,
            )
            for number in range(policies)
        ]
        self._choices = self._chosen()

    def change(self) -> None:
        """Make one change."""
        getattr(self, f"_{next(self._choices)}")()

    def inject(self, events: int) -> None:
        """Let the faults happen that are due after some events."""
        for name, every in FAULTS.items():
            if events // every > self._due[name]:
                self._due[name] = events // every
                self.faults[name] += 1
                getattr(self, f"_{name}")()

    def unsettled(self) -> list[str]:
        """Return the names of the bindings without a condition, or with a decision about an older spec."""
        return [
            found["metadata"]["name"]
            for kind in ("ResourceBinding", "ClusterResourceBinding")
            for found in self._server.all(kind)
            if found["spec"]["schedulerName"] == SCHEDULER and not _is_settled(found)
        ]

    def _cut(self) -> None:
        kinds = ("Cluster", "ResourceBinding", "PropagationPolicy", None)
        self._server.end_watches(self._random.choice(kinds))

    def _expire(self) -> None:
        with self._server.lock:
            self._server.model.compact(self._server.version)
            self._server.end_watches()

    def _refuse(self) -> None:
        self._server.heal()
        refusal = status(503, "ServiceUnavailable")
        self._server.fault(method="PATCH", path="bindings", times=3, answer=refusal)
        self._server.fault(method="PATCH", path="bindings", times=1, drop=True, carried_out=True)

    def _chosen(self) -> Iterator[str]:
        while True:
            yield from self._random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=1000)

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _join(self) -> None:
        number, random = self._number(), self._random
        self._clusters.append(f"member-{number}")
        found = cluster(
            f"member-{number}",
            labels={"member": f"label-{number}", **{key: random.choice(LABELS[key]) for key in LABELS}},
            region=REGIONS[number % len(REGIONS)],
            cpu=str(random.randint(800, 4000)),
            memory=f"{random.randint(2000, 9000)}Gi",
            pods="20000",
        )
        found["spec"]["provider"] = random.choice(PROVIDERS)
        self._server.put(found)

    def _report_cluster(self) -> None:
        allocated = {
            "cpu": f"{self._random.randrange(400_000)}m",
            "memory": f"{self._random.randrange(1 << 30)}Ki",
            "pods": str(self._random.randrange(2000)),
        }
        self._server.change(
            "Cluster",
            self._random.choice(self._clusters),
            lambda found: found["status"]["resourceSummary"].update(allocated=allocated),
        )

    def _replace_cluster(self) -> None:
        self._server.delete("Cluster", self._clusters.pop(self._random.randrange(len(self._clusters))))
        self._join()

    def _own_placement(self) -> Object:
        """Return a placement whose content no other one has: a toleration of a value of its own."""
        found = placement(self._random, self._random.sample(self._clusters, 10))
        own = {"key": "soak", "operator": "Equal", "value": f"v{self._number()}"}
        return {**found, "clusterTolerations": [*found.get("clusterTolerations", ()), own]}

    def _make_policy(self, bindings: int, scheduler: str, *, is_cluster_scoped: bool) -> Owner:
        number = self._number()
        namespace = "" if is_cluster_scoped else f"team-{number}"
        owner = Owner(f"policy-{number}", namespace, self._own_placement(), scheduler)
        self._put_policy(owner)
        for _ in range(bindings):
            self._make_binding(owner)
        return owner

    def _put_policy(self, owner: Owner) -> None:
        self._put(policy(owner.name, namespace=owner.namespace, placement=owner.placement), owner)

    def _put(self, found: Object, owner: Owner) -> None:
        """Store an object with the kind and the label of its policy's scope."""
        label = POLICY_ID
        if not owner.namespace:
            del found["metadata"]["namespace"]
            label, found["kind"] = CLUSTER_POLICY_ID, f"Cluster{found['kind']}"
        labels = found["metadata"].setdefault("labels", {})
        labels.pop(POLICY_ID, None)
        labels[label] = f"id-{owner.name}"
        self._server.put(found)

    def _make_binding(self, owner: Owner) -> None:
        number, random, is_foreign = self._number(), self._random, owner.scheduler != SCHEDULER
        name = f"app-{number}"
        owner.bindings.append(name)
        chosen = owner.placement
        if number % _IMPOSSIBLE == 0:
            chosen = {"clusterAffinity": {"labelSelector": {"matchLabels": {"nobody": f"n{number}"}}}}
        elif number % 4 == 0 or is_foreign:
            chosen = self._own_placement()
        targets = {name: random.randint(1, 300) for name in random.sample(self._clusters, 5)}
        found = binding(
            name,
            namespace=owner.namespace or "none",
            replicas=random.randint(1, 600),
            placement=chosen,
            clusters=targets if is_foreign else None,
            requests={"cpu": f"{random.randint(1, 200)}m", "memory": f"{random.randint(1, 4000)}Mi"},
            scheduler=owner.scheduler,
            labels={"app": name, "build": f"build-{number}", "owner": f"owner-{number}"},
        )
        found["metadata"]["annotations"] = {"soak": f"note-{number}"}
        self._put(found, owner)

    def _change_binding(self, change: Callable[[Object], Any]) -> None:
        owner = self._random.choice(self._policies)
        self._server.change(owner.kind, self._random.choice(owner.bindings), change, owner.namespace)

    def _scale_binding(self) -> None:
        replicas = self._random.randint(1, 600)
        self._change_binding(lambda found: found["spec"].update(replicas=replicas))

    def _report_status(self) -> None:
        def report(found: Object) -> None:
            found.setdefault("status", {})["aggregatedStatus"] = [
                {
                    "clusterName": target["name"],
                    "applied": True,
                    "health": self._random.choice(("Healthy", "Unhealthy", "Unknown")),
                    "status": {"readyReplicas": self._random.randint(0, 600)},
                }
                for target in found["spec"].get("clusters") or ()
            ]

        self._change_binding(report)

    def _replace_binding(self, *, is_foreign: bool = False) -> None:
        schedulers = {OTHER} if is_foreign else {SCHEDULER, OTHER}
        owner = self._random.choice([found for found in self._policies if found.scheduler in schedulers])
        self._delete_binding(owner, self._random.choice(owner.bindings))
        self._make_binding(owner)

    def _replace_foreign(self) -> None:
        self._replace_binding(is_foreign=True)

    def _delete_binding(self, owner: Owner, name: str) -> None:
        owner.bindings.remove(name)
        self._server.delete(owner.kind, name, owner.namespace)

    def _change_placement(self) -> None:
        owner = self._random.choice(self._policies)
        owner.placement = self._own_placement()
        self._put_policy(owner)
        for name in owner.bindings:
            self._server.change(
                owner.kind,
                name,
                lambda found: found["spec"].update(placement=owner.placement),
                owner.namespace,
            )

    def _replace_policy(self) -> None:
        owner = self._policies.pop(self._random.randrange(len(self._policies)))
        count = len(owner.bindings)
        for name in list(owner.bindings):
            self._delete_binding(owner, name)
        kind = "PropagationPolicy" if owner.namespace else "ClusterPropagationPolicy"
        self._server.delete(kind, owner.name, owner.namespace)
        self._policies.append(
            self._make_policy(count, owner.scheduler, is_cluster_scoped=not owner.namespace)
        )


def _is_settled(found: Object) -> bool:
    stored = found.get("status") or {}
    condition = next((each for each in stored.get("conditions") or () if each["type"] == "Scheduled"), None)
    if condition is None:
        return False
    is_observed = stored.get("schedulerObservedGeneration") == found["metadata"]["generation"]
    return condition["status"] != "True" or bool(is_observed)
