"""FreeGPU: prefer the clusters with the most free GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass

from karmada_scheduler.framework import Handle, NormalizeScoreContext, ScoreContext


class FreeGPU:
    """Score by the free GPUs in the cluster's resource summary: 100 for the most, 0 for none."""

    name = "FreeGPU"

    @dataclass
    class Args:
        resource: str = "nvidia.com/gpu"

    def __init__(self, args: Args, handle: Handle) -> None:
        self.resource = args.resource

    def score(self, context: ScoreContext, /) -> int:
        summary = context.cluster.resource_summary
        free = summary.available.get(self.resource) if summary else None
        return max(0, free.value) if free else 0

    def normalize_score(self, context: NormalizeScoreContext, /) -> Sequence[int]:
        most = max(context.scores)
        return [100 * free // most if most else 0 for free in context.scores]
