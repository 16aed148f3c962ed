"""Runs the PostFilter plugins of a profile after all clusters were refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import Diagnosis, PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.pre_filter import PreFilterRunner
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import PostFilterContext, PostFilterPlugin
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)

__plugin_runner__ = True

RunFilter = Callable[[Cycle, Sequence[Cluster], frozenset[str]], tuple[list[Cluster], dict[str, Result]]]
"""``Framework.run_filter``."""


class PostFilterRunner:
    """Runs the PostFilter plugins of a profile until one has a final result."""

    def __init__(
        self, plugins: Sequence[PostFilterPlugin], pre_filter: PreFilterRunner, caller: PluginCaller
    ) -> None:
        """Take the plugins in running order; ``pre_filter`` removes bindings from a copy of the cycle state."""
        self._plugins = plugins
        self._pre_filter = pre_filter
        self._caller = caller

    async def run(
        self,
        cycle: Cycle,
        diagnosis: Diagnosis,
        *,
        run_filter: RunFilter,
        skipped: frozenset[str],
        left_out: Container[str],
    ) -> bool:
        """Call ``post_filter``, and return whether the next attempt may succeed; see ``Framework.run_post_filter``."""

        def fits_without(cluster: Cluster, peers: Sequence[Binding]) -> Result:
            if cluster.name in left_out:
                return diagnosis.result_by_cluster[cluster.name]
            twin = replace(cycle, state=cycle.state.clone())
            for peer in peers:
                self._pre_filter.remove_binding(twin, peer, cluster, skipped=skipped)
            _, refused = run_filter(twin, [cluster], skipped)
            return refused.get(cluster.name, SUCCESS)

        context = PostFilterContext(cycle, diagnosis, fits_without)
        for plugin in self._plugins:
            try:
                answer = await self._caller.call_async(plugin, Point.POST_FILTER, plugin.post_filter, context)
                result = validated(plugin, Point.POST_FILTER, answer)
                if result.code is Code.ERROR:
                    raise unexpected_code(plugin, Point.POST_FILTER, result)
            except PluginError as error:
                log.error("PostFilter failed for %s: %s", cycle.binding.key.display, error)  # noqa: TRY400
                return False
            if result.is_success:
                return True
            if result.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return False
        return False
