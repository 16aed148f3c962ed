"""The copies of a binding: those that its scheduler assigns, and those that other bindings require.

Source: karmada v1.18.2 pkg/controllers/binding/common.go mergeTargetClusters, pkg/util/helper/binding.go
ObtainBindingSpecExistingClusters; pkg/dependenciesdistributor/dependencies_distributor.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from karmada_advisor.state.stored import Manifest, mapping, mappings, part
from karmada_scheduler.api.binding import Binding, GracefulEvictionTask
from karmada_scheduler.api.manifest import integer_at

_FOLLOWER_LABEL: Final = "resourcebinding.karmada.io/depended-by-"
"""What the dependencies distributor writes onto each binding that it has made, before a hash."""

PURGED: Final = frozenset({"Directly", "Immediately"})
"""The purge modes with which an eviction deletes the Work at once, and no Work is written elsewhere while it exists.

``Immediately`` is the old name.
"""

PRESERVED: Final = "preserveResourcesOnDeletion; Karmada refuses to apply it there again, unless spec.conflictResolution is Overwrite"


class Copy(NamedTuple):
    """What a cluster should run of a binding.

    Attributes:
        replicas: How many; 0 for a workload without replicas.
        required_by: The bindings that require it there; empty for a cluster of the binding's own placement.
    """

    replicas: int
    required_by: tuple[str, ...] = ()


def requirers(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Return the bindings that require a binding, by ``NAMESPACE/NAME``: their clusters with their replicas."""
    return {
        "/".join(str(entry[field]) for field in ("namespace", "name") if entry.get(field)): {
            str(target.get("name")): integer_at(target, "replicas") or 0
            for target in mappings(entry.get("clusters"))
        }
        for entry in mappings(part(manifest, "spec").get("requiredBy"))
    }


def copies_of(binding: Binding, manifest: Manifest) -> dict[str, Copy]:
    """Return the copies of a binding by cluster, in the order of names."""
    found: dict[str, Copy] = {}
    for requirer, clusters in requirers(manifest).items():
        for name, replicas in clusters.items():
            copy = found.get(name) or Copy(replicas if binding.spec.replicas else 0)
            found[name] = copy._replace(required_by=(*copy.required_by, requirer))
    found |= {target.name: Copy(target.replicas) for target in binding.spec.clusters}
    return dict(sorted(found.items()))


def required_on(manifest: Manifest) -> tuple[str, ...]:
    """Return the clusters on which other bindings require a binding."""
    return tuple(dict.fromkeys(name for clusters in requirers(manifest).values() for name in clusters))


def evicting_from(manifest: Manifest) -> tuple[str, ...]:
    """Return the clusters whose copy of a binding runs until its eviction ends."""
    tasks = mappings(part(manifest, "spec").get("gracefulEvictionTasks"))
    return tuple(str(each.get("fromCluster")) for each in tasks if each.get("purgeMode") not in PURGED)


def others_on(manifest: Manifest) -> tuple[str, ...]:
    """Return the clusters that have a copy of a binding besides those of its own placement: it is required there, or leaves."""
    return tuple(dict.fromkeys((*required_on(manifest), *evicting_from(manifest))))


def was_required(manifest: Manifest) -> bool:
    """Return whether Karmada made a binding because another one required it."""
    labels = mapping(part(manifest, "metadata").get("labels"))
    return any(str(name).startswith(_FOLLOWER_LABEL) for name in labels)


def live_tasks(
    binding: Binding, cluster_of: Callable[[str], Manifest | None] | None
) -> list[GracefulEvictionTask]:
    """Return the eviction tasks whose cluster exists; all if the Clusters are not known.

    Args:
        binding: The binding.
        cluster_of: Returns a Cluster as it was read, None if there is none; None if the Clusters are not known.
    """
    tasks = binding.spec.graceful_eviction_tasks
    return [task for task in tasks if cluster_of is None or cluster_of(task.from_cluster) is not None]


def preserves(manifest: Manifest) -> bool:
    """Return whether the copies that a binding leaves, or that it has when it is deleted, stay without Karmada."""
    return part(manifest, "spec").get("preserveResourcesOnDeletion") is True
