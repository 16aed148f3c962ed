"""Decisions wait until Karmada has seen what another write took, and shares that did not reach a cluster are applied again.

``core.lost_updates`` has the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.core.lost_updates import clusters_with_other_replicas
from karmada_scheduler.structs import IdentityStruct, Struct, field

SETTLE_SECONDS: Final = 1.0
"""How long a share that was taken is not given back. Karmada's cache lags behind its own writes by milliseconds; the rest
is for the time until its binding controller gets to the binding."""

RESYNC_SECONDS: Final = (15.0, 60.0, 240.0, 960.0, 3840.0)
"""The pauses before each resync of the same shares; none follows the last, as the cluster has its reasons then."""


class ReducedShares:
    """The clusters that had more replicas of a binding a moment ago."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with none; ``clock`` returns seconds and never runs backwards."""
        self._clock = clock
        self._times: dict[BindingKey, dict[str, float]] = {}
        """When each cluster lost replicas, the binding that changed last at the end."""

    def __len__(self) -> int:
        return len(self._times)

    def on_binding_change(self, old: Binding | None, new: Binding | None) -> None:
        """Note the clusters of which a write took replicas."""
        if old is None or new is None or old.spec.clusters is new.spec.clusters or old.uid != new.uid:
            return
        now, left = self._clock(), {target.name: target.replicas for target in new.spec.clusters}
        reduced = [target.name for target in old.spec.clusters if left.get(target.name, -1) < target.replicas]
        if not reduced:
            return
        self._times[old.key] = {**self._times.pop(old.key, {}), **dict.fromkeys(reduced, now)}
        while now - max(next(iter(self._times.values())).values()) > SETTLE_SECONDS:
            del self._times[next(iter(self._times))]

    def seconds_until_settled(self, binding: Binding, targets: Sequence[TargetCluster]) -> float:
        """Return how long a decision has to wait because it gives replicas back, 0 if it need not."""
        times = self._times.get(binding.key)
        if times is None:
            return 0.0
        now, stored = self._clock(), {target.name: target.replicas for target in binding.spec.clusters}
        given = [target.name for target in targets if target.replicas > stored.get(target.name, -1)]
        latest = max((times[name] for name in given if name in times), default=now - SETTLE_SECONDS)
        return max(0.0, latest + SETTLE_SECONDS - now)


class _Resync(Struct):
    """What is done for the shares of a binding.

    Attributes:
        clusters: ``spec.clusters``; other shares begin again.
        due: When the next resync is due, in seconds of the clock; None if none is.
        done: The number of resyncs.
    """

    clusters: tuple[TargetCluster, ...]
    due: float | None = None
    done: int = 0


class Resyncs(IdentityStruct):
    """The bindings of which a cluster reports another number of replicas than its share.

    Attributes:
        queue: Gets the bindings whose resync is due.
        clock: Returns seconds, never running backwards.
    """

    queue: SchedulingQueue[BindingKey]
    clock: Callable[[], float]
    _resyncs: dict[BindingKey, _Resync] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._resyncs)

    def on_binding_change(self, old: Binding | None, new: Binding | None) -> None:
        """Wait for the resync of a binding, or not any more; ``new`` is None for one that is not ours any more."""
        if new is None:
            if old is not None:
                self._resyncs.pop(old.key, None)
            return
        known = self._resyncs.get(new.key)
        if known is not None and new.spec.clusters != known.clusters:
            del self._resyncs[new.key]
            known = None
        if clusters_with_other_replicas(new):
            self._wait(new.key, known or _Resync(new.spec.clusters))
        elif known is not None:
            known.due = None
            if not known.done:
                del self._resyncs[new.key]

    def due(self, binding: Binding) -> tuple[str, ...]:
        """Return the clusters for which a binding is to be resynced now, and wait for its next turn."""
        found = self._resyncs.get(binding.key)
        if found is None or found.due is None:
            return ()
        if (left := found.due - self.clock()) > 0:
            self.queue.add_after(binding.key, left)  # of two delays of a key the queue keeps the first
            return ()
        found.due, found.done = None, found.done + 1
        self._wait(binding.key, found)
        return clusters_with_other_replicas(binding)

    def _wait(self, key: BindingKey, resync: _Resync) -> None:
        self._resyncs[key] = resync
        if resync.due is None and resync.done < len(RESYNC_SECONDS):
            seconds = RESYNC_SECONDS[resync.done]
            resync.due = self.clock() + seconds
            self.queue.add_after(key, seconds)
