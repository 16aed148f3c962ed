"""Clusters of which some cpu is free, and bindings that are scheduled with StrictPriority."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada_scheduler.api.binding import BindingKey
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

CPU = 100
"""The cpu of an empty cluster."""


def job(name: str, replicas: int, priority: int = 0, *, cpu: int = 1, created: int = 0) -> BindingBuilder:
    """Return a binding of replicas that request so many cpu each; ``created`` is a second."""
    found = binding(name).replicas(replicas, cpu=cpu).dynamic_weight().priority(priority)
    return found.created(f"2026-01-01T00:00:{created:02}Z")


def key_of(found: BindingBuilder) -> BindingKey:
    return found.build().key


class Fleet:
    """Clusters by the cpu that is free, and the plugin that follows them."""

    def __init__(self, args: Mapping[str, Any] | None = None, **free: int) -> None:
        self.handle = FakeHandle()
        self.handle.time = 1_767_261_600.0  # 2026-01-01, 10:00
        self.free = free
        self.nodes = dict[str, int]()
        self.built = {name: cluster(name) for name in free}
        self.plugin = make(StrictPriority, args, handle=self.handle)
        self.framework = framework(self.plugin, handle=self.handle)

    def clusters(self) -> list[ClusterBuilder]:
        built = [
            self.built[name].capacity(cpu=CPU).allocated({"cpu": CPU - free})
            for name, free in self.free.items()
        ]
        return [
            each.nodes(1, self.nodes[each.build().name]) if each.build().name in self.nodes else each
            for each in built
        ]

    def has_nodes(self, name: str, count: int, cpu: int) -> None:
        """Let a cluster report so many nodes with as much free cpu each."""
        self.built[name].grade(1, nodes=None, cpu=cpu, memory="1Gi")
        self.nodes[name] = count

    def try_(self, found: BindingBuilder, **more: Any) -> Run:
        """Schedule a binding, and forget who was enqueued."""
        self.handle.enqueued.clear()
        return schedule(found, *self.clusters(), plugins=self.framework, handle=self.handle, **more)

    def fits(self, found: BindingBuilder, **more: Any) -> bool:
        return self.try_(found, **more).error is None

    def report(self, **free: int) -> list[str]:
        """Let clusters report other free cpu; return who is enqueued, in order."""
        self.free |= free
        self.handle.enqueued.clear()
        self.handle.show(snapshot(*self.clusters()))
        return self.enqueued

    @property
    def enqueued(self) -> list[str]:
        return [key.name.removesuffix("-deployment") for key in self.handle.enqueued]

    def held(self, found: BindingBuilder) -> dict[str, int]:
        """Return what is held for a binding that waits."""
        waiting = self.plugin._ledger.waiting[key_of(found)]
        return {
            name: count for name, count in waiting.found.items() if waiting.holds and waiting.counts(name)
        }

    def pass_(self, seconds: float) -> None:
        self.handle.time += seconds
        self.plugin._ledger.tick()

    def events(self, reason: str) -> list[tuple[BindingKey, str]]:
        return [(each.binding, each.text) for each in self.handle.events if each.reason == reason]
