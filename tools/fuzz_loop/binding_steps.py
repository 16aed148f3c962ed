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

from tools import placements
from tools.controlplane import Object

from . import fleet
from .fleet import APPLIED, HOLD, POLICY_LABEL, Key
from .model import Model, Step, evictions_are_done, is_deleting, is_grouped, is_suspended

ELSEWHERE = "another-scheduler"


def scale(model: Model) -> Step | None:
    """Change the replicas."""
    choices = model.choices
    keys = model.made(lambda _, item: "replicaRequirements" in item["spec"])
    return patch(
        model,
        "scale",
        keys,
        lambda _: {"spec": {"replicas": choices.pick((0, 1, 2, 3, 4, 6, 9, 14, 30, 200))}},
    )


def place(model: Model) -> Step | None:
    """Replace the placement by another."""
    return patch(
        model,
        "place",
        model.made(),
        lambda _: {"spec": {"placement": replaced(placements.placement(model.choices, fleet.CLUSTERS))}},
    )


def edit(model: Model) -> Step | None:
    """Edit one part of the placement."""

    def body(item: Object) -> Object:
        new = placements.edited(model.choices, item["spec"]["placement"], fleet.CLUSTERS)
        return {"spec": {"placement": replaced(new)}}

    return patch(model, "edit placement", model.made(), body)


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


def require(model: Model) -> Step | None:
    """Change the resource request of a replica."""
    keys = model.made(lambda _, item: "replicaRequirements" in item["spec"])
    request = {"cpu": model.choices.pick(("250m", "500m", "1", "2", "3"))}
    return patch(
        model, "requirements", keys, lambda _: {"spec": {"replicaRequirements": {"resourceRequest": request}}}
    )


def recompose(model: Model) -> Step | None:
    """Change the pod templates of a workload that has several."""
    choices = model.choices
    keys = model.made(lambda _, item: "components" in item["spec"])
    made = [fleet.component(choices, number) for number in range(choices.between(1, 3))]
    return patch(model, "components", keys, lambda _: {"spec": {"components": made}})


def trigger(model: Model) -> Step | None:
    """Request a reschedule, as a WorkloadRebalancer does: later than the last scheduling by a second at least."""
    keys = model.made()
    if not keys:
        return None
    key = model.choices.pick(keys)
    moment = next_second(model.times.get(key))
    return patch(model, "reschedule", [key], lambda _: {"spec": {"rescheduleTriggeredAt": moment}})


def next_second(after: str | None) -> str:
    """Wait until the clock shows a later second than `after`, and return it."""
    while True:
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if after is None or now > after:
            return now
        time.sleep(0.05)


def suspend(model: Model) -> Step | None:
    """Suspend the scheduling, or resume it."""
    keys = model.made(
        lambda key, item: not is_grouped(item) and (is_suspended(item) or key not in model.failed)
    )
    return patch(
        model,
        "suspend or resume",
        keys,
        lambda item: {"spec": {"suspension": {"scheduling": not is_suspended(item)}}},
    )


def hand_over(model: Model) -> Step | None:
    """Give the binding to another scheduler, or back."""
    keys = model.made(lambda key, item: _is_away(item) or key not in model.failed)
    return patch(
        model,
        "schedulerName away or back",
        keys,
        lambda item: {"spec": {"schedulerName": fleet.SCHEDULER if _is_away(item) else ELSEWHERE}},
    )


def _is_away(item: Object) -> bool:
    return bool(item["spec"].get("schedulerName") == ELSEWHERE)


def claim(model: Model) -> Step | None:
    """Remove the policy's label, or put it on."""

    def body(item: Object) -> Object:
        return claimed_by(None if _is_claimed(item) else "policy-new")

    keys = model.made(lambda key, item: not _is_claimed(item) or key not in model.failed)
    return patch(model, "policy label off or on", keys, body)


def claimed_by(policy: str | None) -> Object:
    """Return a patch of the label that names the policy which claims a binding."""
    return {"metadata": {"labels": {POLICY_LABEL: policy}}}


def _is_claimed(item: Object) -> bool:
    return bool(item["metadata"].get("labels", {}).get(POLICY_LABEL))


def resume_all(model: Model) -> Step | None:
    """Return a binding that no scheduler handles to the run's scheduler, so that not all drop out in the end."""

    def body(item: Object) -> Object:
        suspension = {} if is_grouped(item) else {"suspension": {"scheduling": False}}
        return {
            "metadata": {"labels": {POLICY_LABEL: "policy-back"}},
            "spec": {"schedulerName": fleet.SCHEDULER, **suspension},
        }

    def idle(_: Key, item: Object) -> bool:
        return (is_suspended(item) and not is_grouped(item)) or _is_away(item) or not _is_claimed(item)

    return patch(model, "all back", model.made(idle), body)


def write_clusters(model: Model) -> Step | None:
    """Write spec.clusters, as only a scheduler should."""
    choices = model.choices

    def body(item: Object) -> Object:
        most = max(1, item["spec"].get("replicas", 0))
        clusters = [
            {
                "name": name,
                **({"replicas": choices.between(1, most)} if most > 1 or choices.chance(0.7) else {}),
            }
            for name in choices.some(model.names(), 3, 0)
        ]
        return {"spec": {"clusters": clusters or None}}

    return patch(model, "foreign write of clusters", model.made(_was_applied), body)


def forget_placement(model: Model) -> Step | None:
    """Remove the applied-placement annotation, with a change that makes schedulers reconcile the binding."""
    return patch(
        model,
        "annotation removed",
        model.made(_was_applied),
        lambda item: {"metadata": {"annotations": {APPLIED: None}}, **poked(item)},
    )


def _was_applied(_: Key, item: Object) -> bool:
    return APPLIED in item["metadata"].get("annotations", {})


def poke(model: Model) -> Step | None:
    """Change a field of the spec that no decision depends on."""
    return patch(model, "generation only", model.made(), poked)


def poked(item: Object) -> Object:
    """Return a patch that increases a binding's generation and has no other effect."""
    flag = "Overwrite" if item["spec"].get("conflictResolution") != "Overwrite" else "Abort"
    return {"spec": {"conflictResolution": flag}}


def evict(model: Model) -> Step | None:
    """Move a binding off a cluster with a task, as the controllers of failures do."""
    choices = model.choices
    keys = model.made(lambda key, item: item["spec"].get("clusters") and _was_applied(key, item))
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
    kept = [item for item in spec.get("gracefulEvictionTasks") or () if item["fromCluster"] != target["name"]]
    clusters = [item for item in spec["clusters"] if item["name"] != target["name"]]
    body = {"spec": {"clusters": clusters or None, "gracefulEvictionTasks": [*kept, task]}}
    return patch(model, "eviction task", [key], lambda _: body)


def end_eviction(model: Model) -> Step | None:
    """End an eviction: by removing the tasks, or by allowing the controller to."""
    keys = model.made(lambda _, item: item["spec"].get("gracefulEvictionTasks"))

    def body(item: Object) -> Object:
        if model.choices.chance(0.5):
            return {"spec": {"gracefulEvictionTasks": None}}
        tasks = [{**task, "suppressDeletion": False} for task in item["spec"]["gracefulEvictionTasks"]]
        return {"spec": {"gracefulEvictionTasks": tasks}}

    return patch(model, "eviction task ends", keys, body)


def delete(model: Model) -> Step | None:
    """Delete a binding; one with a finalizer stays and is not changed from then on."""
    keys = model.made()
    if len(keys) < len(fleet.MADE) // 2:
        return None
    key = model.choices.pick(keys)
    held = HOLD in model.bindings[key]["metadata"].get("finalizers", [])
    return Step(
        "binding deleting" if held else "binding deleted",
        str(key),
        None,
        lambda plane: plane.client.delete(key.path),
    )


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


def patch(model: Model, kind: str, keys: list[Key], body_of: Callable[[Object], Object]) -> Step | None:
    """Merge-patch one of some bindings, None if there are none."""
    if not keys:
        return None
    key = model.choices.pick(keys)
    body = body_of(model.bindings[key])
    return Step(kind, str(key), body, lambda plane: plane.patch(key, body), taken=evictions_are_done)
