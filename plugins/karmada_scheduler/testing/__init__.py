"""Builders of clusters and bindings, and a scheduler in memory, for tests of plugins.

    decision = decide(
        binding("web").replicas(4).dynamic_weight(),
        cluster("m1").region("eu").capacity(cpu=8),
        cluster("m2").taint("dedicated=gpu:NoSchedule"),
    )
    assert placed(decision) == {"m1": 4}

A builder makes a manifest. Its objects are parsed from the manifest, like those of the API server. Methods change
the builder and return it, so tests that share a builder should get it from a function.
``decide`` ends with the decision; ``schedule`` goes on through Reserve, Permit, PreBind, Bind and PostBind. A
``FakeHandle`` takes the place of the scheduler; ``make`` and ``profiles`` make plugins as a configuration file does.
No control plane is needed.
"""

from karmada_scheduler.testing.bindings import BindingBuilder, binding
from karmada_scheduler.testing.clusters import SERVED_APIS, ClusterBuilder, cluster
from karmada_scheduler.testing.decisions import Group, decide, filter_context, placed, score_context, snapshot
from karmada_scheduler.testing.handles import FakeHandle, Recorded
from karmada_scheduler.testing.runs import Circumstances, Run, schedule, scheduling
from karmada_scheduler.testing.setups import framework, gates, make, profiles
from karmada_scheduler.testing.trace import Call, Step

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
