"""ClusterEviction: refuse clusters from which the binding is being evicted."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

from karmada_scheduler.framework import (
    SUCCESS,
    Cycle,
    Edit,
    EditContext,
    Evidence,
    EvidenceContext,
    FilterContext,
    Harm,
    Result,
    Side,
)

_CODE: Final = "BeingEvicted"
_EVICTED: Final = Result.unschedulable("cluster(s) is in the process of eviction")


class ClusterEviction:
    """Filter by the binding's graceful eviction tasks."""

    name = "ClusterEviction"
    filter_key_covers_current = True
    free_of_side_effects = True
    codes: Final = {_CODE: "the cluster has a graceful eviction task"}

    def filter_key(self, cycle: Cycle, /) -> Hashable:  # noqa: ARG002
        """Depends on nothing: only clusters with an eviction task are refused."""
        return ()

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster as long as the binding has an eviction task for it."""
        return _EVICTED if context.cluster.name in context.cycle.evicted else SUCCESS

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        """Return the eviction task."""
        fields: dict[str, Any] = {"clause": "being evicted"}
        tasks = (context.binding_manifest.get("spec") or {}).get("gracefulEvictionTasks") or ()
        for task in tasks:
            if task.get("fromCluster") == context.cluster.name:
                names = ("reason", "message", "producer", "creationTimestamp", "gracePeriodSeconds")
                fields |= {name: task[name] for name in names if task.get(name) is not None}
                break
        text = f"it has a graceful eviction task ({fields.get('reason', 'without a reason')})"
        return Evidence(_CODE, "being evicted", fields, text)

    def edits(self, context: EditContext, /) -> Iterator[Edit]:
        """Yield the end of the eviction."""
        for index, task in enumerate(context.items("spec", "gracefulEvictionTasks")):
            if isinstance(task, dict) and task.get("fromCluster") == context.name:
                yield context.on(Side.CLUSTER, context.binding_ref).remove(
                    "endEviction", ("spec", "gracefulEvictionTasks", index), f"end the eviction from {context.name}",
                    harm=Harm.WIDENS,
                    caution=f"The eviction has a reason: the one who asked for it wants the replicas off {context.name}.",
                )  # fmt: skip
