"""Causes in what asks, or does not ask, for a decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.state.stored import mappings, value_at

_STEADY: Final = frozenset({"keep", "up", "down"})


class TriggerCauses(NamedTuple):
    """Causes that come before those of the steps, because a decision would change something, and after them."""

    primary: Sequence[Cause] = ()
    secondary: Sequence[Cause] = ()


def of_cluster(situation: Situation, cluster: str) -> TriggerCauses:
    """Return the causes of the trigger for a cluster without replicas."""
    placement = situation.rebalanced.placement if situation.present else None
    gives = placement is not None and bool(
        placement.get(cluster) or (cluster in placement and not situation.inputs.binding.spec.replicas)
    )
    if not situation.asks:
        causes = [_nothing_asks(situation)]
        if gives:
            return TriggerCauses(primary=[*_rebalancer(situation), *causes])
        return TriggerCauses(secondary=causes)
    if gives and is_steady(situation):
        return TriggerCauses(primary=[steady_keeps(situation)])
    return TriggerCauses()


def of_placed(situation: Situation) -> Iterator[Cause]:
    """Yield the causes for which a placed binding does not change, if a new decision would change it."""
    if not situation.asks:
        if (
            situation.rebalanced.decision.error is not None
            or situation.rebalanced.placement != situation.present
        ):
            yield from _rebalancer(situation)
            yield _nothing_asks(situation)
        return
    if not is_steady(situation) or situation.rebalanced.placement == situation.placement:
        return
    if not _is_shrinking(situation) or situation.trigger.trace.rules[0].holds:
        yield steady_keeps(situation)


def _is_shrinking(situation: Situation) -> bool:
    traces = situation.now.traces
    return traces is not None and traces.divide is not None and traces.divide.mode == "down"


def is_steady(situation: Situation) -> bool:
    """Return whether the decision keeps what is placed and divides only the difference."""
    traces = situation.now.traces
    return bool(
        situation.present
        and traces is not None
        and traces.divide is not None
        and traces.divide.mode in _STEADY
    )


def steady_keeps(situation: Situation) -> Cause:
    """Return the cause for which a decision keeps replicas where they are."""
    traces = situation.now.traces
    assert traces is not None
    assert traces.divide is not None
    evidence = {
        "class": situation.classification.type.value,
        "present": situation.present,
        "divided": traces.divide.divided,
        "mode": traces.divide.mode,
        **_on_rebalance(situation),
    }
    match traces.divide.mode:
        case "up":
            text = f"placed replicas stay where they are: only {traces.divide.divided} new ones are divided"
        case "down":
            text = "placed replicas stay where they are: each cluster loses in proportion, and none gains"
        case _:
            text = "placed replicas stay where they are: there is nothing to divide"
    return Cause("SteadyKeeps", Stage.TRIGGER, evidence, text)


def _nothing_asks(situation: Situation) -> Cause:
    evidence: dict[str, Any] = {"class": "Avoid", **_on_rebalance(situation)}
    requested = situation.inputs.binding.spec.reschedule_triggered_at
    if requested is not None:
        evidence["rebalancedAt"] = at(requested)
    text = "nothing asks for a new decision: its placement, replicas and clusters are those of the last one"
    rebalanced = situation.rebalanced.placement
    if rebalanced is not None and rebalanced != situation.present:
        shown = ", ".join(f"{name} {replicas}" for name, replicas in rebalanced.items())
        text = f"{text}; after a WorkloadRebalancer it would be {shown}"
    return Cause("NothingAsks", Stage.TRIGGER, evidence, text)


def _on_rebalance(situation: Situation) -> dict[str, Any]:
    basis = situation.rebalanced
    if basis.decision.error is not None:
        return {"onRebalanceError": str(basis.decision.error)}
    return {"onRebalance": basis.placement or {}}


def _rebalancer(situation: Situation) -> Iterator[Cause]:
    """Yield the cause that a requested reschedule is not newer than the last scheduling.

    If a cluster became ready after the request, the request has acted before: that is no cause.
    """
    binding = situation.inputs.binding
    requested, done = binding.spec.reschedule_triggered_at, binding.status.last_scheduled_time
    if requested is None or done is None or requested > done:
        return
    if any(moment > at(requested) for moment in _ready_since(situation.inputs)):
        return
    evidence = {"requested": at(requested), "lastScheduled": at(done), "resolution": "1s"}
    text = (
        f"the reschedule requested at {at(requested)} is not newer than the last scheduling at {at(done)} (times have "
        "whole seconds); create a new WorkloadRebalancer"
    )
    yield Cause("RebalancerTooOld", Stage.TRIGGER, evidence, text)


def _ready_since(inputs: ExplainInputs) -> Iterator[str]:
    """Yield since when each cluster is ready, as far as it is known."""
    for cluster in inputs.snapshot:
        for each in mappings(value_at(inputs.cluster_manifest(cluster.name), "status", "conditions")):
            since = each.get("lastTransitionTime")
            if (each.get("type"), each.get("status")) == ("Ready", "True") and since:
                yield str(since)
