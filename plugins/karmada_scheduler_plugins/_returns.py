"""The args of FailBack, and what stands against a return: tiers that it does not empty, and taints that it would meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from karmada_scheduler.api.placement import ClusterAffinityTerm
from karmada_scheduler.framework import Cluster, ReconsiderContext, Snapshot
from karmada_scheduler.structs import Struct

DAY: Final = 86_400


class FailBackArgs(Struct, frozen=True):
    """The args of FailBack; docs/no-harm.md explains them.

    Attributes:
        stabilization_seconds: From 1 to 86,400; the first wait. It is doubled for each return after which the
            binding left the term again.
        check_seconds: From 1 to 3,600, at most ``stabilization_seconds``; the interval of checks.
        max_seconds: From ``stabilization_seconds`` to 604,800; the longest wait.
        forget_seconds: From 1 to 2,592,000; a binding that stayed this long begins with the first wait again.
        at_once: From 1; the returns of the profile that may be under way at the same time.
        overflow: Whether replicas return from overflow tiers as well.
        rebalance_from_first: Whether a WorkloadRebalancer lets a binding begin with its first term, as from
            Karmada 1.19 on.
    """

    stabilization_seconds: int = 300
    check_seconds: int = 30
    max_seconds: int = DAY
    forget_seconds: int = DAY
    at_once: int = 1
    overflow: bool = False
    rebalance_from_first: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        problems = [
            f"{name} must be {least} to {most}, got {value}"
            for name, value, least, most in (
                ("stabilizationSeconds", self.stabilization_seconds, 1, DAY),
                ("checkSeconds", self.check_seconds, 1, 3600),
                ("maxSeconds", self.max_seconds, 1, 7 * DAY),
                ("forgetSeconds", self.forget_seconds, 1, 30 * DAY),
                ("atOnce", self.at_once, 1, 10_000),
            )
            if not least <= value <= most
        ]
        if self.check_seconds > self.stabilization_seconds:
            problems.append("checkSeconds must not be greater than stabilizationSeconds")
        if self.max_seconds < self.stabilization_seconds:
            problems.append("maxSeconds must not be less than stabilizationSeconds")
        if problems:
            raise ValueError("; ".join(problems))


def tier_of(term: ClusterAffinityTerm, cluster: Cluster | None) -> int | None:
    """Return the first tier of a term that a cluster belongs to, 0 for its affinity; None if it is in none."""
    if cluster is None:
        return None
    affinities = (term.affinity, *(overflow.affinity for overflow in term.overflow_affinities))
    return next((tier for tier, affinity in enumerate(affinities) if affinity.matches(cluster)), None)


def empties_higher_tiers(context: ReconsiderContext, snapshot: Snapshot) -> bool:
    """Return whether a decision leaves whole clusters of higher tiers, and no cluster that stays has less."""
    old = {target.name: target.replicas for target in context.binding.spec.clusters}
    new = {target.name: target.replicas for target in context.targets or ()}
    if any(name in new and new[name] < count for name, count in old.items()):
        return False
    placement = context.binding.spec.placement
    term = placement.affinity_term(context.affinity_name) if placement is not None else None
    if term is None:
        return False
    before, after = _replicas_up_to_each(term, old, snapshot), _replicas_up_to_each(term, new, snapshot)
    return before != after and all(a >= b for a, b in zip(after, before, strict=True))


def _replicas_up_to_each(
    term: ClusterAffinityTerm, replicas: Mapping[str, int], snapshot: Snapshot
) -> list[int]:
    """Return for each tier the replicas in it and in those before."""
    tiers = {name: tier_of(term, snapshot.get(name)) for name in replicas}
    return [
        sum(count for name, count in replicas.items() if (found := tiers[name]) is not None and found <= tier)
        for tier in range(len(term.overflow_affinities) + 1)
    ]


def evicted_again(context: ReconsiderContext, snapshot: Snapshot) -> str:
    """Return which taint a return would meet that is tolerated for some seconds only, "" for none.

    TaintToleration passes such a cluster; the seconds count from the time of the taint, so they are mostly over.

    Source: karmada v1.18.2 pkg/util/helper/taint.go (GetMatchingTolerations, GetMinTolerationTimeWithCurrentTime).
    """
    spec = context.binding.spec
    tolerations = spec.placement.cluster_tolerations if spec.placement is not None else ()
    for name in [target.name for target in context.targets or () if target.name not in spec.target_names]:
        cluster = snapshot.get(name)
        for taint in cluster.taints if cluster is not None else ():
            first = next((toleration for toleration in tolerations if toleration.tolerates(taint)), None)
            if taint.effect == "NoExecute" and first is not None and first.toleration_seconds is not None:
                return f"the taint {taint} of {name} is tolerated for {first.toleration_seconds}s only"
    return ""
