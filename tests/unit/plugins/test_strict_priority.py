"""StrictPriority: free room is held for who waits, and the first of the ranking is woken and placed first."""

from __future__ import annotations

from typing import Any

from karmada_scheduler.framework.runtime.framework import Framework
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
from karmada_scheduler_plugins.strict_priority import StrictPriority


class Fleet:
    """Clusters with so many free cpu of 100, and a plugin that sees the decisions about bindings."""

    def __init__(self, *, args: dict[str, Any] | None = None, **free: int) -> None:
        self.handle = FakeHandle()
        self.free, self.regions = free, dict[str, str]()
        self.plugin = make(StrictPriority, args, handle=self.handle)
        self.framework: Framework = framework(self.plugin, handle=self.handle)
        self.builders = dict[str, BindingBuilder]()

    def clusters(self) -> list[ClusterBuilder]:
        built = [
            cluster(name).capacity(cpu=100).allocated({"cpu": 100 - cpu}) for name, cpu in self.free.items()
        ]
        return [each.region(self.regions.get(each.build().name, "")) for each in built]

    def job(
        self, name: str, replicas: int, priority: int = 0, cpu: int = 1, at: int = 0, **more: Any
    ) -> BindingBuilder:
        namespace = more.get("namespace", "default")
        found = binding(name, namespace=namespace).replicas(replicas, cpu=cpu).priority(priority)
        return found.dynamic_weight().created(f"2026-01-01T00:00:{at:02}Z")

    def try_(self, job: BindingBuilder) -> Run:
        return schedule(job, *self.clusters(), plugins=self.framework, handle=self.handle)

    def report(self, **free: int) -> list[str]:
        """Let clusters report other free cpu; return the names of the bindings that are woken."""
        self.free |= free
        before = len(self.handle.enqueued)
        self.handle.show(snapshot(*self.clusters()))
        return [key.name.removesuffix("-deployment") for key in self.handle.enqueued[before:]]


def test_a_binding_that_does_not_fit_holds_what_is_free() -> None:
    fleet = Fleet(m1=4)
    assert fleet.try_(fleet.job("first", 8, priority=10)).error is not None
    assert fleet.try_(fleet.job("second", 2)).error is not None
    assert fleet.report(m1=7) == []
    assert fleet.report(m1=8) == ["first"]
    assert fleet.try_(fleet.job("first", 8, priority=10)).placed == {"m1": 8}
