"""Runs the plugins of a profile at the extension points of a decision, PreFilter to Assign.

``binding_points`` does the same for the extension points before and after a decision.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, TypeVar

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Candidate, Cycle, ReplicaEstimate
from karmada_scheduler.framework.diagnosis import Diagnosis, PluginError, SchedulingError
from karmada_scheduler.framework.evidence import EventsPlugin, RequeueEvent
from karmada_scheduler.framework.extension_points import (
    FOR_CAPACITY,
    FOR_FILTER,
    Point,
    post_filter_cases,
)
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime import validation
from karmada_scheduler.framework.runtime.binding_points import BindingPoints, RefusedError
from karmada_scheduler.framework.runtime.extenders import Extender
from karmada_scheduler.framework.runtime.filtering import PreFilterRunner, run_filters
from karmada_scheduler.framework.runtime.guarding import GuardRunner, ReconsiderRunner
from karmada_scheduler.framework.runtime.keyed_results import KeyedResults
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.scoring import ScoreRunner
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import (
    AssignContext,
    EstimateContext,
    PostFilterContext,
    PreScoreContext,
    SelectContext,
    Shortage,
)
from karmada_scheduler.framework.workload import needs_workload
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)

Context = TypeVar("Context", SelectContext, AssignContext)
Chosen = TypeVar("Chosen")
DecideAgain = Callable[[Plugin, ReplicaEstimate], Awaitable[Sequence[TargetCluster] | SchedulingError]]


class Framework:
    """The plugins of a profile, with the extenders.

    Plugins run in the order of the profile, so the reason for which a cluster is refused is the same in every process
    (upstream's order is random).

    Attributes:
        plugins: The plugins.
        extenders: The extenders, in the order of the configuration.
        caller: Calls the plugins.
        binding: The extension points before and after a decision.
        pre_filter: The extension point PreFilter.
        post_filters: The PostFilter plugins for refused clusters (``FOR_FILTER``), and for too little capacity (``FOR_CAPACITY``).
        scoring: The extension point Score.
        guard: The extension point Guard.
        reconsider: The extension point Reconsider.
        keyed: The results of plugins with keys.
        needs_workload: Whether a plugin needs the metadata of the workload.
        requeue_events: By plugin, the changes after which the bindings are enqueued for which it refused a cluster.
        is_async: Whether a decision may wait for I/O of a plugin or an extender. Set when a decision waited although no
            plugin has a coroutine function: a plain one returned a coroutine.
    """

    def __init__(
        self,
        plugins: ProfilePlugins,
        *,
        extenders: Sequence[Extender] = (),
        caller: PluginCaller | None = None,
        caches_results: bool = True,
    ) -> None:
        """Take the plugins of a profile; without a ``caller`` they have no timeout.

        Every plugin is called at each decision without ``caches_results``, or with extenders.
        """
        self.plugins: Final = plugins
        self.extenders: Final = tuple(extenders)
        self.caller: Final = caller or PluginCaller()
        self.binding: Final = BindingPoints(plugins, self.caller, self.extenders)
        self.guard: Final = GuardRunner(plugins.guard, self.caller)
        self.reconsider: Final = ReconsiderRunner(plugins.reconsider, self.caller)
        self.needs_workload: Final = any(needs_workload(plugin) for plugin in plugins.unique)
        self.requeue_events: Final = _requeue_events(plugins)
        self.pre_filter: Final = PreFilterRunner(plugins.pre_filter, self.caller)
        self.post_filters: Final = {
            case: tuple(plugin for plugin in plugins.post_filter if case in post_filter_cases(plugin))
            for case in (FOR_FILTER, FOR_CAPACITY)
        }
        self.scoring: Final = ScoreRunner(plugins.score, plugins.weights, self.caller)
        self.is_async = _has_coroutines(plugins) or any(
            extender.filters or extender.prioritizes for extender in extenders
        )
        self.keyed: Final = KeyedResults(
            plugins, self.caller, caches_results=caches_results and not self.extenders
        )

    def run_filter(
        self, cycle: Cycle, clusters: Sequence[Cluster], skipped: frozenset[str] = frozenset()
    ) -> tuple[Sequence[Cluster], dict[str, Result]]:
        """Run Filter for each cluster, until one plugin refuses it.

        Args:
            cycle: The attempt.
            clusters: The clusters to check.
            skipped: The names of plugins that returned SKIP at PreFilter.

        Returns:
            The clusters that pass, in the given order, and the refusals of the others by name.

        Raises:
            PluginError: A plugin failed, or returned a code that Filter does not allow.
        """
        return run_filters(self.plugins.filter, self.caller, cycle, clusters, skipped)

    async def run_post_filter(
        self,
        cycle: Cycle,
        diagnosis: Diagnosis,
        *,
        skipped: frozenset[str] = frozenset(),
        left_out: Container[str] = (),
        shortage: Shortage | None = None,
        decide: DecideAgain | None = None,
    ) -> Result:
        """Run PostFilter after all clusters were refused, or with a shortage, until one plugin has a final result.

        Args:
            cycle: The attempt.
            diagnosis: Why each cluster is refused.
            skipped: The names of plugins that returned SKIP at PreFilter.
            left_out: The names of clusters that PreFilter refused; the cycle state has no data of them.
            shortage: What is missing; None if all clusters were refused.
            decide: Selects and divides again, for a plugin, with other numbers.

        Returns:
            That result; a success if the next attempt may succeed. Errors are logged, and are a refusal.
        """

        def fits_without(cluster: Cluster, peers: Sequence[Binding]) -> Result:
            if cluster.name in left_out:
                return diagnosis.result_by_cluster[cluster.name]
            twin = replace(cycle, state=cycle.state.clone())
            for peer in peers:
                self.pre_filter.remove_binding(twin, peer, cluster, skipped=skipped)
            _, refused = self.run_filter(twin, [cluster], skipped)
            return refused.get(cluster.name, SUCCESS)

        answered = Result.unschedulable("no PostFilter plugin has a result")
        for plugin in self.post_filters[FOR_FILTER if shortage is None else FOR_CAPACITY]:
            try:
                again = None if decide is None else partial(decide, plugin)
                context = PostFilterContext(cycle, diagnosis, fits_without, shortage, again)
                answer = await self.caller.call_async(plugin, Point.POST_FILTER, plugin.post_filter, context)
                result = validated(plugin, Point.POST_FILTER, answer)
                if result.code is Code.ERROR:
                    raise unexpected_code(plugin, Point.POST_FILTER, result)
            except PluginError as error:
                log.error("PostFilter failed for %s: %s", cycle.binding.key.display, error)  # noqa: TRY400
                return answered
            if result.is_success or result.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return result
            answered = result
        return answered

    async def run_score(
        self, cycle: Cycle, clusters: Sequence[Cluster], left_out: AbstractSet[str] = frozenset()
    ) -> dict[str, list[int]]:
        """Run PreScore and Score for the clusters that passed the filters; ``left_out`` are plugins not to run.

        Returns:
            The final scores times weight by plugin name, one per cluster in the given order.

        Raises:
            PluginError: A plugin failed; the text is upstream's.
        """
        skipped = set(left_out)
        context = PreScoreContext(cycle, clusters)
        for plugin in self.plugins.pre_score:
            answer = await self.caller.call_async(plugin, Point.PRE_SCORE, plugin.pre_score, context)
            result = validated(plugin, Point.PRE_SCORE, answer)
            if result.is_skip:
                skipped.add(plugin.name)
            elif not result.is_success:
                raise unexpected_code(plugin, Point.PRE_SCORE, result)
        return self.scoring.run(cycle, clusters, skipped)

    @property
    def may_estimate(self) -> bool:
        """Whether an EstimateReplicas plugin may change numbers: one whose ``estimates_nothing`` is true does not."""
        for plugin in self.plugins.estimate_replicas:
            if getattr(plugin, "estimates_nothing", False) is not True:
                return True
        return False

    def run_estimate_replicas(self, context: EstimateContext) -> list[tuple[str, ReplicaEstimate]]:
        """Return the estimates of all EstimateReplicas plugins, with their names.

        Raises:
            PluginError: A plugin failed.
        """
        point, estimates = Point.ESTIMATE_REPLICAS, []
        for plugin in self.plugins.estimate_replicas:
            answer = self.caller.call(plugin, point, plugin.estimate_replicas, context)
            estimates.append((plugin.name, validation.replica_estimate(plugin, answer, context)))
        return estimates

    async def run_select(self, context: SelectContext) -> Sequence[Candidate]:
        """Return the clusters of the first Select plugin that does not return SKIP.

        Raises:
            SchedulingError: The plugin refused or failed, or all returned SKIP.
        """
        calls = ((plugin, plugin.select) for plugin in self.plugins.select)
        return await self._first_answer(Point.SELECT, calls, context, validation.selected, "chose clusters")

    async def run_assign(self, context: AssignContext) -> list[TargetCluster]:
        """Return the replicas of the first Assign plugin that does not return SKIP.

        Raises:
            SchedulingError: The plugin refused or failed, or all returned SKIP.
        """
        calls = ((plugin, plugin.assign) for plugin in self.plugins.assign)
        done = "divided the replicas"
        return await self._first_answer(Point.ASSIGN, calls, context, validation.targets, done)

    async def _first_answer(
        self,
        point: Point,
        calls: Iterable[tuple[Plugin, Callable[[Context], object]]],
        context: Context,
        validate: Callable[[Plugin, object, Context], Chosen],
        done: str,
    ) -> Chosen:
        """Return the first answer that is not SKIP. SchedulingErrors of the core pass through."""
        for plugin, function in calls:
            if context.cycle.kept is not None:
                context.cycle.kept.answered[point] = plugin.name
            try:
                answer = await self.caller.call_async(plugin, point, function, context)
            except PluginError as error:
                if isinstance(error.__cause__, SchedulingError):
                    raise error.__cause__ from None
                raise
            if not isinstance(answer, Result):
                try:
                    return validate(plugin, answer, context)
                except PluginError:
                    raise
                except Exception as problem:  # of a container of the plugin
                    raise validation.invalid_answer(plugin, point, answer, "a readable answer") from problem
            if not answer.is_skip:
                result = validated(plugin, point, answer)
                if result.is_refusal:
                    raise RefusedError(plugin.name, point, result.message, retry_after=result.retry_after)
                raise unexpected_code(plugin, point, result)
        raise SchedulingError(f"no {point.label} plugin {done}")


def _has_coroutines(plugins: ProfilePlugins) -> bool:
    points = (Point.PRE_FILTER, Point.POST_FILTER, Point.PRE_SCORE, Point.SELECT, Point.ASSIGN)
    return any(
        inspect.iscoroutinefunction(getattr(plugin, method))
        for point in points
        for method in point.methods
        for plugin in plugins.at(point)
    )


def _requeue_events(plugins: ProfilePlugins) -> Mapping[str, frozenset[RequeueEvent]]:
    return {
        plugin.name: frozenset(plugin.events())
        for plugin in (*plugins.pre_filter, *plugins.filter)
        if isinstance(plugin, EventsPlugin)
    }
