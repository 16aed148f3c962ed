"""Changes of clusters: labels, spec, taints, capacity, readiness, and their coming and going.

Each reaches a scheduler as one change, so that no client can act on half of it. Before a taint that evicts, the
cluster's labels are touched and everything comes to rest: a status that changed silently would otherwise have
a scheduler and the taint manager write at the same moment, and upstream's last writer wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tools.controlplane import Object, SimulatedMember
from tools.controlplane.karmada import CLUSTERS as CLUSTER_PATH
from tools.placements import LABELS, PROVIDERS, REGIONS, TAINTS

from . import fleet, group_steps
from .fleet import HOLD
from .model import Cluster, Draw, Model, Step, evictions_are_done, is_off
from .plane import Bindings, Plane

NOT_READY = "cluster.karmada.io/not-ready"
MOST_DELETING = 2


def relabel(model: Model) -> Step | None:
    """Change, add or remove a label."""
    name = model.any_cluster()
    key = model.choices.pick(tuple(LABELS))
    values: list[str | None] = [
        value for value in (*LABELS[key], None) if value != model.clusters[name].labels.get(key)
    ]
    value = model.choices.pick(values)
    if value is None:
        model.clusters[name].labels.pop(key)
    else:
        model.clusters[name].labels[key] = value
    return _patch("cluster labels", name, {"metadata": {"labels": {key: value}}})


def move(model: Model) -> Step | None:
    """Change the region or the provider."""
    name = model.any_cluster()
    part, values = model.choices.pick((("region", REGIONS), ("provider", PROVIDERS)))
    return _patch("cluster spec", name, {"spec": {part: model.choices.pick(values)}})


def taint(model: Model) -> Step | None:
    """Add a NoSchedule taint, or remove one."""
    name = model.any_cluster()
    cluster = model.clusters[name]
    key, value = model.choices.pick(TAINTS)
    kept = [item for item in cluster.taints if item["key"] != key]
    if len(kept) == len(cluster.taints):
        kept.append(_taint(key, value, "NoSchedule"))
    cluster.taints = kept
    return _patch("taint NoSchedule", name, _taints(cluster))


def evict_all(model: Model) -> Step | None:
    """Have the taint manager move bindings off a cluster; the next step takes the taint away.

    It repeats its check every ten seconds while the taint exists, which is too long for a step.
    """
    name = model.any_cluster()
    cluster = model.clusters[name]
    grouped = group_steps.on_turn(model)
    if grouped is None:
        return None
    key, value = model.choices.pick(TAINTS)
    evicting = _taint(key, value, "NoExecute")
    tainted = replace_taints(cluster, [*cluster.taints, evicting])
    calm = _taints(cluster)
    off = is_off(name, [evicting])

    def taken(bindings: Bindings) -> bool:
        return off(bindings) and evictions_are_done(bindings)

    def act(plane: Plane) -> None:
        plane.patch_cluster(name, tainted)
        plane.wait(lambda: taken(plane.bindings()), f"the evictions from {name}")
        # A binding that no policy claims is enqueued by changes of its clusters only, and by this one perhaps too early.
        plane.patch_cluster(name, {"metadata": {"labels": {"touched": "after"}}})

    def last() -> Step:
        return _patch("taint NoExecute off", name, calm)

    def first() -> Step:
        return Step(
            "taint NoExecute", name, tainted, act, taken, through_clusters=True, patient=True, then=last
        )

    touched = {"metadata": {"labels": {"touched": str(model.choices.between(1, 10**9))}}}

    def touch(plane: Plane) -> None:
        group_steps.suspend(plane, grouped)
        plane.patch_cluster(name, touched)

    return replace(_patch("cluster labels", name, touched), act=touch, then=first)


def capacity(model: Model) -> Step | None:
    """Change a cluster's capacity; schedulers use it at the next change that enqueues a binding."""
    name = model.any_cluster()
    cluster = model.clusters[name]
    cluster.member = replace(
        cluster.member,
        cpu=model.choices.pick(("1", "3", "6", "12", "20", "40")),
        modelings=fleet.modelings(model.choices) if cluster.member.modelings else (),
    )
    return _status(model, "capacity", name)


def enablements(model: Model) -> Step | None:
    """Take the Deployment API away from a cluster, or give it back."""
    name = model.any_cluster()
    cluster = model.clusters[name]
    complete = SimulatedMember("any").api_enablements
    less = {group: kinds for group, kinds in complete.items() if group != "apps/v1"}
    cluster.member = replace(
        cluster.member, api_enablements=complete if cluster.member.api_enablements != complete else less
    )
    return _status(model, "API enablements", name)


def readiness(model: Model) -> Step | None:
    """Make a cluster unready, or ready again: the cluster controller adds or removes a taint."""
    name = model.any_cluster()
    cluster = model.clusters[name]
    cluster.ready = not cluster.ready
    step = _status(model, "not ready" if not cluster.ready else "ready", name)
    ready, status = cluster.ready, {"status": cluster.member.status(ready=cluster.ready)}

    def act(plane: Plane) -> None:
        plane.patch_cluster(name, status, status=True)
        plane.wait(lambda: _is_not_ready_tainted(plane, name) is not ready, f"the taint of {name}")

    return replace(step, act=act, through_clusters=True, patient=True)


def delete(model: Model) -> Step | None:
    """Begin to delete a cluster; a finalizer of the run keeps it until a later step."""
    names = model.names()
    grouped = group_steps.on_turn(model)
    if len(model.names("deleting")) >= MOST_DELETING or len(names) < 5 or grouped is None:
        return None
    name = model.choices.pick(names)
    model.clusters[name].phase = "deleting"

    def act(plane: Plane) -> None:
        group_steps.suspend(plane, grouped)
        plane.patch_cluster(name, {"metadata": {"labels": {"leaving": "soon"}}})
        plane.rest(through_clusters=True)
        plane.client.delete(f"{CLUSTER_PATH}/{name}")

    return Step("cluster deleting", name, None, act, evictions_are_done, through_clusters=True, patient=True)


def remove(model: Model, clusters: Mapping[str, list[Object]]) -> Step | None:
    """Remove the finalizer of a deleted cluster, once Karmada has removed its own on both planes.

    Args:
        model: The state of the run.
        clusters: The deleting clusters by name, as each plane has them.
    """
    names = [
        name
        for name in model.names("deleting")
        if all(item["metadata"].get("finalizers") == [HOLD] for item in clusters[name])
    ]
    if not names:
        return None
    name = model.choices.pick(names)
    model.clusters[name].phase = "gone"

    def act(plane: Plane) -> None:
        plane.patch_cluster(name, {"metadata": {"finalizers": None}})
        plane.wait(lambda: plane.cluster(name) is None, f"cluster {name} to be gone")

    return Step("cluster removed", name, None, act, through_clusters=True)


def add(model: Model) -> Step | None:
    """Register a cluster under the name of one that is gone."""
    names = model.names("gone")
    if not names:
        return None
    name = model.choices.pick(names)
    member = fleet.member(model.choices, name)
    model.clusters[name] = Cluster(member, dict(member.labels))
    return Step(
        "cluster added",
        name,
        member.manifest(),
        lambda plane: join(plane, member),
        through_clusters=True,
        patient=True,
    )


def join(plane: Plane, member: SimulatedMember) -> None:
    """Create a cluster in the order that every installation sees: it is tainted, reports its status, and loses the taint."""
    manifest = member.manifest()
    manifest["metadata"]["finalizers"] = [HOLD]
    plane.client.create(manifest)
    plane.wait(
        lambda: _is_not_ready_tainted(plane, member.name), f"the taint of the new cluster {member.name}"
    )
    space = f"/api/v1/namespaces/karmada-es-{member.name}"
    plane.wait(lambda: plane.client.find(space), f"the execution space of {member.name}")
    plane.patch_cluster(member.name, {"status": member.status()}, status=True)
    plane.wait(
        lambda: not _is_not_ready_tainted(plane, member.name), f"the end of the taint of {member.name}"
    )


def _is_not_ready_tainted(plane: Plane, name: str) -> bool:
    cluster = plane.cluster(name)
    assert cluster is not None
    return any(item["key"] == NOT_READY for item in cluster["spec"].get("taints") or ())


def _taint(key: str, value: str, effect: str) -> Object:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def replace_taints(cluster: Cluster, taints: list[Object]) -> Object:
    """Return a patch of the cluster's taints that keeps the one of an unready cluster."""
    unready = [] if cluster.ready else [_taint(NOT_READY, "", "NoSchedule")]
    return {"spec": {"taints": [*unready, *taints] or None}}


def _taints(cluster: Cluster) -> Object:
    return replace_taints(cluster, cluster.taints)


def _patch(kind: str, name: str, body: Object) -> Step:
    return Step(
        kind,
        name,
        body,
        lambda plane: plane.patch_cluster(name, body),
        evictions_are_done,
        through_clusters=True,
    )


def _status(model: Model, kind: str, name: str) -> Step:
    cluster = model.clusters[name]
    status = {"status": cluster.member.status(ready=cluster.ready)}
    shown = {
        "cpu": cluster.member.cpu,
        "ready": cluster.ready,
        "apis": sorted(cluster.member.api_enablements),
    }
    return Step(
        kind, name, shown, lambda plane: plane.patch_cluster(name, status, status=True), through_clusters=True
    )


STEPS: Final[tuple[tuple[int, Draw], ...]] = (
    (8, relabel),
    (3, move),
    (6, taint),
    (4, evict_all),
    (6, capacity),
    (2, enablements),
    (2, readiness),
    (3, delete),
    (8, add),
)
