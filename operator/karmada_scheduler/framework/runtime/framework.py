"""Runs the plugins of a decision: each point in order, timed, and with the plugin's name on what goes wrong.

``binding_runtime`` does the same for the points before and after a decision.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, TypeVar, cast

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Candidate, Cycle, InFlight
from karmada_scheduler.framework.diagnosis import Diagnosis, PluginError, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extender import Extender
from karmada_scheduler.framework.extension_points import PRE_FILTER_EXTENSIONS, Point
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime import validation
from karmada_scheduler.framework.runtime.binding_points import BindingPoints
from karmada_scheduler.framework.runtime.filter_cache import FilterResults, LRUCache
from karmada_scheduler.framework.runtime.filtering import FilterRunner
from karmada_scheduler.framework.runtime.plugin_call import Observer, PluginCaller
from karmada_scheduler.framework.runtime.scoring import Scoring
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import (
    AssignContext,
    AssignPlugin,
    FilterContext,
    FilterPlugin,
    NormalizeScorePlugin,
    PeerContext,
    Plugin,
    PostFilterContext,
    PostFilterPlugin,
    PreFilterContext,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScoreContext,
    PreScorePlugin,
    ScorePlugin,
    SelectContext,
    SelectPlugin,
)
from karmada_scheduler.framework.workload import needs_workload

log = logging.getLogger(__name__)

__plugin_runner__ = True

ADD_BINDING, REMOVE_BINDING = PRE_FILTER_EXTENSIONS
Context = TypeVar("Context")
Keyed = tuple[Plugin, Callable[[Cycle], Hashable]]
"""A plugin and its ``filter_key`` or ``score_key``."""


class Framework:
    """The plugins of one profile.

    The order of a lineup is the running order, so the reason under which a cluster is refused is the same
    in every process (upstream's order is random).

    Attributes:
        needs_workload: Whether one of them declares that it needs the workload's metadata.
    """

    def __init__(
        self,
        lineup: ProfilePlugins,
        *,
        extenders: Sequence[Extender] = (),
        caller: PluginCaller | None = None,
    ) -> None:
        """Take the plugins of a profile, the extenders, and what stands between them and the loop."""
        self.lineup: Final = lineup
        self.extenders: Final = tuple(extenders)
        self.caller: Final = caller or PluginCaller()
        self.binding: Final = BindingPoints(lineup, self.caller, self.extenders)
        self.needs_workload: Final = any(needs_workload(plugin) for plugin in lineup.plugins)
        self._pre_filters = cast("Sequence[PreFilterPlugin]", lineup.at(Point.PRE_FILTER))
        self._filters = cast("Sequence[FilterPlugin]", lineup.at(Point.FILTER))
        self._post_filters = cast("Sequence[PostFilterPlugin]", lineup.at(Point.POST_FILTER))
        self._pre_scores = cast("Sequence[PreScorePlugin]", lineup.at(Point.PRE_SCORE))
        self._selectors = cast("Sequence[SelectPlugin]", lineup.at(Point.SELECT))
        self._assigners = cast("Sequence[AssignPlugin]", lineup.at(Point.ASSIGN))
        self._counts_peers_in = any(isinstance(plugin, PreFilterExtensions) for plugin in self._pre_filters)
        self._talks = _has_coroutines(lineup) or any(each.filters or each.prioritizes for each in extenders)
        self._verdicts: LRUCache[FilterResults] = LRUCache()
        scorers = cast("Sequence[ScorePlugin]", lineup.at(Point.SCORE))
        looks_at_all = any(isinstance(plugin, NormalizeScorePlugin) for plugin in scorers) or self._pre_scores
        self._filter_keys = None if self._pre_filters or extenders else _keyed(self._filters, "filter_key")
        self._score_keys = None if looks_at_all or extenders else _keyed(scorers, "score_key")
        self._scoring = Scoring(scorers, lineup.weights, self.caller)

    @property
    def talks(self) -> bool:
        """Whether a decision may have to wait for an answer from elsewhere."""
        return self._talks

    def turns_out_to_talk(self) -> None:
        """Note that a plugin waits although nothing about it says so: a plain function that returns a coroutine."""
        self._talks = True

    @property
    def counts_peers_in(self) -> bool:
        """Whether a PreFilter plugin wants to know what is decided and not yet written."""
        return self._counts_peers_in

    @property
    def observer(self) -> Observer | None:
        """Who is told how long things take."""
        return self.caller.observer

    async def run_pre_filter(
        self, cycle: Cycle, clusters: Sequence[Cluster], in_flight: Sequence[InFlight] = ()
    ) -> tuple[Sequence[Cluster], dict[str, Result], frozenset[str]]:
        """Ask the PreFilter plugins, then tell them of the bindings that are decided and not yet written.

        Returns:
            The clusters to judge; why the others are out; the names of the plugins that skip.

        Raises:
            PluginError: A plugin failed.
        """
        if not self._pre_filters:
            return clusters, {}, frozenset()
        wanted: dict[str, frozenset[str]] = {}
        skipped: set[str] = set()
        refusal: Result | None = None
        context = PreFilterContext(cycle, clusters)
        for plugin in self._pre_filters:
            answer = await self.caller.call_async(plugin, Point.PRE_FILTER, plugin.pre_filter, context)
            if isinstance(answer, AbstractSet):
                wanted[plugin.name] = frozenset(answer)
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
            return (), {cluster.name: refusal for cluster in clusters}, frozenset(skipped)
        self._count_in(cycle, in_flight, skipped)
        return *_narrowed(clusters, wanted), frozenset(skipped)

    def _count_in(self, cycle: Cycle, in_flight: Sequence[InFlight], skipped: AbstractSet[str]) -> None:
        if not self._counts_peers_in:
            return
        for stored, planned in in_flight:
            if planned.key == cycle.binding.key:
                continue
            # What is stored is what a plugin has counted in PreFilter.
            for method, peer in ((REMOVE_BINDING, stored), (ADD_BINDING, planned)):
                for target in peer.spec.clusters if peer is not None else ():
                    cluster = cycle.snapshot.get(target.name)
                    if cluster is not None and peer is not None:
                        self._extend(method, PeerContext(cycle, peer, cluster), skipped)

    def _extend(self, method: str, context: PeerContext, skipped: AbstractSet[str]) -> None:
        for plugin in self._pre_filters:
            if plugin.name in skipped or not isinstance(plugin, PreFilterExtensions):
                continue
            result = validated(
                plugin,
                Point.PRE_FILTER,
                self.caller.call(plugin, Point.PRE_FILTER, getattr(plugin, method), context),
            )
            if not result.is_success:
                raise PluginError(f'running {method} on PreFilter plugin "{plugin.name}": {result.message}')

    def run_filter(
        self, cycle: Cycle, clusters: Sequence[Cluster], skipped: frozenset[str] = frozenset()
    ) -> tuple[list[Cluster], dict[str, Result]]:
        """Judge clusters; of each the first refusal counts.

        Returns:
            The clusters that pass, in the given order, and why the others do not.

        Raises:
            PluginError: A plugin failed, or answered what refuses nothing and lets nothing pass.
        """
        filters = [plugin for plugin in self._filters if plugin.name not in skipped]
        feasible: list[Cluster] = []
        refused: dict[str, Result] = {}
        judge = FilterRunner(filters, self.caller)
        try:
            with self.caller.timeout:
                for cluster in clusters:
                    result = judge(FilterContext(cycle, cluster))
                    if result is SUCCESS:
                        feasible.append(cluster)
                    else:
                        refused[cluster.name] = result
        except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
            judge.broke(error)
        judge.ended()
        return feasible, refused

    def remembered_verdicts(self, cycle: Cycle) -> FilterResults | None:
        """Return what the filters say of clusters that a binding like this one is not on.

        None if they are to be asked about every cluster: one of them does not say what its answer depends on,
        or PreFilter plugins or extenders take part.

        Raises:
            PluginError: A plugin failed.
        """
        key = self._key(cycle, self._filter_keys, Point.FILTER)
        if key is None:
            return None
        snapshot = cycle.snapshot
        verdicts = self._verdicts.get_for(key, lambda: FilterResults(key), snapshot)
        verdicts.refresh(snapshot, lambda changed: self.run_filter(cycle.unplaced, changed)[1])
        return verdicts

    def score_key(self, cycle: Cycle) -> Hashable | None:
        """Return what the scores of clusters depend on that a binding is not on, None if that is not known.

        Raises:
            PluginError: A plugin failed.
        """
        return self._key(cycle, self._score_keys, Point.SCORE)

    def scores_of(self, cycle: Cycle, clusters: Sequence[Cluster]) -> dict[str, list[int]]:
        """Score clusters without PreScore plugins, which a profile with a ``score_key`` does not have."""
        return self._scoring.run(cycle, clusters, frozenset())

    def _key(self, cycle: Cycle, keyed: Sequence[Keyed] | None, point: Point) -> Hashable | None:
        if keyed is None:
            return None
        plugin, parts, since = None, [], self.caller.openings
        if self.caller.has_open_breakers:
            for each, _ in keyed:
                self.caller.admit(each, point, probes=False)
        try:
            with self.caller.timeout:
                for plugin, key_of in keyed:  # noqa: B007 (named if it raises)
                    parts.append(key_of(cycle))
                key = None if None in parts else tuple(parts)
                hash(key)
        except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
            self.caller.raise_plugin_error(cast("Plugin", plugin), point, error, since=since)
        return key

    async def run_post_filter(
        self,
        cycle: Cycle,
        diagnosis: Diagnosis,
        *,
        skipped: frozenset[str] = frozenset(),
        left_out: Container[str] = (),
    ) -> bool:
        """Ask the PostFilter plugins, when no cluster passes; tell whether it may work next time.

        Args:
            cycle: The attempt.
            diagnosis: Why each cluster is refused.
            skipped: The plugins whose PreFilter skipped.
            left_out: The clusters that PreFilter plugins have refused; nothing about them is noted.
        """
        if not self._post_filters:
            return False

        def fits_without(cluster: Cluster, peers: Sequence[Binding]) -> Result:
            if cluster.name in left_out:
                return diagnosis.result_by_cluster[cluster.name]
            twin = replace(cycle, state=cycle.state.clone())
            for peer in peers:
                self._extend(REMOVE_BINDING, PeerContext(twin, peer, cluster), skipped)
            _, refused = self.run_filter(twin, [cluster], skipped)
            return refused.get(cluster.name, SUCCESS)

        context = PostFilterContext(cycle, diagnosis, fits_without)
        for plugin in self._post_filters:
            try:
                answer = await self.caller.call_async(plugin, Point.POST_FILTER, plugin.post_filter, context)
                result = validated(plugin, Point.POST_FILTER, answer)
                if result.code is Code.ERROR:
                    raise unexpected_code(plugin, Point.POST_FILTER, result)
            except PluginError as error:
                log.error("No help for %s: %s", cycle.binding.key.display, error)  # noqa: TRY400
                return False
            if result.is_success:
                return True
            if result.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return False
        return False

    async def run_score(self, cycle: Cycle, clusters: Sequence[Cluster]) -> dict[str, list[int]]:
        """Ask the PreScore plugins, then the Score plugins, about the clusters that can take the binding.

        Returns:
            Plugin name to final scores times weight, one per cluster in the given order.

        Raises:
            PluginError: A plugin failed; the text is upstream's.
        """
        skipped: set[str] = set()
        for plugin in self._pre_scores:
            context = PreScoreContext(cycle, clusters)
            answer = await self.caller.call_async(plugin, Point.PRE_SCORE, plugin.pre_score, context)
            result = validated(plugin, Point.PRE_SCORE, answer)
            if result.is_skip:
                skipped.add(plugin.name)
            elif not result.is_success:
                raise unexpected_code(plugin, Point.PRE_SCORE, result)
        return self._scoring.run(cycle, clusters, skipped)

    async def run_select(self, context: SelectContext) -> Sequence[Candidate]:
        """Let the first Select plugin that does not skip choose clusters.

        Raises:
            SchedulingError: It refused or failed, or none decided.
        """
        for plugin in self._selectors:
            answer = await self._decided(plugin, Point.SELECT, plugin.select, context)
            if not isinstance(answer, Result):
                return validation.selected(plugin, answer, context)
        raise SchedulingError("no Select plugin chose clusters")

    async def run_assign(self, context: AssignContext) -> list[TargetCluster]:
        """Let the first Assign plugin that does not skip divide the replicas.

        Raises:
            SchedulingError: It refused or failed, or none decided.
        """
        for plugin in self._assigners:
            answer = await self._decided(plugin, Point.ASSIGN, plugin.assign, context)
            if not isinstance(answer, Result):
                return validation.targets(plugin, answer, context)
        raise SchedulingError("no Assign plugin divided the replicas")

    async def _decided(
        self,
        plugin: Plugin,
        point: Point,
        function: Callable[[Context], object],
        context: Context,
    ) -> object:
        """Return an answer: SKIP or what the point returns. What the core's own errors say goes through."""
        try:
            answer = await self.caller.call_async(plugin, point, function, context)
        except PluginError as error:
            if isinstance(error.__cause__, SchedulingError):
                raise error.__cause__ from None
            raise
        if isinstance(answer, Result) and not answer.is_skip:
            result = validated(plugin, point, answer)
            if result.is_refusal:
                raise UnschedulableError(result.message, retry_after=result.retry_after)
            raise unexpected_code(plugin, point, result)
        return answer


def _keyed(plugins: Sequence[Plugin], name: str) -> list[Keyed] | None:
    """Return all plugins with a method of theirs, None if one does not have it."""
    found = [(plugin, getattr(plugin, name, None)) for plugin in plugins]
    return None if any(method is None for _, method in found) else cast("list[Keyed]", found)


def _has_coroutines(lineup: ProfilePlugins) -> bool:
    methods = (
        (Point.PRE_FILTER, "pre_filter"),
        (Point.POST_FILTER, "post_filter"),
        (Point.PRE_SCORE, "pre_score"),
        (Point.SELECT, "select"),
        (Point.ASSIGN, "assign"),
    )
    return any(
        inspect.iscoroutinefunction(getattr(plugin, method))
        for point, method in methods
        for plugin in lineup.at(point)
    )


def _narrowed(
    clusters: Sequence[Cluster], wanted: Mapping[str, frozenset[str]]
) -> tuple[Sequence[Cluster], dict[str, Result]]:
    """Keep the clusters that every plugin names which names any."""
    if not wanted:
        return clusters, {}
    kept: list[Cluster] = []
    refused: dict[str, Result] = {}
    for cluster in clusters:
        against = [name for name, names in wanted.items() if cluster.name not in names]
        if against:
            reason = f"cluster(s) didn't satisfy plugin(s) [{' '.join(against)}]"
            refused[cluster.name] = Result(Code.UNSCHEDULABLE, (reason,), against[0])
        else:
            kept.append(cluster)
    return kept, refused
