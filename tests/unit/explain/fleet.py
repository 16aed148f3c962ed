"""The fleet of docs/explain.md: eight clusters, of which three refuse most bindings."""

from __future__ import annotations

from typing import Any

from karmada_scheduler.core.condition import SUCCESS_MESSAGE
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster

FREE_CPU = {
    "ap-south-1": 6,
    "eu-north-1": 5.5,
    "eu-west-1": 18,
    "eu-west-2": 12,
    "us-east-1": 22,
    "staging-1": 100,
    "us-east-2": 40,
    "edge-7": 9,
}
SCHEDULED = "2026-11-22T10:00:00Z"
CORDON = "cluster.karmada.io/unschedulable:NoSchedule"


def fleet() -> list[ClusterBuilder]:
    """Return the clusters."""
    return [_cluster(name, free) for name, free in FREE_CPU.items()]


def _cluster(name: str, free: float) -> ClusterBuilder:
    made = cluster(name).capacity(cpu=free, memory="1000Gi", pods=1000)
    made.labels(tier="staging" if name == "staging-1" else "prod")
    if name != "edge-7":
        made.region(name.rpartition("-")[0])
    if name == "us-east-2":
        made.taint(CORDON)
    return made


def checkout() -> BindingBuilder:
    """Return the binding that is placed: two regions, of which three tie."""
    made = binding("checkout", namespace="shop").replicas(24, cpu="500m", memory="1Gi").dynamic_weight()
    made.affinity(labelSelector={"matchLabels": {"tier": "prod"}})
    made.spread("region", 2, 2).spread("cluster", 2, 3)
    return _claimed(made, "PropagationPolicy", "shop", "checkout")


def placed_checkout() -> BindingBuilder:
    """Return it as it is stored after its first decision, applied and ready everywhere."""
    placement = {"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8}
    made = checkout().on(**placement).applied().last_scheduled(SCHEDULED).observed_generation(1)
    made.condition(type="Scheduled", status="True", reason="Success", message=SUCCESS_MESSAGE)
    made.manifest()["status"]["aggregatedStatus"] = [
        {"clusterName": name, "applied": True, "health": "Healthy", "status": {"readyReplicas": count}}
        for name, count in placement.items()
    ]
    return made


def failed_billing() -> BindingBuilder:
    """Return it as it is stored after its first decision, which failed."""
    message = (
        "0/8 clusters are available: 1 cluster(s) did not have region property, 1 cluster(s) had untolerated taint "
        "{cluster.karmada.io/unschedulable: }, 6 cluster(s) did not match the placement cluster affinity constraint."
    )
    return billing().condition(
        type="Scheduled",
        status="False",
        reason="NoClusterFit",
        message=message,
        lastTransitionTime=SCHEDULED,
    )


def billing() -> BindingBuilder:
    """Return the binding that fits nowhere: one of its names does not exist, the others are refused."""
    made = binding("billing", namespace="pay").replicas(6, cpu="250m", memory="512Mi").dynamic_weight()
    made.names("us-east-2", "edge-7", "us-west-1").spread("region", 1, 1)
    return _claimed(made, "PropagationPolicy", "pay", "billing")


def _claimed(made: BindingBuilder, kind: str, namespace: str, name: str) -> BindingBuilder:
    prefix = f"{kind.lower()}.karmada.io"
    return made.annotation(f"{prefix}/namespace", namespace).annotation(f"{prefix}/name", name)


def manifests(*builders: BindingBuilder | ClusterBuilder) -> list[dict[str, Any]]:
    """Return what the API server would send."""
    return [each.manifest() for each in builders]
