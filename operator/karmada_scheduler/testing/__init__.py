"""Clusters and bindings in a line each, for tests and for authors of plugins.

    decision = decide(
        binding("web").replicas(4).dynamic_weight(),
        cluster("m1").region("eu").room(cpu=8),
        cluster("m2").taint("dedicated=gpu:NoSchedule"),
    )
    assert placed(decision) == {"m1": 4}

A builder makes a manifest, and what it builds went through the same parser as what the API server sends. What
is said to a builder changes it, so one that several tests share is best made by a function.
``decide`` ends with the decision; ``schedule`` goes on through Reserve, Permit, PreBind, Bind and PostBind. A
``FakeHandle`` stands for the scheduler; ``make`` and ``profiles`` make plugins as a configuration file would.
No control plane is needed for any of this.
"""

from karmada_scheduler.testing.bindings import BindingBuilder, binding
from karmada_scheduler.testing.clusters import SERVED_APIS, ClusterBuilder, cluster
from karmada_scheduler.testing.decisions import Group, decide, filter_context, placed, score_context, snapshot
from karmada_scheduler.testing.handles import FakeHandle, Recorded
from karmada_scheduler.testing.runs import Circumstances, Run, schedule, scheduling
from karmada_scheduler.testing.setups import framework, gates, make, profiles
from karmada_scheduler.testing.story import Call, Step

__all__ = [
    "SERVED_APIS",
    "BindingBuilder",
    "Call",
    "Circumstances",
    "ClusterBuilder",
    "FakeHandle",
    "Group",
    "Recorded",
    "Run",
    "Step",
    "binding",
    "cluster",
    "decide",
    "filter_context",
    "framework",
    "gates",
    "make",
    "placed",
    "profiles",
    "schedule",
    "scheduling",
    "score_context",
    "snapshot",
]
