"""Why a binding is where it is, or a cluster does not have it: codes in a written order of precedence.

docs/explain.md lists the codes and the order. The first cause of a list is the primary one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada_advisor.explain import (
    causes_capacity,
    causes_divide,
    causes_failure,
    causes_objects,
    causes_select,
    causes_state,
    causes_trigger,
)
from karmada_advisor.explain.model import Cause, NextState, Stage
from karmada_advisor.explain.situation import Basis, Situation
from karmada_scheduler.api.names import nearest
from karmada_scheduler.structs import replace

_FAILED: Final = (NextState.NOT_PLACED, NextState.STUCK)


def causes_of_binding(situation: Situation) -> list[Cause]:
    """Return why a binding is where it is, or nowhere."""
    if not situation.is_decided:
        found = [*causes_state.of_copies(situation), *causes_trigger.of_state(situation)]
        return ranked([*found, *causes_state.reported_by_events(situation)])
    stored = list(causes_state.of_state(situation))
    if not situation.inputs.is_judged:
        unknown = causes_state.of_unknown_rules(situation)
        return ranked([*stored, *unknown, *causes_state.of_record(situation)])
    if situation.state in _FAILED:
        return ranked(
            [
                *stored,
                *causes_state.of_refusal(situation),
                *causes_state.of_unreadable_annotation(situation),
                *causes_trigger.before_failure(situation),
                *causes_failure.of_failure(situation),
            ]
        )
    if situation.state is NextState.NO_REPLICAS:
        return ranked(causes_trigger.of_no_replicas(situation))
    if situation.over_quota is not None:
        refused = causes_capacity.over_quota(situation)
        return ranked([*stored, *refused, *causes_state.reported_by_events(situation)])
    return ranked(
        [
            *causes_state.of_refusal(situation),
            *causes_state.of_graceful_move(situation),
            *causes_state.of_guard_warning(situation),
            *stored,
            *causes_objects.waiting(situation),
            *causes_objects.of_placed(situation),
            *causes_capacity.burst(situation),
            *causes_trigger.of_placed(situation),
            *causes_select.of_placed(situation),
            *causes_divide.of_placed(situation),
            *causes_capacity.own_replicas(situation),
            *causes_trigger.after_placement(situation),
            *causes_state.of_unreadable_annotation(situation),
            *causes_objects.summary_counts(situation),
            *causes_state.reported_by_events(situation),
            *causes_objects.policy_chosen(situation),
        ]
    ) or ranked(causes_state.of_waiting(situation))


def causes_of_cluster(situation: Situation, cluster: str) -> list[Cause]:
    """Return why a cluster has none of the replicas; none if it has some."""
    replicas, placement = situation.inputs.binding.spec.replicas, situation.placement
    if placement.get(cluster) or (cluster in placement and not replicas):
        return []
    if situation.inputs.snapshot.get(cluster) is None:
        near = nearest(cluster, (each.name for each in situation.inputs.snapshot))
        text = f"{cluster} does not exist" + (f"; nearest: {near}" if near else "")
        evidence = {"cluster": cluster, "nearest": near}
        return ranked([Cause("ClusterUnknown", Stage.POLICY, evidence, text)])
    if not situation.is_decided:
        return ranked(causes_trigger.of_state(situation))
    found = ranked(_of_known(situation, cluster))
    if not found and situation.state is NextState.NO_REPLICAS:
        return ranked(causes_trigger.of_no_replicas(situation))
    return found


def _of_known(situation: Situation, cluster: str) -> Iterable[Cause]:
    """Yield the causes about a known cluster.

    A cause of the trigger comes first only if a new decision puts replicas on the cluster; otherwise it comes last,
    because asking for a decision changes nothing.
    """
    yield from causes_objects.lazy_policy(situation)
    yield from causes_objects.claim_held(situation)
    before, after = causes_trigger.of_cluster(situation, cluster)
    basis = situation.shown
    if not situation.is_shown_as_new and situation.now.decision.error is None:
        yield from before
        basis = situation.rebalanced if situation.present else situation.now
    yield from _stages(situation, basis, cluster)
    yield from after


def _stages(situation: Situation, basis: Basis, cluster: str) -> Iterable[Cause]:
    """Yield the causes of the steps of one decision, in their order."""
    if not basis.decision.attempts:
        return
    refused = causes_select.refusals_of(situation, basis, cluster)
    yield from refused
    if refused:
        return
    yield from causes_select.of_cluster(situation, basis, cluster)
    yield from causes_divide.of_cluster(basis, cluster)
    if basis.decision.error is not None:
        yield from causes_failure.of_failure(situation)


def ranked(causes: Iterable[Cause]) -> list[Cause]:
    """Return each code once, the first one as the primary cause."""
    found: dict[str, Cause] = {}
    for each in causes:
        found.setdefault(each.code, each)
    return [replace(each, primary=index == 0) for index, each in enumerate(found.values())]
