"""Karmada's taint manager: what it evicts from a cluster with a NoExecute taint, how, and after which time.

Source: karmada v1.18.2 pkg/controllers/cluster/taint_manager.go, pkg/util/helper/taint.go,
pkg/apis/work/v1alpha2/binding_types_helper.go (GracefulEvictCluster), pkg/apis/cluster/mutation/mutation.go.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, Final

from karmada_scheduler.api.manifest import format_time, parse_time
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION

Object = dict[str, Any]

_KEY: Final = "down"
"""Of all taints."""


def new_taint(effect: str, now: datetime) -> Object:
    """Return a taint as the API server stores it; a NoExecute taint has its time."""
    taint = {"key": _KEY, "value": "", "effect": effect}
    return taint | ({"timeAdded": format_time(now)} if effect == "NoExecute" else {})


def tolerations(seconds: float) -> list[Object]:
    """Return tolerations of the taint for so many seconds: 0 not at all, infinity for ever."""
    if not seconds:
        return []
    limit = {} if seconds == math.inf else {"tolerationSeconds": seconds}
    return [{"key": _KEY, "operator": "Exists", "effect": "NoExecute", **limit}]


def seconds_tolerated(binding: Object, taint: Object, now: datetime) -> float:
    """Return how long a binding may stay on a cluster with a NoExecute taint: 0 not at all, infinity for ever.

    What counts is the placement that was applied. Without one the taint manager fails, and evicts nothing.
    """
    text = (binding["metadata"].get("annotations") or {}).get(APPLIED_PLACEMENT_ANNOTATION)
    if not text:
        return math.inf
    wanted = Taint(taint["key"], taint["value"], taint["effect"])
    first = next(
        (each for each in Placement.from_json(text).cluster_tolerations if each.tolerates(wanted)), None
    )
    if first is None:
        return 0.0
    if first.toleration_seconds is None:
        return math.inf
    end = parse_time(taint["timeAdded"]) + timedelta(seconds=first.toleration_seconds)
    return max(0.0, (end - now).total_seconds())


def evict_from(name: str, spec: Object) -> None:
    """Turn a target into an eviction task, unless there is one already."""
    targets = spec["clusters"]
    [gone] = (each for each in targets if each["name"] == name)
    targets.remove(gone)
    tasks = spec.setdefault("gracefulEvictionTasks", [])
    if all(each["fromCluster"] != name for each in tasks):
        cluster = (spec.get("failover") or {}).get("cluster") or {}
        task = {
            "fromCluster": name,
            "purgeMode": cluster.get("purgeMode") or "Gracefully",
            "reason": "TaintUntolerated",
            "producer": "TaintManager",
        }
        tasks.append(task | ({"replicas": gone["replicas"]} if gone.get("replicas") else {}))
