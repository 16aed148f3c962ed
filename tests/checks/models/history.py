"""What happened to a binding: its states in order, without times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

Object = Mapping[str, Any]


class State(NamedTuple):
    """What a write of a binding says to schedulers and people.

    Attributes:
        targets: Replicas by cluster, in order.
        tasks: The eviction tasks, with ``stamped`` in place of their time.
        copies: By cluster: the health of its copy, and its ready replicas. Those that are not applied yet are left out:
            Karmada lists them only if something else has it write the status.
    """

    targets: tuple[tuple[str, int], ...]
    tasks: tuple[tuple[tuple[str, Any], ...], ...]
    copies: Mapping[str, tuple[str, int]]


def state_of(binding: Object, names: Mapping[str, str]) -> State:
    """Return the state of a binding; ``names`` gives its clusters the names that they have in the sequence."""

    def named(cluster: str) -> str:
        return names.get(cluster, cluster)

    spec = binding["spec"]
    return State(
        tuple((named(each["name"]), each.get("replicas", 0)) for each in spec.get("clusters") or ()),
        tuple(_task(each, named(each["fromCluster"])) for each in spec.get("gracefulEvictionTasks") or ()),
        {
            named(each["clusterName"]): (
                each.get("health", ""),
                (each.get("status") or {}).get("readyReplicas", 0),
            )
            for each in (binding.get("status") or {}).get("aggregatedStatus") or ()
            if each.get("applied")
        },
    )


def _task(task: Object, cluster: str) -> tuple[tuple[str, Any], ...]:
    fields = {**task, "fromCluster": cluster, "stamped": bool(task.get("creationTimestamp"))}
    fields.pop("creationTimestamp", None)
    return tuple(sorted(fields.items()))


def histories(
    states: Sequence[State], at_rest: Sequence[State], clusters: Sequence[str]
) -> dict[str, list[Any]]:
    """Return what has to be equal: the states at rest, the histories of targets and tasks, and of the copy on each cluster.

    Controllers that do not wait for each other may write in any order, so the copies of two clusters are not compared with
    each other.
    """
    found: dict[str, list[Any]] = {
        "at rest": list(at_rest),
        "targets and tasks": list(_without_repetitions((each.targets, each.tasks) for each in states)),
    }
    for name in clusters:
        found[f"copy on {name}"] = list(_without_repetitions(each.copies.get(name) for each in states))
    return found


def _without_repetitions(values: Iterable[Any]) -> Iterator[Any]:
    return (value for value, _ in groupby(values))
