"""Runs the PreFilter plugins, keeps their cycle state up to date with other bindings, and runs the Filter plugins."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, repeat
from operator import attrgetter
from typing import Final, NamedTuple, NoReturn

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle, InFlight
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import FILTER_CLUSTERS, PRE_FILTER_EXTENSIONS, Point
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.validation import (
    accepted,
    cluster_names,
    invalid_answer,
    unexpected_code,
    validated,
)
from karmada_scheduler.framework.scheduling_points import (
    FilterClustersContext,
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
) -> tuple[Sequence[Cluster], dict[str, Result]]:
    """Run filters for all clusters; see ``Framework.run_filter``.

    Each plugin is called for the clusters that those before it let pass. All have one timeout together.
    """
    run = _FilterRun(caller, cycle, clusters)
    refused: dict[str, Result] = {}
    start = time.perf_counter()
    try:
        with caller.timeout:
            for plugin in filters:
                if run.clusters and plugin.name not in skipped:
                    refused |= run(plugin)
    except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
        run.raise_plugin_error(error, cycle)
    run.observe((), len(clusters), refused.values(), start)
    run.record_success()
    return run.clusters, refused


class _FilterRun:
    """Calls filters one after the other, and knows which one was running when an exception was raised.

    Attributes:
        clusters: Those that have passed so far.
    """

    def __init__(self, caller: PluginCaller, cycle: Cycle, clusters: Sequence[Cluster]) -> None:
        self._caller, self._cycle, self.clusters = caller, cycle, clusters
        self._since = caller.openings
        self._has_open, self._has_shorter = caller.has_open_breakers, caller.has_shorter_timeouts
        self._admitted: list[FilterPlugin] = []
        self._running: FilterPlugin | None = None
        self._cluster = ""

    def __call__(self, plugin: FilterPlugin) -> Mapping[str, Result]:
        """Return the refusals of a plugin by cluster."""
        self._running, self._cluster, count = plugin, "", len(self.clusters)
        if self._has_open:
            self._caller.admit(plugin, Point.FILTER)
            self._admitted.append(plugin)
        begin = time.perf_counter()
        if self._has_shorter:
            with self._caller.timeout_of(plugin):
                found = self._refusals(plugin)
        else:
            found = self._refusals(plugin)
        self.observe((plugin.name,), count, found.values(), begin)
        if not found:
            return {}
        clusters, passes = self.clusters, bytearray(b"\1") * count
        for row in found:
            passes[row] = 0
        self.clusters = list(compress(clusters, passes))
        return {clusters[row].name: result for row, result in found.items()}

    def _refusals(self, plugin: FilterPlugin) -> Mapping[int, Result]:
        """Return the refusals of a plugin by the index of the cluster."""
        if (filter_clusters := getattr(plugin, FILTER_CLUSTERS, None)) is not None:
            return self._refusals_at_once(plugin, filter_clusters)
        self._cluster = self.clusters[0].name
        found: dict[int, Result] = {}
        run, row = plugin.filter, 0
        last, result, refuses = SUCCESS, SUCCESS, False
        try:
            for row, context in enumerate(map(FilterContext, repeat(self._cycle), self.clusters)):
                answer = run(context)
                if answer is SUCCESS:
                    continue
                # Plugins mostly return an equal result again. A list of reasons can have changed since.
                if type(answer) is not Result or type(answer.reasons) is not tuple or answer != last:
                    last, result = answer, accepted(plugin, Point.FILTER, answer)
                    refuses = not result.is_success
                if refuses:
                    found[row] = result
        except BaseException:
            self._cluster = self.clusters[row].name
            raise
        return found

    def _refusals_at_once(
        self, plugin: FilterPlugin, filter_clusters: Callable[[FilterClustersContext], object]
    ) -> Mapping[int, Result]:
        answers = filter_clusters(FilterClustersContext(self._cycle, self.clusters))
        if not isinstance(answers, (list, tuple)) or len(answers) != len(self.clusters):
            raise invalid_answer(plugin, Point.FILTER, answers, f"a list of {len(self.clusters)} Results")
        different = {id(answer): answer for answer in answers if answer is not SUCCESS}
        results = {key: accepted(plugin, Point.FILTER, answer) for key, answer in different.items()}
        refusals = {key: result for key, result in results.items() if not result.is_success}
        rows = enumerate(map(id, answers)) if refusals else ()
        return {row: refusals[key] for row, key in rows if key in refusals}

    def observe(self, labels: tuple[str, ...], count: int, refused: Collection[Result], begin: float) -> None:
        """Report each call of a plugin, or of all, with the mean duration of all calls, by result."""
        observer = self._caller.observer
        if observer is None or not count:
            return
        seconds = (time.perf_counter() - begin) / count
        observe: Callable[..., None] = observer.plugin if labels else observer.extension_point
        if passed := count - len(refused):
            observe(*labels, _LABEL, Code.SUCCESS, seconds, passed)
        if refused:
            for code, number in Counter(map(attrgetter("code"), refused)).items():
                observe(*labels, _LABEL, code, seconds, number)

    def raise_plugin_error(self, error: BaseException, cycle: Cycle) -> NoReturn:
        """Raise PluginError of the plugin that was running for the binding of a cycle."""
        plugin, observer = self._running, self._caller.observer
        if plugin is not None and observer is not None:
            observer.plugin(plugin.name, Point.FILTER.label, Code.ERROR, 0.0)
        if isinstance(error, PluginError):
            raise error
        self._caller.raise_plugin_error(
            plugin, Point.FILTER, error, since=self._since, cluster=self._cluster, context=cycle
        )

    def record_success(self) -> None:
        """Record for the circuit breakers that all calls ended in time."""
        for plugin in self._admitted:
            self._caller.record_success(plugin, Point.FILTER, since=self._since)


_LABEL: Final = Point.FILTER.label


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
            return PreFilterOutcome((), {cluster.name: refusal for cluster in clusters}, frozenset(skipped))
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
