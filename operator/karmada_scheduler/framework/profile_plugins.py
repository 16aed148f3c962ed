"""Which plugins run at which point, in which order and with which weight: what a profile comes down to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from karmada_scheduler.framework.extension_points import Point, points_of
from karmada_scheduler.framework.scheduling_points import Plugin


@dataclass(frozen=True, slots=True)
class ProfilePlugins:
    """The plugins of a profile.

    Attributes:
        points: The plugins of each point, in running order; a plugin is one object at all its points.
        weights: Of score plugins, by name; 1 where there is none.
    """

    points: Mapping[Point, Sequence[Plugin]] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plugins: Mapping[str, Plugin], *, weights: Mapping[str, int] | None = None) -> ProfilePlugins:
        """Let every plugin take part in all points that it has, in the given order."""
        points: dict[Point, list[Plugin]] = {}
        for plugin in plugins.values():
            for point in points_of(plugin):
                points.setdefault(point, []).append(plugin)
        return cls(points, weights or {})

    def at(self, point: Point) -> Sequence[Plugin]:
        """Return the plugins of a point, in running order."""
        return self.points.get(point, ())

    @property
    def plugins(self) -> list[Plugin]:
        """Every plugin once, in the order of first appearance."""
        return list({id(each): each for plugins in self.points.values() for each in plugins}.values())
