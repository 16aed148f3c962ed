"""Runs the PreFilter plugins, and keeps their cycle state up to date with other bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle, InFlight
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import PRE_FILTER_EXTENSIONS, Point
from karmada_scheduler.framework.result import Code, Result
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.validation import cluster_names, unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import (
    PeerContext,
    PreFilterContext,
    PreFilterExtensions,
    PreFilterPlugin,
)

__plugin_runner__ = True

_ADD_BINDING, _REMOVE_BINDING = PRE_FILTER_EXTENSIONS


class PreFilterOutcome(NamedTuple):
    """The outcome of PreFilter.

    Attributes:
        clusters: The clusters that Filter has to check.
        refused: The refusals of the other clusters, by name.
        skipped: The names of the plugins that returned SKIP.
    """

    clusters: Sequence[Cluster]
    refused: dict[str, Result]
    skipped: frozenset[str]


class PreFilterRunner:
    """Runs the PreFilter plugins of a profile.

    Attributes:
        needs_in_flight: Whether a plugin has ``add_binding`` and ``remove_binding``.
    """

    def __init__(self, plugins: Sequence[PreFilterPlugin], caller: PluginCaller) -> None:
        """Take the plugins in running order."""
        self._plugins = plugins
        self._caller = caller
        self._extensions = [plugin for plugin in plugins if isinstance(plugin, PreFilterExtensions)]
        self.needs_in_flight: Final = bool(self._extensions)

    async def run(
        self, cycle: Cycle, clusters: Sequence[Cluster], in_flight: Sequence[InFlight]
    ) -> PreFilterOutcome:
        """Call ``pre_filter``, then ``remove_binding`` and ``add_binding`` for the bindings in flight.

        Raises:
            PluginError: A plugin failed.
        """
        if not self._plugins:
            return PreFilterOutcome(clusters, {}, frozenset())
        allowed: dict[str, frozenset[str]] = {}
        skipped: set[str] = set()
        refusal: Result | None = None
        context = PreFilterContext(cycle, clusters)
        for plugin in self._plugins:
            answer = await self._caller.call_async(plugin, Point.PRE_FILTER, plugin.pre_filter, context)
            if isinstance(answer, AbstractSet):
                allowed[plugin.name] = cluster_names(plugin, answer)
                continue
            result = validated(plugin, Point.PRE_FILTER, answer)
            if result.is_skip:
                skipped.add(plugin.name)
            elif result.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                refusal = result
                break
            elif result.is_refusal:
                refusal = refusal or result
            elif not result.is_success:
                raise unexpected_code(plugin, Point.PRE_FILTER, result)
        if refusal is not None:
            return PreFilterOutcome((), {each.name: refusal for each in clusters}, frozenset(skipped))
        self._apply_in_flight(cycle, in_flight, skipped)
        return PreFilterOutcome(*_restricted(clusters, allowed), frozenset(skipped))

    def remove_binding(
        self, cycle: Cycle, peer: Binding, cluster: Cluster, *, skipped: AbstractSet[str]
    ) -> None:
        """Call ``remove_binding`` of all plugins that did not skip.

        Raises:
            PluginError: A plugin failed.
        """
        self._call_extensions(_REMOVE_BINDING, PeerContext(cycle, peer, cluster), skipped)

    def _apply_in_flight(
        self, cycle: Cycle, in_flight: Sequence[InFlight], skipped: AbstractSet[str]
    ) -> None:
        if not self.needs_in_flight:
            return
        for stored, planned in in_flight:
            if planned.key == cycle.binding.key:
                continue
            # In PreFilter, a plugin counted the binding as stored.
            for method, peer in ((_REMOVE_BINDING, stored), (_ADD_BINDING, planned)):
                for target in peer.spec.clusters if peer is not None else ():
                    cluster = cycle.snapshot.get(target.name)
                    if cluster is not None and peer is not None:
                        self._call_extensions(method, PeerContext(cycle, peer, cluster), skipped)

    def _call_extensions(self, method: str, context: PeerContext, skipped: AbstractSet[str]) -> None:
        for plugin in self._extensions:
            if plugin.name in skipped:
                continue
            answer = self._caller.call(plugin, Point.PRE_FILTER, getattr(plugin, method), context)
            result = validated(plugin, Point.PRE_FILTER, answer)
            if not result.is_success:
                raise PluginError(f'running {method} on PreFilter plugin "{plugin.name}": {result.message}')


def _restricted(
    clusters: Sequence[Cluster], allowed: Mapping[str, frozenset[str]]
) -> tuple[Sequence[Cluster], dict[str, Result]]:
    """Return the clusters that all plugins allow, and the refusals of the others; ``allowed`` is by plugin."""
    if not allowed:
        return clusters, {}
    kept: list[Cluster] = []
    refused: dict[str, Result] = {}
    for cluster in clusters:
        refusing = [plugin for plugin, names in allowed.items() if cluster.name not in names]
        if refusing:
            reason = f"cluster(s) didn't satisfy plugin(s) [{' '.join(refusing)}]"
            refused[cluster.name] = Result(Code.UNSCHEDULABLE, (reason,), refusing[0])
        else:
            kept.append(cluster)
    return kept, refused
