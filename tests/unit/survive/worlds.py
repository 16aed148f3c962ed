"""Random small fleets whose bindings are where the scheduler puts them, and a reference for their losses.

The reference decides about every binding on really tainted, or really deleted, clusters, without caches in common with
other losses, and takes no shortcut.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from karmada_advisor.whatif.plan.decide import PlanSide, without_clusters
from karmada_advisor.whatif.plan.deletions import is_evictable
from karmada_advisor.whatif.plan.effects import same
from karmada_advisor.whatif.survive.classify import Classified, Evicted, FailedBy, classified
from karmada_advisor.whatif.survive.loss import NO_POLICIES, Loss, LossTaints
from karmada_advisor.whatif.survive.loss_decision import failed_by
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.result import as_written
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.plan.asking import rules

RandomFleet = tuple[list[Cluster], list[Binding]]

_REGIONS: Final = ("north", "south", "east", "west")
NOW: Final = datetime(2026, 11, 26, tzinfo=UTC)
_SECONDS: Final = (None, None, 30)


def world(seed: int) -> RandomFleet:
    """Return the clusters and the bindings of a fleet."""
    dice = random.Random(seed)
    made = cluster_manifests(dice)
    clusters = [Cluster.from_manifest(each) for each in made]
    side = PlanSide(rules(), Snapshot.of(clusters), ())
    bindings = [_binding(number, clusters, dice).build() for number in range(12)]
    placed = [_placed(each, side, dice) for each in bindings]
    return [Cluster.from_manifest(each) for each in relabelled(made, seed)], placed


def cluster_manifests(dice: random.Random) -> list[dict[str, Any]]:
    """Return the clusters as they are when the bindings are placed."""
    return [_cluster(number, dice).manifest() for number in range(dice.randrange(3, 11))]


def relabelled(made: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Return clusters of which some have lost the label that placed bindings ask for."""
    dice = random.Random(f"labels/{seed}")
    return [
        {**each, "metadata": {**each["metadata"], "labels": {"tier": "c"}}} if dice.random() < 0.2 else each
        for each in made
    ]


def _cluster(number: int, dice: random.Random) -> ClusterBuilder:
    made = cluster(f"m{number}").capacity(cpu=dice.choice((4, 10, 40)), pods=dice.choice((6, 100)))
    made.label("tier", dice.choice(("a", "b"))).sync_mode(dice.choice(("Push", "Pull")))
    if dice.random() < 0.9:
        made.region(dice.choice(_REGIONS))
    made.zones(*dice.sample(("z1", "z2"), dice.randrange(0, 3)))
    if dice.random() < 0.1:
        made.taint("dedicated=batch:NoSchedule")
    return made


def _binding(number: int, clusters: Sequence[Cluster], dice: random.Random) -> BindingBuilder:
    made = binding(f"w{number}").uid(f"{number * 7919:032x}")
    if dice.random() < 0.9:
        made.replicas(dice.randrange(1, 7), cpu="1")
    names = dice.sample([each.name for each in clusters], min(len(clusters), dice.randrange(1, 5)))
    match dice.randrange(4):
        case 0:
            made.names(*names)
        case 1:
            made.affinity(labelSelector={"matchLabels": {"tier": dice.choice("ab")}})
        case 2:
            made.term("first", *names[:1]).term("second", *names[1:])
    match dice.randrange(5):
        case 0:
            made.dynamic_weight()
        case 1:
            made.aggregated()
        case 2:
            made.static_weights(**{name: dice.randrange(1, 4) for name in names})
        case _:
            made.duplicated()
    if dice.random() < 0.5:
        least = dice.randrange(1, 3)
        made.spread("region", least, dice.randrange(least, 4))
    if dice.random() < 0.5:
        least = dice.randrange(1, 3)
        made.spread("cluster", least, dice.randrange(least, 5))
    if dice.random() < 0.2:
        toleration: dict[str, object] = {"operator": "Exists", "effect": dice.choice(("", "NoExecute"))}
        seconds = dice.choice(_SECONDS)
        made.tolerates(**toleration, **({} if seconds is None else {"tolerationSeconds": seconds}))
    if dice.random() < 0.1:
        made.suspended()
    return made


def _placed(made: Binding, side: PlanSide, dice: random.Random) -> Binding:
    """Return a binding as the scheduler leaves it; a few are left as a later event finds them."""
    free = replace(made, spec=replace(made.spec, scheduling_suspended=False))
    found = side.rules.decide(free, side.snapshot)
    assert isinstance(found, Decision)
    if not found.targets:
        return made
    spec = replace(as_written(free, found, NOW).spec, scheduling_suspended=made.spec.scheduling_suspended)
    written = replace(as_written(free, found, NOW), spec=spec)
    if dice.random() < 0.1:
        return without_clusters(written, {dice.choice(spec.clusters).name})
    if dice.random() < 0.05:
        kept = {
            name: each for name, each in written.annotations.items() if name != APPLIED_PLACEMENT_ANNOTATION
        }
        return replace(written, annotations=kept)
    return written


def settled(side: PlanSide, each: Binding) -> Binding:
    """Return a binding after the decision that is due without any loss."""
    if each.spec.scheduling_suspended or side.type_of(each) is ScheduleType.AVOID:
        return each
    found = side.rules.decide(each, side.snapshot)
    assert isinstance(found, Decision)
    if found.targets is None or (found.error and found.targets) or same(found.targets, each.spec.clusters):
        return each
    return as_written(each, found, NOW)


def lost_fleet(
    clusters: Sequence[Cluster], lost: frozenset[str], loss: Loss, taints: LossTaints = NO_POLICIES
) -> Snapshot:
    """Return the clusters after a loss."""
    made = []
    for each in clusters:
        if each.name not in lost:
            made.append(each)
        elif loss is Loss.DELETED:
            made.append(replace(each, deleting=True))
        else:
            made.append(replace(each, taints=(*each.taints, *taints.of(each, loss))))
    return Snapshot.of(made)


def reference(
    side: PlanSide,
    each: Binding,
    snapshot: Snapshot,
    lost: frozenset[str],
    loss: Loss,
    *,
    is_purged_directly: bool = False,
    taints: LossTaints = NO_POLICIES,
) -> Classified:
    """Return the class of a binding, that of ``settled``, after a loss."""
    before = each.spec.clusters
    leaving = {
        target.name
        for target in before
        if target.name in lost
        and (
            loss is Loss.DELETED
            or (
                bool(taints.evicting(target.name, loss))
                and is_evictable(each, taints.evicting(target.name, loss))
            )
        )
    }
    leaves = bool(leaving)
    left = without_clusters(each, leaving) if leaves and loss is not Loss.DELETED else each
    stays = without_clusters(each, leaving).spec.clusters if leaves else before
    type_ = side.rules.type_of(left, snapshot)
    if each.spec.scheduling_suspended or type_ is ScheduleType.AVOID:
        return classified(each.spec, lost, Evicted(before, stays, is_evicted=leaves))
    found = side.rules.decide(left, snapshot)
    assert isinstance(found, Decision)
    after = left.spec.clusters if found.targets is None else found.targets
    reason = FailedBy.NOTHING if found.error is None else failed_by(found.error)
    is_purged_directly = is_purged_directly and leaves and loss is not Loss.DELETED
    evicted = Evicted(
        before, after, reason, is_evicted=leaves, is_decided=True, is_purged_directly=is_purged_directly
    )
    return classified(each.spec, lost, evicted)
