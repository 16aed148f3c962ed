"""The plugins of a profile by extension point, in running order, with the weights of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.binding_points import (
    BindPlugin,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.guard_point import GuardPlugin, ReconsiderPlugin
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.scheduling_points import (
    AssignPlugin,
    EstimateReplicasPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    SelectPlugin,
)
from karmada_scheduler.structs import Struct, field


class ProfilePlugins(Struct, frozen=True, kw_only=True):
    """The plugins of each extension point, in running order. A plugin is the same object at all its points.

    Attributes:
        weights: The weights of score plugins by name; a plugin without one has the weight 1.
    """

    pre_enqueue: Sequence[PreEnqueuePlugin] = ()
    queue_sort: Sequence[QueueSortPlugin] = ()
    pre_filter: Sequence[PreFilterPlugin] = ()
    filter: Sequence[FilterPlugin] = ()
    post_filter: Sequence[PostFilterPlugin] = ()
    pre_score: Sequence[PreScorePlugin] = ()
    score: Sequence[ScorePlugin] = ()
    estimate_replicas: Sequence[EstimateReplicasPlugin] = ()
    select: Sequence[SelectPlugin] = ()
    assign: Sequence[AssignPlugin] = ()
    guard: Sequence[GuardPlugin] = ()
    reconsider: Sequence[ReconsiderPlugin] = ()
    reserve: Sequence[ReservePlugin] = ()
    permit: Sequence[PermitPlugin] = ()
    pre_bind: Sequence[PreBindPlugin] = ()
    bind: Sequence[BindPlugin] = ()
    post_bind: Sequence[PostBindPlugin] = ()
    weights: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_points(
        cls, points: Mapping[Point, Sequence[Any]], weights: Mapping[str, int] | None = None
    ) -> Self:
        """Return the plugins of a mapping; each must have the methods of its extension point."""
        by_field = {point.name.lower(): tuple(plugins) for point, plugins in points.items()}
        return cls(**by_field, weights=weights or {})

    def at(self, point: Point) -> Sequence[Plugin]:
        """Return the plugins of an extension point, in running order."""
        plugins: Sequence[Plugin] = getattr(self, point.name.lower())
        return plugins

    @property
    def unique(self) -> list[Plugin]:
        """Every plugin once, in the order in which a decision first calls it."""
        return list({id(plugin): plugin for point in Point for plugin in self.at(point)}.values())


Some = TypeVar("Some", bound=Plugin)


class Concerned(Generic[Some]):
    """The plugins of an extension point that are called for a binding."""

    def __init__(self, plugins: Sequence[Some]) -> None:
        """Take the plugins of the extension point in running order."""
        self._all = plugins
        self._without_terms = [plugin for plugin in plugins if not getattr(plugin, "only_with_terms", False)]

    def by(self, binding: Binding) -> Sequence[Some]:
        """Return all, or for a placement without affinity terms those without ``only_with_terms``."""
        placement = binding.spec.placement
        return self._all if placement is not None and placement.cluster_affinities else self._without_terms
