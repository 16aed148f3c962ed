"""Runs the plugins of a profile at the extension points of a decision, PreFilter to Assign.

``binding_points`` does the same for the extension points before and after a decision.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final, TypeVar

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Candidate, Cycle, InFlight
from karmada_scheduler.framework.diagnosis import Diagnosis, PluginError, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extender import Extender
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime import validation
from karmada_scheduler.framework.runtime.binding_points import BindingPoints
from karmada_scheduler.framework.runtime.filtering import run_filters
from karmada_scheduler.framework.runtime.guarding import GuardRunner
from karmada_scheduler.framework.runtime.keyed_results import KeyedResults
from karmada_scheduler.framework.runtime.plugin_call import Observer, PluginCaller
from karmada_scheduler.framework.runtime.post_filter import PostFilterRunner
from karmada_scheduler.framework.runtime.pre_filter import PreFilterOutcome, PreFilterRunner
from karmada_scheduler.framework.runtime.reconsidering import ReconsiderRunner
from karmada_scheduler.framework.runtime.scoring import ScoreRunner
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import (
    AssignContext,
    PreScoreContext,
    SelectContext,
)
from karmada_scheduler.framework.workload import needs_workload

Context = TypeVar("Context")
Chosen = TypeVar("Chosen")


class Framework:
    """The plugins of a profile, with the extenders.

    Plugins run in the order of the profile, so the reason for which a cluster is refused is the same in every process
    (upstream's order is random).

    Attributes:
        plugins: The plugins.
        extenders: The extenders, in the order of the configuration.
        caller: Calls the plugins.
        binding: The extension points before and after a decision.
        guard: The extension point Guard.
        reconsider: The extension point Reconsider.
        keyed: The results of plugins with keys.
        needs_workload: Whether a plugin needs the metadata of the workload.
        needs_in_flight: Whether a PreFilter plugin takes the bindings that are decided and not yet written.
    """

    def __init__(
        self,
        plugins: ProfilePlugins,
        *,
        extenders: Sequence[Extender] = (),
        caller: PluginCaller | None = None,
    ) -> None:
        """Take the plugins of a profile; without a ``caller`` they have no timeout."""
        self.plugins: Final = plugins
        self.extenders: Final = tuple(extenders)
        self.caller: Final = caller or PluginCaller()
        self.binding: Final = BindingPoints(plugins, self.caller, self.extenders)
        self.guard: Final = GuardRunner(plugins.guard, self.caller)
        self.reconsider: Final = ReconsiderRunner(plugins.reconsider, self.caller)
        self.needs_workload: Final = any(needs_workload(plugin) for plugin in plugins.unique)
        self._pre_filter = PreFilterRunner(plugins.pre_filter, self.caller)
        self.needs_in_flight: Final = self._pre_filter.needs_in_flight
        self._post_filter = PostFilterRunner(plugins.post_filter, self._pre_filter, self.caller)
        self._scoring = ScoreRunner(plugins.score, plugins.weights, self.caller)
        self._is_async = _has_coroutines(plugins) or any(
            each.filters or each.prioritizes for each in extenders
        )
        self.keyed: Final = KeyedResults(plugins, self.caller, has_extenders=bool(self.extenders))

    @property
    def is_async(self) -> bool:
        """Whether a decision may wait for I/O of a plugin or an extender."""
        return self._is_async

    def mark_async(self) -> None:
        """Record that a decision waited although no plugin has a coroutine function: a plain one returned a coroutine."""
        self._is_async = True

    @property
    def observer(self) -> Observer | None:
        """Receives durations."""
        return self.caller.observer

    async def run_pre_filter(
        self, cycle: Cycle, clusters: Sequence[Cluster], in_flight: Sequence[InFlight] = ()
    ) -> PreFilterOutcome:
        """Run PreFilter, with the bindings that are decided and not yet written.

        Raises:
            PluginError: A plugin failed.
        """
        return await self._pre_filter.run(cycle, clusters, in_flight)

    def run_filter(
        self, cycle: Cycle, clusters: Sequence[Cluster], skipped: frozenset[str] = frozenset()
    ) -> tuple[list[Cluster], dict[str, Result]]:
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

    def score_clusters(self, cycle: Cycle, clusters: Sequence[Cluster]) -> dict[str, list[int]]:
        """Return scores as ``run_score`` does, without PreScore: a profile with a ``score_key`` has no PreScore plugins."""
        return self._scoring.run(cycle, clusters, frozenset())

    async def run_post_filter(
        self,
        cycle: Cycle,
        diagnosis: Diagnosis,
        *,
        skipped: frozenset[str] = frozenset(),
        left_out: Container[str] = (),
    ) -> bool:
        """Run PostFilter after all clusters were refused; return whether the next attempt may succeed.

        Args:
            cycle: The attempt.
            diagnosis: Why each cluster is refused.
            skipped: The names of plugins that returned SKIP at PreFilter.
            left_out: The names of clusters that PreFilter refused; the cycle state has no data of them.
        """
        return await self._post_filter.run(
            cycle, diagnosis, run_filter=self.run_filter, skipped=skipped, left_out=left_out
        )

    async def run_score(self, cycle: Cycle, clusters: Sequence[Cluster]) -> dict[str, list[int]]:
        """Run PreScore and Score for the clusters that passed the filters.

        Returns:
            The final scores times weight by plugin name, one per cluster in the given order.

        Raises:
            PluginError: A plugin failed; the text is upstream's.
        """
        skipped: set[str] = set()
        context = PreScoreContext(cycle, clusters)
        for plugin in self.plugins.pre_score:
            answer = await self.caller.call_async(plugin, Point.PRE_SCORE, plugin.pre_score, context)
            result = validated(plugin, Point.PRE_SCORE, answer)
            if result.is_skip:
                skipped.add(plugin.name)
            elif not result.is_success:
                raise unexpected_code(plugin, Point.PRE_SCORE, result)
        return self._scoring.run(cycle, clusters, skipped)

    async def run_select(self, context: SelectContext) -> Sequence[Candidate]:
        """Return the clusters of the first Select plugin that does not return SKIP.

        Raises:
            SchedulingError: The plugin refused or failed, or all returned SKIP.
        """
        calls = ((plugin, plugin.select) for plugin in self.plugins.select)
        chosen = await self._first_answer(Point.SELECT, calls, context, validation.selected)
        if chosen is None:
            raise SchedulingError("no Select plugin chose clusters")
        return chosen

    async def run_assign(self, context: AssignContext) -> list[TargetCluster]:
        """Return the replicas of the first Assign plugin that does not return SKIP.

        Raises:
            SchedulingError: The plugin refused or failed, or all returned SKIP.
        """
        calls = ((plugin, plugin.assign) for plugin in self.plugins.assign)
        targets = await self._first_answer(Point.ASSIGN, calls, context, validation.targets)
        if targets is None:
            raise SchedulingError("no Assign plugin divided the replicas")
        return targets

    async def _first_answer(
        self,
        point: Point,
        calls: Iterable[tuple[Plugin, Callable[[Context], object]]],
        context: Context,
        validate: Callable[[Plugin, object, Context], Chosen],
    ) -> Chosen | None:
        """Return the first answer that is not SKIP, None without one. SchedulingErrors of the core pass through."""
        for plugin, function in calls:
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
                    raise UnschedulableError(result.message, retry_after=result.retry_after)
                raise unexpected_code(plugin, point, result)
        return None


def _has_coroutines(plugins: ProfilePlugins) -> bool:
    points = (Point.PRE_FILTER, Point.POST_FILTER, Point.PRE_SCORE, Point.SELECT, Point.ASSIGN)
    return any(
        inspect.iscoroutinefunction(getattr(plugin, method))
        for point in points
        for method in point.methods
        for plugin in plugins.at(point)
    )
