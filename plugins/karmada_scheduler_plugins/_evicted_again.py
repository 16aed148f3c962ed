"""Whether Karmada's taint manager would evict a workload from where a return places it."""

from __future__ import annotations

from karmada_scheduler.framework import ReconsiderContext, Snapshot


def evicted_again(context: ReconsiderContext, snapshot: Snapshot) -> str:
    """Return which taint a return would meet that is tolerated for some seconds only, "" for none.

    TaintToleration passes such a cluster; the seconds count from the time of the taint, so they are mostly over.

    Source: karmada v1.18.2 pkg/util/helper/taint.go (GetMatchingTolerations, GetMinTolerationTimeWithCurrentTime).
    """
    spec = context.binding.spec
    tolerations = spec.placement.cluster_tolerations if spec.placement is not None else ()
    for name in [each.name for each in context.targets or () if each.name not in spec.target_names]:
        cluster = snapshot.get(name)
        for taint in cluster.taints if cluster is not None else ():
            first = next((each for each in tolerations if each.tolerates(taint)), None)
            if taint.effect == "NoExecute" and first is not None and first.toleration_seconds is not None:
                return f"the taint {taint} of {name} is tolerated for {first.toleration_seconds}s only"
    return ""
