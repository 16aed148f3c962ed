"""The fields of bindings that the scheduler writes: Karmada has served all but ``components`` since 1.16.0."""

from __future__ import annotations

from typing import Any, Final

SERVED_SINCE_1_16: Final = frozenset(
    {
        *("spec.clusters", "spec.clusters[].name", "spec.clusters[].replicas"),
        "spec.gracefulEvictionTasks",
        *(
            f"spec.gracefulEvictionTasks[].{name}"
            for name in (
                *(
                    "creationTimestamp",
                    "clustersBeforeFailover",
                    "fromCluster",
                    "gracePeriodSeconds",
                    "message",
                ),
                *("preservedLabelState", "producer", "purgeMode", "reason", "replicas", "suppressDeletion"),
            )
        ),
        *("status.schedulerObservedGeneration", "status.schedulerObservingAffinityName"),
        *("status.lastScheduledTime", "status.conditions"),
        *(
            f"status.conditions[].{name}"
            for name in ("lastTransitionTime", "message", "observedGeneration", "reason", "status", "type")
        ),
    }
)
SERVED_SINCE_1_19: Final = frozenset(
    f"spec.clusters[].components{part}" for part in ("", "[].name", "[].replicas")
)
"""Written by the rules of 1.19 only."""


def paths_of(body: Any, path: str) -> set[str]:
    """Return the paths of all fields of a patch below ``spec`` or ``status``; annotations are no fields."""
    found: set[str] = set()
    if isinstance(body, list):
        for each in body:
            found |= paths_of(each, f"{path}[]")
    elif isinstance(body, dict):
        for name, value in body.items():
            if (path, name) != ("spec", "annotations") and value is not None:
                found |= {f"{path}.{name}"} | paths_of(value, f"{path}.{name}")
    return found
