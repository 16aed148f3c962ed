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

from karmada_scheduler.testing.bindings import BindingBuilder as BindingBuilder
from karmada_scheduler.testing.bindings import binding as binding
from karmada_scheduler.testing.clusters import SERVED_APIS as SERVED_APIS
from karmada_scheduler.testing.clusters import ClusterBuilder as ClusterBuilder
from karmada_scheduler.testing.clusters import cluster as cluster
from karmada_scheduler.testing.decisions import Group as Group
from karmada_scheduler.testing.decisions import decide as decide
from karmada_scheduler.testing.decisions import filter_context as filter_context
from karmada_scheduler.testing.decisions import placed as placed
from karmada_scheduler.testing.decisions import score_context as score_context
from karmada_scheduler.testing.decisions import snapshot as snapshot
from karmada_scheduler.testing.handles import FakeHandle as FakeHandle
from karmada_scheduler.testing.handles import Recorded as Recorded
from karmada_scheduler.testing.runs import Circumstances as Circumstances
from karmada_scheduler.testing.runs import Run as Run
from karmada_scheduler.testing.runs import schedule as schedule
from karmada_scheduler.testing.runs import scheduling as scheduling
from karmada_scheduler.testing.setups import framework as framework
from karmada_scheduler.testing.setups import gates as gates
from karmada_scheduler.testing.setups import make as make
from karmada_scheduler.testing.setups import profiles as profiles
from karmada_scheduler.testing.setups import queue_sort as queue_sort
from karmada_scheduler.testing.trace import Call as Call
from karmada_scheduler.testing.trace import Step as Step
