"""Runs the PreFilter plugins, keeps their cycle state up to date with other bindings, and runs the Filter plugins."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, NoReturn

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle, InFlight
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import PRE_FILTER_EXTENSIONS, Point
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime.plugin_call import Observer, PluginCaller
from karmada_scheduler.framework.runtime.validation import accepted, cluster_names, unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import (
    FilterContext,
    FilterPlugin,
    PeerContext,
    PreFilterContext,
    PreFilterExtensions,
    PreFilterPlugin,
)

__plugin_runner__ = True


def run_filters(
    filters: Sequence[FilterPlugin],
    caller: PluginCaller,
    cycle: Cycle,
    clusters: Sequence[Cluster],
    skipped: frozenset[str] = frozenset(),
) -> tuple[list[Cluster], dict[str, Result]]:
    """Run filters for each cluster, until one refuses it; see ``Framework.run_filter``."""
    if skipped:
        filters = [plugin for plugin in filters if plugin.name not in skipped]
    feasible: list[Cluster] = []
    refused: dict[str, Result] = {}
    run = FilterRunner(filters, caller)
    try:
        with caller.timeout:
            for cluster in clusters:
                result = run(FilterContext(cycle, cluster))
                if result is SUCCESS:
                    feasible.append(cluster)
                else:
                    refused[cluster.name] = result
    except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
        run.raise_plugin_error(error, cycle)
    run.record_success()
    return feasible, refused


class FilterRunner:
    """Runs the filters of one attempt; the caller has one timeout for all clusters.

    The caller must call ``raise_plugin_error`` with the exception of a call, or ``record_success`` at the end.
    """

    def __init__(self, filters: Sequence[FilterPlugin], caller: PluginCaller) -> None:
        self._filters = filters
        self._caller = caller
        self._observer = caller.observer
        self._running: FilterPlugin | None = None
        self._cluster = ""
        self._since = caller.openings
        self._admitted: list[FilterPlugin] | None = [] if caller.has_open_breakers else None
        self._shorter = (
            {id(each): caller.timeout_of(each, adds_up=True) for each in filters}
            if caller.has_shorter_timeouts
            else None
        )
        self._last_refusal: tuple[FilterPlugin, object, Result] | None = None

    def raise_plugin_error(self, error: BaseException, cycle: Cycle) -> NoReturn:
        """Raise PluginError of the plugin that was running for the binding of a cycle."""
        plugin = self._running
        if plugin is not None and self._observer is not None:
            self._observer.plugin(plugin.name, Point.FILTER.label, Code.ERROR, 0.0)
        if isinstance(error, PluginError):
            raise error
        self._caller.raise_plugin_error(
            plugin, Point.FILTER, error, since=self._since, cluster=self._cluster, context=cycle
        )

    def record_success(self) -> None:
        """Record for the circuit breakers that all calls ended in time."""
        for plugin in self._admitted or ():
            self._caller.record_success(plugin, Point.FILTER, since=self._since)

    def __call__(self, context: FilterContext) -> Result:
        if self._observer is not None:
            return self._run_observed(context, self._observer)
        self._cluster = context.cluster.name
        for plugin in self._filters:
            self._running = plugin
            if self._admitted is not None:
                self._admit(plugin, self._admitted)
            result = plugin.filter(context) if self._shorter is None else self._limited(plugin, context)
            if result is not SUCCESS:
                result = self._validated(plugin, result)
                if result is not SUCCESS:
                    return result
        return SUCCESS

    def _run_observed(self, context: FilterContext, observer: Observer) -> Result:
        self._cluster = context.cluster.name
        result, start = SUCCESS, time.perf_counter()
        begin = start
        for plugin in self._filters:
            self._running = plugin
            if self._admitted is not None:
                self._admit(plugin, self._admitted)
            answer = plugin.filter(context) if self._shorter is None else self._limited(plugin, context)
            result = self._validated(plugin, answer)
            end = time.perf_counter()
            observer.plugin(plugin.name, "Filter", result.code, end - begin)
            begin = end
            if result is not SUCCESS:
                break
        observer.extension_point("Filter", result.code, begin - start)
        return result

    def _admit(self, plugin: FilterPlugin, admitted: list[FilterPlugin]) -> None:
        """Check the circuit breaker of a plugin once for all clusters."""
        if not any(each is plugin for each in admitted):
            self._caller.admit(plugin, Point.FILTER)
            admitted.append(plugin)

    def _limited(self, plugin: FilterPlugin, context: FilterContext) -> Result:
        """Call a plugin with its own timeout, for all clusters together."""
        assert self._shorter is not None  # the caller has checked it
        with self._shorter[id(plugin)]:
            return plugin.filter(context)

    def _validated(self, plugin: FilterPlugin, answer: object) -> Result:
        """Return SUCCESS or a refusal; the last one is cached, as plugins mostly return the same object again."""
        if answer is SUCCESS:
            return SUCCESS
        cached = self._last_refusal
        if cached is not None and cached[1] is answer and cached[0] is plugin:
            return cached[2]
        result = _refusal(plugin, answer)
        if isinstance(answer, Result) and type(answer.reasons) is tuple:  # immutable
            self._last_refusal = plugin, answer, result
        return result


def _refusal(plugin: FilterPlugin, answer: object) -> Result:
    result = accepted(plugin, Point.FILTER, answer)
    return SUCCESS if result.is_success else result


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
