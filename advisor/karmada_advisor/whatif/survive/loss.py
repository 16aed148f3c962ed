"""A binding after the loss of some clusters: what the taint manager, or the deletion of the clusters, makes of it.

Three worlds follow a loss. *Gone*: the lost clusters have NoExecute taints, and eviction works, as far as bindings do
not tolerate them for ever. *Itself*: what Karmada does automatically, by default no more than a NoSchedule taint.
*Deleted*: the Cluster objects are deleted; nothing is tolerated.

The scheduler's decisions are made about one unchanged snapshot, in which lost clusters are masked by graceful eviction
tasks: a cluster with a task is refused, as a tainted one would be, and only the clusters with a task are filtered again.
Only clusters that would pass need a mask.

Source: karmada v1.18.2 pkg/controllers/cluster/cluster_controller.go taintClusterByCondition, taint_manager.go.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from enum import Enum
from typing import Final, NamedTuple

from karmada_advisor.whatif.plan.deletions import NO_EXECUTE, applied_placement
from karmada_scheduler.api.binding import Binding, GracefulEvictionTask
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.structs import replace

NOT_READY: Final = "cluster.karmada.io/not-ready"
UNREACHABLE: Final = "cluster.karmada.io/unreachable"
LOST: Final = Taint(UNREACHABLE, "", NO_EXECUTE)
"""The taint from which bindings are evicted if no ClusterTaintPolicy adds another one."""


class Loss(Enum):
    """What follows a loss."""

    GONE = "gone"
    """Bindings are evicted, as far as they do not tolerate it."""
    ITSELF = "itself"
    """What Karmada does automatically."""
    DELETED = "deleted"
    """The Cluster objects are deleted."""


class LeftBehind(NamedTuple):
    """A binding after a loss and before a decision.

    Attributes:
        binding: Without the clusters from which it is evicted.
        present: The lost clusters on which it was.
        is_evicted: Whether it leaves them.
        decides: Whether a decision follows.
    """

    binding: Binding
    present: frozenset[str]
    is_evicted: bool
    decides: bool


def eviction_delay(binding: Binding, taints: Collection[Taint]) -> int:
    """Return the seconds from some taints to the eviction: the earliest of the tolerations that are used, 0 without one."""
    placement = applied_placement(binding)
    tolerations = placement.cluster_tolerations if placement else ()
    seconds = (
        each.toleration_seconds
        for each in tolerations
        if each.toleration_seconds is not None and any(map(each.tolerates, taints))
    )
    return max(0, min(seconds, default=0))


def admits(binding: Binding, taints: Collection[Taint], loss: Loss) -> bool:
    """Return whether a binding tolerates the taints of a lost cluster, so that it may be placed there again."""
    placement = binding.spec.placement
    if loss is Loss.DELETED or placement is None:
        return False
    return all(any(each.tolerates(taint) for each in placement.cluster_tolerations) for taint in taints)


def masked(binding: Binding, names: Collection[str]) -> Binding:
    """Return a binding for which some clusters are refused; the tasks that do it are no evictions."""
    tasks = tuple(GracefulEvictionTask(name) for name in sorted(names))
    spec = binding.spec
    return replace(
        binding, spec=replace(spec, graceful_eviction_tasks=(*spec.graceful_eviction_tasks, *tasks))
    )


def on(binding: Binding, lost: Container[str]) -> frozenset[str]:
    """Return the lost clusters that a binding is on."""
    return frozenset(each.name for each in binding.spec.clusters if each.name in lost)
