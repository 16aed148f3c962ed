"""The extension points and their names in configuration files, metrics, error texts and Python."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final


class Point(Enum):
    """An extension point; the value is its field in a profile, as in kube-scheduler's configuration."""

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    ESTIMATE_REPLICAS = "estimateReplicas"
    SELECT = "select"
    ASSIGN = "assign"
    GUARD = "guard"
    RECONSIDER = "reconsider"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"

    def __init__(self, field: str) -> None:
        """Keep ``label``: the name in metrics and texts, for example ``PreFilter``."""
        self.label: Final = field[0].upper() + field[1:]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of a plugin at this extension point."""
        return _METHODS.get(self, (self.name.lower(),))

    def is_served_by(self, plugin: object) -> bool:
        """Return whether a plugin, or a class of plugins, has the methods."""
        if self is Point.FILTER and callable(getattr(plugin, FILTER_CLUSTERS, None)):
            return True
        return all(callable(getattr(plugin, method, None)) for method in self.methods)


FILTER_CLUSTERS: Final = "filter_clusters"
PRE_FILTER_EXTENSIONS: Final = ("add_binding", "remove_binding")
GUARD_OBSERVATION: Final = "guard_observation"
START_TERM: Final = "start_term"
POST_FILTER_FOR: Final = "post_filter_for"
FOR_FILTER: Final = "filter"
FOR_CAPACITY: Final = "capacity"
NORMALIZE_SCORE: Final = "ScoreExtensionNormalize"
"""The label of NormalizeScore in metrics: upstream's."""

_METHODS: Final = {
    Point.QUEUE_SORT: ("less",),
    Point.RECONSIDER: ("propose", "reconsider"),
    Point.RESERVE: ("reserve", "unreserve"),
}
"""Of the extension points whose method has another name than they have."""


def points_of(plugin: object) -> tuple[Point, ...]:
    """Return the extension points of a plugin, or of a class of plugins, in running order."""
    return tuple(point for point in Point if point.is_served_by(plugin))


def post_filter_cases(plugin: object) -> Collection[str]:
    """Return after what the PostFilter of a plugin, or of a class, is called: ``FOR_FILTER``, ``FOR_CAPACITY``, or both."""
    cases: Collection[str] = getattr(plugin, POST_FILTER_FOR, (FOR_FILTER,))
    return cases


def is_plugin(candidate: object) -> bool:
    """Return whether an object has a name and at least one extension point."""
    return isinstance(getattr(candidate, "name", None), str) and bool(points_of(candidate))
