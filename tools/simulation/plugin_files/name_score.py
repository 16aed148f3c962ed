"""Scores by names."""

from karmada_scheduler.framework import ScoreContext
from tools.simulation import plugin_kit


class NameScore:
    """Prefer other clusters for each binding."""

    name = "NameScore"

    def score(self, context: ScoreContext, /) -> int:
        def work() -> int:
            number = plugin_kit.number_of(context.cycle.binding.key.name)
            return (7 * number + 31 * plugin_kit.number_of(context.cluster.name)) % 101

        return plugin_kit.plain("NameScore.score", work)
