"""Calls the extenders of a profile, after the plugins of Filter and Score.

Source: kube-scheduler v0.35 pkg/scheduler/schedule_one.go findNodesThatPassExtenders, prioritizeNodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extender import Extender, ExtenderError
from karmada_scheduler.framework.result import Result


async def filter_by_extenders(
    extenders: Sequence[Extender], cycle: Cycle, clusters: Sequence[Cluster]
) -> tuple[list[Cluster], dict[str, Result]]:
    """Call one extender after another, each with the clusters that passed the previous one.

    Returns:
        The clusters that pass all extenders, in the given order, and the refusals of the others by name.

    Raises:
        PluginError: An extender that is not ignorable failed.
    """
    feasible = list(clusters)
    refused: dict[str, Result] = {}
    for extender in extenders:
        if not feasible:
            break
        if not extender.filters or not extender.is_interested(cycle.binding):
            continue
        try:
            result = await extender.filter(cycle, feasible)
        except ExtenderError as error:
            if not extender.ignorable:
                raise PluginError(str(error)) from error
            continue  # the extender has logged and counted it
        feasible = [cluster for cluster in feasible if cluster.name in result.kept]
        refused.update(result.refused)
    return feasible, refused


async def scores_of_extenders(
    extenders: Sequence[Extender], cycle: Cycle, clusters: Sequence[Cluster]
) -> dict[str, list[int]]:
    """Call all extenders at the same time; an extender that fails has no scores.

    Returns:
        Scores by the extender's name, one per cluster in the given order.
    """
    called = [each for each in extenders if each.prioritizes and each.is_interested(cycle.binding)]
    if not called:
        return {}
    import asyncio

    answers = await asyncio.gather(
        *(extender.prioritize(cycle, clusters) for extender in called), return_exceptions=True
    )
    scores: dict[str, list[int]] = {}
    for extender, answer in zip(called, answers, strict=True):
        if isinstance(answer, Mapping):
            own = [answer.get(cluster.name, 0) for cluster in clusters]
            others = scores.get(extender.name)  # two entries with the same URL both count
            scores[extender.name] = (
                own if others is None else [sum(both) for both in zip(own, others, strict=True)]
            )
        elif not isinstance(answer, ExtenderError):  # the extender has logged and counted it
            raise answer
    return scores
