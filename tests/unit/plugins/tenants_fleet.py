"""A cluster, tenants with bindings in the queue, and the plugin that orders it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.queue_sort import make_queue
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework import Result
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.testing import (
    BindingBuilder,
    ClusterBuilder,
    FakeHandle,
    Run,
    binding,
    cluster,
    framework,
    make,
    schedule,
    snapshot,
)
from karmada_scheduler_plugins.fair_share import FairShare


def job(
    path: str, replicas: int = 1, *, priority: int = 0, created: int = 0, **request: object
) -> BindingBuilder:
    """Return a binding ``namespace/name`` of replicas that request a cpu each; ``created`` is a second."""
    namespace, name = path.split("/")
    found = binding(name, namespace=namespace).replicas(replicas, **(request or {"cpu": 1}))
    return found.dynamic_weight().priority(priority).created(f"2026-01-01T00:00:{created:02}Z")


def tenant(name: str, *namespaces: str, **terms: Any) -> dict[str, Any]:
    return {"name": name, "namespaces": list(namespaces) or [name], **terms}


class Fleet:
    """One cluster, and a queue as the scheduler has it."""

    def __init__(self, args: Mapping[str, Any] | None = None, *, cpu: int = 100, **amounts: object) -> None:
        self.handle = FakeHandle()
        self.cluster = cluster("m1").capacity(cpu=cpu, memory="1Ti", **amounts)
        self.handle.show(snapshot(self.cluster))
        self.plugin = make(FairShare, args, handle=self.handle)
        self.framework = framework(self.plugin, handle=self.handle)
        self.builders: dict[BindingKey, BindingBuilder] = {}
        self.queue = make_queue(
            Options(),
            queue_sort=self.plugin,
            binding_of=self.handle.binding,
            caller=PluginCaller(),
            metrics=Metrics(),
            clock=lambda: 0.0,
        )

    def store(self, *jobs: BindingBuilder) -> None:
        """Store bindings, new or changed."""
        for each in jobs:
            self.builders[each.build().key] = each
            self.handle.put(each.build())

    def add(self, *jobs: BindingBuilder) -> None:
        """Store bindings, and queue them."""
        self.store(*jobs)
        for each in jobs:
            self.queue.add(each.build().key, each.build().spec.priority)

    def delete(self, path: str) -> None:
        """Delete a binding."""
        key = self._key(path)
        found = self.handle._bindings.pop(key)
        del self.builders[key]
        self.plugin.observe(found, None)

    def _key(self, path: str) -> BindingKey:
        return job(path).build().key

    def gate(self, path: str) -> Result:
        """Return what PreEnqueue says about a stored binding."""
        return self.framework.binding.run_pre_enqueue(self.builders[self._key(path)].build())

    def schedule(self, path: str, *others: ClusterBuilder, **more: Any) -> Run:
        """Schedule a stored binding on the cluster and others; the write is stored."""
        found = self.builders[self._key(path)]
        return schedule(found, self.cluster, *others, plugins=self.framework, handle=self.handle, **more)

    def pop(self) -> str:
        """Return the next binding of the queue, and decide nothing."""
        item = self.queue.pop()
        assert item is not None
        self.queue.done(item[0])
        return f"{item[0].namespace}/{item[0].name.removesuffix('-deployment')}"

    def take(self, count: int, **more: Any) -> list[str]:
        """Schedule the next bindings of the queue; return them in order."""
        taken = []
        for _ in range(count):
            taken.append(self.pop())
            self.schedule(taken[-1], **more)
        return taken

    def used(self, name: str) -> dict[str, float]:
        """Return what a tenant uses, by resource."""
        return {each: amount / 1000 for each, amount in self.plugin._tenants.used_by(name).items()}

    @property
    def enqueued(self) -> list[str]:
        return [f"{key.namespace}/{key.name.removesuffix('-deployment')}" for key in self.handle.enqueued]

    @property
    def events(self) -> list[str]:
        return [each.text for each in self.handle.events]
