"""Clusters and bindings in a line each, for tests and for authors of plugins.

    decision = decide(
        binding("web").replicas(4).dynamic_weight(),
        cluster("m1").region("eu").room(cpu=8),
        cluster("m2").taint("dedicated=gpu:NoSchedule"),
    )
    assert placed(decision) == {"m1": 4}

A builder makes a manifest, and what it builds went through the same parser as what the API server sends.
No control plane is needed for any of this.
"""

from karmada_scheduler.testing.bindings import BindingBuilder, binding
from karmada_scheduler.testing.clusters import SERVED_APIS, ClusterBuilder, cluster
from karmada_scheduler.testing.decisions import (
    Group,
    decide,
    filter_context,
    framework,
    gates,
    placed,
    score_context,
    snapshot,
)

__all__ = [
    "SERVED_APIS",
    "BindingBuilder",
    "ClusterBuilder",
    "Group",
    "binding",
    "cluster",
    "decide",
    "filter_context",
    "framework",
    "gates",
    "placed",
    "score_context",
    "snapshot",
]
