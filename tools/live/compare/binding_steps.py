"""Changes of a binding itself, as controllers and people make them.

A binding that an attempt failed for is tried again by upstream even after it was suspended or given to another
scheduler; ours checks it again when the retry is due (docs/differences-from-upstream.md). The time of upstream's next try
cannot be known, so such a binding is not drawn for these two steps, nor for losing its policy: the events
that would enqueue it at a known moment are then ignored.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from tools import placements
from tools.controlplane import Object

from . import fleet
from .fleet import APPLIED, HOLD, POLICY_LABEL, Key
from .model import Draw, Model, Step, evictions_are_done, is_deleting, is_grouped, is_suspended

ELSEWHERE = "another-scheduler"
Body = Callable[[Model, Object], Object]
"""Returns the merge patch of a binding."""
Fits = Callable[[Model, Key, Object], object]
"""Returns whether a binding may be patched."""


def patch(model: Model, kind: str, keys: list[Key], body_of: Callable[[Object], Object]) -> Step | None:
    """Merge-patch one of some bindings, None if there are none."""
    if not keys:
        return None
    key = model.choices.pick(keys)
    body = body_of(model.bindings[key])
    return Step(kind, str(key), body, lambda plane: plane.patch(key, body), taken=evictions_are_done)


def patches(kind: str, body: Body, fits: Fits = lambda *_: True) -> Draw:
    """Return what draws a merge patch of one of the bindings that fit."""
    return lambda model: patch(model, kind, model.made(partial(fits, model)), partial(body, model))


def replaced(placement: Object) -> Object:
    """Return a merge patch that replaces the whole placement."""
    names = (
        "clusterAffinity",
        "clusterAffinities",
        "clusterTolerations",
        "spreadConstraints",
        "replicaScheduling",
    )
    replaced: Object = dict.fromkeys(names)
    for name, value in placement.items():
        replaced[name] = value if isinstance(value, list) else _only(name, value)
    return replaced


def _only(name: str, value: Object) -> Object:
    parts = {
        "clusterAffinity": ("clusterNames", "exclude", "labelSelector", "fieldSelector"),
        "replicaScheduling": ("replicaSchedulingType", "replicaDivisionPreference", "weightPreference"),
        "labelSelector": ("matchLabels", "matchExpressions"),
        "matchLabels": tuple(placements.LABELS),
        "weightPreference": ("staticWeightList", "dynamicWeight"),
    }.get(name, ())
    only: Object = dict.fromkeys(parts)
    for part, inner in value.items():
        only[part] = _only(part, inner) if isinstance(inner, dict) else inner
    return only


def next_second(after: str | None) -> str:
    """Wait until the clock shows a later second than `after`, and return it."""
    while True:
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if after is None or now > after:
            return now
        time.sleep(0.05)


def claimed_by(policy: str | None) -> Object:
    """Return a patch of the label that names the policy which claims a binding."""
    return {"metadata": {"labels": {POLICY_LABEL: policy}}}


def poked(binding: Object) -> Object:
    """Return a patch that increases a binding's generation and has no other effect."""
    flag = "Overwrite" if binding["spec"].get("conflictResolution") != "Overwrite" else "Abort"
    return {"spec": {"conflictResolution": flag}}


def trigger(model: Model) -> Step | None:
    """Request a reschedule, as a WorkloadRebalancer does: later than the last scheduling by a second at least."""
    keys = model.made()
    if not keys:
        return None
    key = model.choices.pick(keys)
    moment = next_second(model.times.get(key))
    return patch(model, "reschedule", [key], lambda _: {"spec": {"rescheduleTriggeredAt": moment}})


def evict(model: Model) -> Step | None:
    """Move a binding off a cluster with a task, as the controllers of failures do."""
    choices = model.choices
    keys = model.made(lambda key, found: found["spec"].get("clusters") and _was_applied(model, key, found))
    if not keys:
        return None
    key = choices.pick(keys)
    spec = model.bindings[key]["spec"]
    target = choices.pick(spec["clusters"])
    task: Object = {
        "fromCluster": target["name"],
        "reason": "ApplicationFailure",
        "producer": "fuzz-loop",
        "purgeMode": choices.pick(("Gracefully", "Directly")),
    }
    if target.get("replicas"):
        task["replicas"] = target["replicas"]
    if choices.chance(0.2):
        task["suppressDeletion"] = True
    tasks = [
        kept for kept in spec.get("gracefulEvictionTasks") or () if kept["fromCluster"] != target["name"]
    ]
    clusters = [kept for kept in spec["clusters"] if kept["name"] != target["name"]]
    body = {"spec": {"clusters": clusters or None, "gracefulEvictionTasks": [*tasks, task]}}
    return patch(model, "eviction task", [key], lambda _: body)


def delete(model: Model) -> Step | None:
    """Delete a binding; one with a finalizer stays and is not changed from then on."""
    keys = model.made()
    if len(keys) < len(fleet.MADE) // 2:
        return None
    key = model.choices.pick(keys)
    held = HOLD in model.bindings[key]["metadata"].get("finalizers", [])
    kind = "binding deleting" if held else "binding deleted"
    return Step(kind, str(key), None, lambda plane: plane.client.delete(key.path))


def touch_deleting(model: Model) -> Step | None:
    """Change a binding that is being deleted, or remove its finalizer."""
    keys = [key for key in fleet.MADE if key in model.bindings and is_deleting(model.bindings[key])]
    if model.choices.chance(0.6):
        return patch(model, "binding removed", keys, lambda _: {"metadata": {"finalizers": None}})
    return patch(model, "binding deleting, changed", keys, poked)


def create(model: Model) -> Step | None:
    """Create a binding under a name that no binding has now; an earlier one may have had it."""
    keys = [key for key in fleet.MADE if key not in model.bindings]
    if not keys:
        return None
    key = model.choices.pick(keys)
    # A retry that one of this name left behind would decide it, suspended or not.
    manifest = fleet.binding(model.choices, key, grouped=model.groups and key not in model.failed)
    return Step("binding created", str(key), manifest, lambda plane: plane.client.create(manifest))


def _scaled(model: Model, _: Object) -> Object:
    return {"spec": {"replicas": model.choices.pick((0, 1, 2, 3, 4, 6, 9, 14, 30, 200))}}


def _with_another_placement(model: Model, _: Object) -> Object:
    return {"spec": {"placement": replaced(placements.placement(model.choices, fleet.CLUSTERS))}}


def _edited(model: Model, binding: Object) -> Object:
    new = placements.edited(model.choices, binding["spec"]["placement"], fleet.CLUSTERS)
    return {"spec": {"placement": replaced(new)}}


def _requiring(model: Model, _: Object) -> Object:
    request = {"cpu": model.choices.pick(("250m", "500m", "1", "2", "3"))}
    return {"spec": {"replicaRequirements": {"resourceRequest": request}}}


def _recomposed(model: Model, _: Object) -> Object:
    parts = [fleet.component(model.choices, number) for number in range(model.choices.between(1, 3))]
    return {"spec": {"components": parts}}


def _back(_: Model, binding: Object) -> Object:
    suspension = {} if is_grouped(binding) else {"suspension": {"scheduling": False}}
    return {**claimed_by("policy-back"), "spec": {"schedulerName": fleet.SCHEDULER, **suspension}}


def _on_other_clusters(model: Model, binding: Object) -> Object:
    choices, most = model.choices, max(1, binding["spec"].get("replicas", 0))
    has_replicas = [most > 1 or choices.chance(0.7) for _ in fleet.CLUSTERS]
    clusters = [
        {"name": name, **({"replicas": choices.between(1, most)} if replicas else {})}
        for name, replicas in zip(choices.some(model.names(), 3, 0), has_replicas, strict=False)
    ]
    return {"spec": {"clusters": clusters or None}}


def _without_tasks(model: Model, binding: Object) -> Object:
    """End an eviction: by removing the tasks, or by allowing the controller to."""
    if model.choices.chance(0.5):
        return {"spec": {"gracefulEvictionTasks": None}}
    tasks = [{**task, "suppressDeletion": False} for task in binding["spec"]["gracefulEvictionTasks"]]
    return {"spec": {"gracefulEvictionTasks": tasks}}


def _is_away(binding: Object) -> bool:
    return bool(binding["spec"].get("schedulerName") == ELSEWHERE)


def _is_claimed(binding: Object) -> bool:
    return bool(binding["metadata"].get("labels", {}).get(POLICY_LABEL))


def _was_applied(_: Model, _key: Key, binding: Object) -> bool:
    return APPLIED in binding["metadata"].get("annotations", {})


def _has(field: str) -> Fits:
    return lambda _, _key, binding: binding["spec"].get(field)


def _is_idle(_: Model, _key: Key, binding: Object) -> bool:
    """Return whether no scheduler handles a binding."""
    is_held = is_suspended(binding) and not is_grouped(binding)
    return is_held or _is_away(binding) or not _is_claimed(binding)


STEPS: Final[tuple[tuple[int, Draw], ...]] = (
    (12, patches("scale", _scaled, _has("replicaRequirements"))),
    (12, patches("place", _with_another_placement)),
    (8, patches("edit placement", _edited)),
    (6, trigger),
    (
        4,
        patches(
            "suspend or resume",
            lambda _, binding: {"spec": {"suspension": {"scheduling": not is_suspended(binding)}}},
            lambda model, key, binding: (
                not is_grouped(binding) and (is_suspended(binding) or key not in model.failed)
            ),
        ),
    ),
    (
        4,
        patches(
            "schedulerName away or back",
            lambda _, binding: {
                "spec": {"schedulerName": fleet.SCHEDULER if _is_away(binding) else ELSEWHERE}
            },
            lambda model, key, binding: _is_away(binding) or key not in model.failed,
        ),
    ),
    (
        4,
        patches(
            "policy label off or on",
            lambda _, binding: claimed_by(None if _is_claimed(binding) else "policy-new"),
            lambda model, key, binding: not _is_claimed(binding) or key not in model.failed,
        ),
    ),
    (5, patches("all back", _back, _is_idle)),
    (6, patches("foreign write of clusters", _on_other_clusters, _was_applied)),
    (
        2,
        patches(
            "annotation removed",
            lambda _, binding: {"metadata": {"annotations": {APPLIED: None}}, **poked(binding)},
            _was_applied,
        ),
    ),
    (2, patches("requirements", _requiring, _has("replicaRequirements"))),
    (3, patches("components", _recomposed, _has("components"))),
    (2, patches("generation only", lambda _, binding: poked(binding))),
    (5, evict),
    (4, patches("eviction task ends", _without_tasks, _has("gracefulEvictionTasks"))),
    (3, delete),
    (2, touch_deleting),
    (4, create),
)
"""What draws each kind of step, and how often, compared with the others of all modules."""
