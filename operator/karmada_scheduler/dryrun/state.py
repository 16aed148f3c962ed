"""The state of a simulation between two decisions: placements, and bindings that wait at Permit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.written import as_written
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.structs import replace


class WaitingDecision:
    """A decision that waits at Permit; implements ``framework.handle.WaitingBinding``.

    Attributes:
        context: The context that the plugins got.
        refusal: The reason of the plugin that rejected it, "" without one.
    """

    def __init__(self, context: BindContext, decision: Decision, plugins: Collection[str]) -> None:
        """Wait until all plugins have allowed it, without a timeout."""
        self.context: Final = context
        self.decision: Final = decision
        self.refusal = ""
        self._pending = dict.fromkeys(plugins)

    @property
    def binding(self) -> Binding:
        """The binding that was scheduled."""
        return self.context.binding

    @property
    def pending(self) -> Sequence[str]:
        """The plugins that have not allowed it yet."""
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        """Note that one plugin allows it."""
        self._pending.pop(plugin, None)

    def reject(self, plugin: str, reason: str) -> None:  # noqa: ARG002 (the protocol)
        """Reject it, unless it was allowed or rejected before."""
        if self._pending and not self.refusal:
            self.refusal = reason

    @property
    def workload(self) -> Workload | None:
        """The metadata of its workload; ``UndeclaredWorkloadError`` if no plugin of the profile needs it."""
        return self.context.workload

    @property
    def is_over(self) -> bool:
        """Whether it was allowed or rejected."""
        return bool(self.refusal) or not self._pending


class SimulatedBindings:
    """The bindings of the files, with the decisions so far; implements ``framework.cycle.Peers``."""

    def __init__(self, bindings: Iterable[Binding], clock: Callable[[], float] = time.time) -> None:
        """Start with the bindings of the files; ``clock`` has the time of decisions, in seconds since 1970."""
        self._clock = clock
        self.replace(bindings)

    def replace(self, bindings: Iterable[Binding]) -> None:
        """Start again with other bindings."""
        self.waiting: dict[BindingKey, WaitingDecision] = {}
        self._bindings: dict[BindingKey, Binding] = {}
        self._keys: dict[tuple[int, str], list[BindingKey]] = {}
        for binding in bindings:
            self._bindings[binding.key] = binding
            for kind, group in enumerate(binding.spec.workload_affinity_groups or ()):
                self._keys.setdefault((kind, group), []).append(binding.key)

    def __iter__(self) -> Iterator[Binding]:
        return iter(self._bindings.values())

    def values(self) -> Iterable[Binding]:
        """Return all bindings."""
        return self._bindings.values()

    def get(self, key: BindingKey) -> Binding | None:
        """Return a binding, None if the files do not have it."""
        return self._bindings.get(key)

    def at_permit(self) -> Iterable[WaitingDecision]:
        """Return the bindings that wait at Permit."""
        return self.waiting.values()

    def place(self, binding: Binding, decision: Decision) -> None:
        """Store a decision as the scheduler would write it."""
        at = datetime.fromtimestamp(self._clock(), UTC)
        self._bindings[binding.key] = as_written(binding, decision, at)

    @property
    def in_flight(self) -> list[Binding]:
        """The bindings that wait at Permit, with the clusters that they would get."""
        return [_with_targets(each.binding, tuple(each.context.targets)) for each in self.waiting.values()]

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return the bindings of an affinity group."""
        return [self._bindings[key] for key in self._keys.get((0, group), ())]

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return the bindings of an anti-affinity group."""
        return [self._bindings[key] for key in self._keys.get((1, group), ())]


def _with_targets(binding: Binding, targets: tuple[TargetCluster, ...]) -> Binding:
    return replace(binding, spec=replace(binding.spec, clusters=targets))
