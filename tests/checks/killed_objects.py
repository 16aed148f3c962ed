"""The members whose API server is ended, the workloads on them, and the flags of their control planes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tools.controlplane.members import Node, RealMember
from tools.controlplane.simulated import SimulatedMember
from tools.manifests import DUPLICATED, DYNAMIC, spread, static

Manifest = dict[str, Any]

SPACE: Final = "killed"
LOST: Final = "k1"
"""The member whose API server is ended."""
_TAINT: Final = "example.com/down"
TOLERATED_SECONDS: Final = 20
"""Of the toleration that ends."""
_THRESHOLD: Final = 5
TIMEOUT_SECONDS: Final = 100
"""Of a graceful eviction, where it is shorter than the default of 10 minutes."""
EVICTING: Final = {
    "controller-manager": [f"--cluster-failure-threshold={_THRESHOLD}s"],
    "webhook": ["--allow-no-execute-taint-policy=true"],
}
"""Further flags of a control plane that evicts from lost clusters."""
IMPATIENT: Final = {
    **EVICTING,
    "controller-manager": [
        *EVICTING["controller-manager"],
        f"--graceful-eviction-timeout={TIMEOUT_SECONDS}s",
    ],
}
MANAGER: Final = {
    "kind": "Pod",
    "spec": {
        "containers": [
            {
                "command": [
                    "karmada-controller-manager",
                    "--feature-gates=Failover=true",
                    "--enable-no-execute-taint-eviction=true",
                    "--resource-eviction-rate=1000",
                    *EVICTING["controller-manager"],
                ]
            }
        ]
    },
}
TAINT_POLICY: Final = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "ClusterTaintPolicy",
    "metadata": {"name": "down"},
    "spec": {
        "addOnConditions": [{"conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"]}],
        "removeOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
        "taints": [{"key": _TAINT, "effect": "NoExecute"}],
    },
}


class KilledWorkload(NamedTuple):
    """A Deployment, and further fields of its policy."""

    placement: Manifest
    replicas: int = 4
    cpu: str = "100m"
    policy: Manifest = {}  # noqa: RUF012 (never changed)


def _named(*names: str, **placement: Any) -> Manifest:
    return {"clusterAffinity": {"clusterNames": list(names)}, **placement}


def _tolerating(**toleration: Any) -> Manifest:
    both = _named(LOST, "k3", replicaScheduling=DYNAMIC)
    return {**both, "clusterTolerations": [{"operator": "Exists", **toleration}]}


_DIRECTLY: Final = {"failover": {"cluster": {"purgeMode": "Directly"}}}
_EVERY: Final = ("k1", "k2", "k3", "k4")
_BOTH: Final = _named(LOST, "k3", replicaScheduling=DYNAMIC)
_GOLD: Final = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}
WORKLOADS: Final[Mapping[str, KilledWorkload]] = {
    "wide": KilledWorkload(_named(*_EVERY, replicaScheduling=DYNAMIC), 8),
    "copies": KilledWorkload(_named(LOST, "k3", replicaScheduling=DUPLICATED)),
    "swept": KilledWorkload(
        _named(
            *_EVERY,
            replicaScheduling=DUPLICATED,
            spreadConstraints=[spread("region", 1, 1), spread("cluster", 1, 1)],
        )
    ),
    "alone": KilledWorkload(_named(LOST, replicaScheduling=DYNAMIC)),
    "pair": KilledWorkload({**_BOTH, "spreadConstraints": [spread("cluster", 2, 2)]}),
    "cleared": KilledWorkload({**_GOLD, "replicaScheduling": static({(LOST,): 1, ("k3",): 1})}),
    "short": KilledWorkload(_BOTH, 8, "7"),
    "eternal": KilledWorkload(_tolerating()),
    "later": KilledWorkload(_tolerating(effect="NoExecute", tolerationSeconds=TOLERATED_SECONDS)),
    "blocked": KilledWorkload({**_BOTH, "spreadConstraints": [spread("cluster", 1, 1)]}, policy=_DIRECTLY),
    "purged": KilledWorkload(_BOTH, policy=_DIRECTLY),
    "frozen": KilledWorkload(_BOTH),
}


def members() -> list[RealMember | SimulatedMember]:
    """Return four clusters in two regions; the API servers of three are real."""
    cpus = {"k1": "24", "k2": "32", "k3": "8"}
    pods = {"k1": "110", "k2": "220", "k3": "110"}
    gold = {"tier": "gold"}
    return [
        *(
            RealMember(
                name,
                nodes=(Node(cpu=cpu, pods=pods[name]),) * 2,
                region="south" if name == "k3" else "north",
                labels=gold if name != "k2" else {},
            )
            for name, cpu in cpus.items()
        ),
        SimulatedMember("k4", region="south", cpu="20"),
    ]
