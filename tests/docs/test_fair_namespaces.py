"""FairNamespaces: namespaces take turns."""

from __future__ import annotations

from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.queue_sort import make_queue
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.testing import FakeHandle, binding, profiles, queue_sort
from tests.docs.conftest import PLUGINS


def test_the_namespace_with_the_fewest_placed_replicas_goes_first() -> None:
    handle = FakeHandle(binding("old", namespace="a").replicas(5).on(m1=5))
    found = profiles(PLUGINS / "fair_namespaces.yaml", plugin_dir=PLUGINS, handle=handle)
    queue = make_queue(
        Options(),
        queue_sort=queue_sort(found),
        binding_of=handle.binding,
        caller=PluginCaller(),
        metrics=Metrics(),
        clock=lambda: 0.0,
    )
    waiting = [binding(f"{name}{i}", namespace=name).replicas(2).build() for name in "ab" for i in range(4)]
    for each in waiting:
        handle.put(each)
        queue.add(each.key)
    order = []
    while (item := queue.pop()) is not None:
        order.append(item[0].namespace)
        stored = handle.binding(item[0])
        assert stored is not None
        handle.put(
            binding(stored.key.name.removesuffix("-deployment"), namespace=item[0].namespace).on(m1=2).build()
        )
        queue.done(item[0])
    assert "".join(order) == "bbbabaaa"
