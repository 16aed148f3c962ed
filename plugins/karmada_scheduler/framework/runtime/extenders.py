"""Calls the extenders of a profile, after the plugins of Filter and Score.

Extenders are programs; ``karmada_pyscheduler.extenders`` calls them with kube-scheduler's protocol over HTTP.

Source: kube-scheduler v0.35 pkg/scheduler/schedule_one.go findNodesThatPassExtenders, prioritizeNodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.result import Result
from karmada_scheduler.structs import Struct, field


class ExtenderError(Exception):
    """A request to an extender failed, or its response cannot be used; the text has its URL."""


class ExtenderFilterResult(Struct, frozen=True):
    """The result of filter; each cluster of the request is in one of the two.

    Attributes:
        kept: The names of the clusters that can take the binding.
        refused: The refusals of the others, by name.
    """

    kept: frozenset[str]
    refused: Mapping[str, Result] = field(default_factory=dict)


class Extender(Protocol):
    """An extender of the configuration.

    Attributes:
        name: Its URL, for error texts.
        ignorable: Whether a decision continues without it when it fails.
        filters, prioritizes, binds: The operations that it has.
    """

    name: str
    ignorable: bool
    filters: bool
    prioritizes: bool
    binds: bool

    def is_interested(self, binding: Binding) -> bool:
        """Return whether the extender is called for a binding."""

    async def filter(self, cycle: Cycle, clusters: Sequence[Cluster]) -> ExtenderFilterResult:
        """Return which clusters can take the binding; ExtenderError if that fails."""

    async def prioritize(self, cycle: Cycle, clusters: Sequence[Cluster]) -> Mapping[str, int]:
        """Return scores by cluster name, weight included; ExtenderError if that fails."""

    async def bind(self, cycle: Cycle, targets: Sequence[TargetCluster]) -> None:
        """Let the extender write the decision; ExtenderError if that fails."""


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
