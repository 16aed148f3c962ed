"""TaintToleration: refuse clusters with taints that the binding does not tolerate."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_scheduler.api.matching import NO_EXECUTE, Taint, untolerated
from karmada_scheduler.api.names import may_mean, near_toleration, shown_toleration
from karmada_scheduler.api.well_known import CORDON_TAINT, KARMADA_TAINTS
from karmada_scheduler.framework import (
    BECOME_READY,
    SUCCESS,
    Cycle,
    Edit,
    EditContext,
    Evidence,
    EvidenceContext,
    FilterContext,
    Harm,
    Result,
)

_CODE: Final = "UntoleratedTaint"
_OWN_TAINTS: Final = {
    "cluster.karmada.io/not-ready": "it is not ready",
    "cluster.karmada.io/unreachable": "it is not reachable",
    "cluster.karmada.io/terminating": "it is being deleted",
}
"""What Karmada's controllers say with a taint that they set and remove themselves."""


class TaintToleration:
    """Filter by NoSchedule and NoExecute taints.

    A current cluster passes: evictions are decided by the taint manager.
    """

    name = "TaintToleration"
    filter_key_covers_current = True
    free_of_side_effects = True
    codes: Final = {_CODE: "a taint of the cluster is not tolerated"}

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the tolerations."""
        return cycle.placement.cluster_tolerations

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster for its first taint that is not tolerated."""
        cycle, cluster = context.cycle, context.cluster
        if not cluster.taints or cluster.name in cycle.current_clusters:
            return SUCCESS
        for taint in untolerated(cluster.taints, cycle.placement.cluster_tolerations):
            return Result.unschedulable(f"cluster(s) had untolerated taint {{{taint}}}")
        return SUCCESS

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        """Return the first taint that is not tolerated, since when, and the toleration that is nearly one of it."""
        tolerations = context.cycle.placement.cluster_tolerations
        taint = next(iter(untolerated(context.cluster.taints, tolerations)), None)
        if taint is None:
            return Evidence(_CODE)
        short = f"{taint.key.rpartition('/')[2]}:{taint.effect}"
        since = _since(context.cluster_manifest, taint)
        fields: dict[str, Any] = {
            "clause": short,
            "taint": str(taint),
            "key": taint.key,
            "value": taint.value,
            "effect": taint.effect,
            "since": since,
        }
        at = f", since {since}" if since else ""
        near, differs = near_toleration(taint, tolerations)
        if near:
            fields |= {"nearToleration": near, "differs": differs}
        if own := _OWN_TAINTS.get(taint.key):
            text = f"{own}, and Karmada has set the taint {taint}{at}"
        else:
            but = f"; the toleration {near} differs in its {' and '.join(differs)}" if near else ""
            text = f"the taint {taint} is not tolerated{at}{but}"
        return Evidence(_CODE, short, fields, text, "taint")

    def edits(self, context: EditContext, /) -> Iterator[Edit]:
        """Yield the removal of the taints, and tolerations of them."""
        listed = context.at(context.cluster_ref, ("spec", "taints")) or []
        refusing = untolerated(context.cluster.taints, context.cycle.placement.cluster_tolerations)
        ours = [taint for taint in refusing if taint.key in KARMADA_TAINTS]
        if ours:
            yield _ready_again(context, ours, listed)
        refusing = [taint for taint in refusing if taint not in ours]
        for taint in refusing:
            yield from _corrected_toleration(context, taint)
            yield from _of_taint(context, taint, listed)
        if len(refusing) > 1:
            yield context.on_policy.append(
                "tolerateAll", ("clusterTolerations",), {"operator": "Exists"}, "tolerate every taint", extra=0.6,
                harm=Harm.WIDENS,
                caution="The workload then goes to every tainted cluster that the policy allows, also to clusters that are down.",
            )  # fmt: skip
            if not ours:
                yield context.on_cluster.remove(
                    "removeTaints", ("spec", "taints"), "remove all taints", extra=0.2, harm=Harm.WIDENS,
                    caution=f"Somebody set the taints: {context.name} is then open to all workloads.",
                )  # fmt: skip


def _since(manifest: Mapping[str, Any], wanted: Taint) -> str:
    for taint in (manifest.get("spec") or {}).get("taints") or ():
        if taint.get("key") == wanted.key and taint.get("effect") == wanted.effect:
            return str(taint.get("timeAdded") or "")
    return ""


def _of_taint(context: EditContext, taint: Taint, listed: list[Any]) -> Iterator[Edit]:
    """Yield the removal and the toleration of a taint that a person has set."""
    is_cordon = taint.key == CORDON_TAINT
    by_person = f"Somebody set the taint: {context.name} is then open to all workloads."
    for index, found in enumerate(listed):
        if (found.get("key") or "", found.get("value") or "", found.get("effect") or "") == tuple(taint):
            yield context.on_cluster.remove(
                "removeTaint", ("spec", "taints", index),
                f"uncordon it ({taint})" if is_cordon else f"remove the taint {taint}",
                extra=-0.9 if is_cordon else 0.0, harm=Harm.NONE if is_cordon else Harm.WIDENS,
                caution="" if is_cordon else by_person,
            )  # fmt: skip
            break
    toleration = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    if taint.value:
        toleration = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
    yield context.on_policy.append(
        "tolerate", ("clusterTolerations",), toleration, f"tolerate {taint}", extra=0.2,
        harm=Harm.WIDENS if is_cordon else Harm.NONE,
        caution=f"{context.name} is cordoned: somebody took it out of use." if is_cordon else "",
    )  # fmt: skip


def _ready_again(context: EditContext, ours: Sequence[Taint], listed: list[Any]) -> Edit:
    """Return the effect of a repair of the cluster: Karmada removes its own taints, and sets them again if a person does."""
    keys = {taint.key for taint in ours}
    kept = [each for each in listed if not isinstance(each, dict) or each.get("key") not in keys]
    shown = ", ".join(sorted(keys))
    return context.on_cluster.set(
        BECOME_READY, ("spec", "taints"), kept, f"it is down ({shown}) and has to be Ready again", extra=-1.0,
        instead=f"Repair {context.name} until its condition Ready is True; Karmada then removes the taint by itself.",
    )  # fmt: skip


def _corrected_toleration(context: EditContext, taint: Taint) -> Iterator[Edit]:
    """Yield the toleration that was meant for a taint: with another value or effect, or nearly the same key."""
    for index, found in enumerate(context.placement_items("clusterTolerations")):
        key = str(found.get("key") or "") if isinstance(found, dict) else ""
        if not may_mean(key, taint):
            continue
        changed = {**found, "key": taint.key}
        if found.get("effect"):
            changed["effect"] = taint.effect
        if found.get("operator") != "Exists" and (found.get("value") or "") != taint.value:
            if key != taint.key and found.get("value"):
                continue  # neither the key nor the value is that of the taint
            changed["value"] = taint.value
        text = f"tolerate {taint} instead of {shown_toleration(key, found.get('value'), found.get('effect'))}"
        seconds = found.get("tolerationSeconds") if taint.effect == NO_EXECUTE else None
        caution = "" if seconds is None else (
            f"The toleration ends after {seconds} s (tolerationSeconds): where Karmada evicts, replicas leave {context.name} again."
        )  # fmt: skip
        yield context.on_policy.set(
            "correctToleration", ("clusterTolerations", index), changed, text, extra=-0.3, caution=caution
        )
