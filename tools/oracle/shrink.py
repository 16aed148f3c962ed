"""Shrinks a failing scenario: removes or simplifies every part that the difference does not need.

Hypothesis shrinks what it generated itself, byte by byte of its own choices; a case that was found by
another generator has to be reduced as a document. This does it with Hypothesis' order of preference
(shorter, then simpler) and its notion of a fixed point: it ends when no single step helps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Scenario = dict[str, Any]
Path = tuple[str | int, ...]

_KEPT = frozenset(
    {"apiVersion", "kind", "name", "namespace", "affinityName", "resource", "metadata", "spec", "status"}
)
"""Fields without which a document is no longer one; they are made plainer, not taken away."""
_KEPT_AT_THE_TOP = frozenset({"gates", "plugins", "emptyWorkloadPropagation", "clusters", "bindings"})


def shrink(scenario: Scenario, still_fails: Callable[[Scenario], bool], *, budget: int = 4000) -> Scenario:
    """Return a scenario that still fails and from which nothing can be removed.

    Args:
        scenario: A failing one, with one binding.
        still_fails: Returns whether a scenario shows the difference; False for a scenario that cannot be read.
        budget: How many scenarios to try at most.
    """
    tries = 0
    progress = True
    while progress and tries < budget:
        progress = False
        for candidate in _simpler(scenario):
            tries += 1
            if still_fails(candidate):
                scenario, progress = candidate, True
                break
            if tries >= budget:
                break
    return scenario


def _simpler(scenario: Scenario) -> Iterator[Scenario]:
    yield from _halved(scenario)
    for path, _ in sorted(_nodes(scenario), key=lambda node: -_size(node[1])):
        if _may_go(path):
            yield _changed(scenario, path)
    for path, value in _nodes(scenario):
        for plainer in _plainer(path, value):
            yield _changed(scenario, path, plainer)


def _halved(scenario: Scenario) -> Iterator[Scenario]:
    clusters = scenario["clusters"]
    size = len(clusters) // 2
    while size >= 2:
        for start in range(0, len(clusters), size):
            yield {**scenario, "clusters": clusters[:start] + clusters[start + size :]}
        size //= 2


def _nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    items: Iterator[tuple[str | int, Any]]
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    else:
        return
    for key, item in items:
        yield (*path, key), item
        yield from _nodes(item, (*path, key))


def _may_go(path: Path) -> bool:
    if len(path) == 1:
        return path[0] not in _KEPT_AT_THE_TOP
    return path[0] != "gates" and path != ("bindings", 0) and path[-1] not in _KEPT


def _size(value: Any) -> int:
    return len(json.dumps(value))


def _plainer(path: Path, value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        if value and path[0] != "gates":
            yield False
    elif isinstance(value, int):
        yield from (each for each in (0, 1, value // 2, value - 1) if abs(each) < abs(value))
    elif isinstance(value, str) and path[0] == "clusters" and path[-1] not in _KEPT and len(value) > 1:
        yield from ("1", "2", "110")


def _changed(scenario: Scenario, path: Path, *replacement: Any) -> Scenario:
    """Copy a scenario with the node at a path replaced or removed."""
    copy: Scenario = json.loads(json.dumps(scenario))
    parent: Any = copy
    for key in path[:-1]:
        parent = parent[key]
    if replacement:
        parent[path[-1]] = replacement[0]
    else:
        del parent[path[-1]]
    return copy
