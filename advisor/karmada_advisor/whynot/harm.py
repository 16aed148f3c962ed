"""What a careful colleague says against an edit: how harmful it is, and why.

Edits are ordered by harm before effort. A sentence says what an edit does besides reaching the goal.
"""

from __future__ import annotations

from collections.abc import Sequence

from karmada_advisor.explain.amounts import request_of, shown
from karmada_advisor.fleet.names import affinities_of
from karmada_advisor.whynot.goals import has_replicas
from karmada_advisor.whynot.objects import ScheduledObjects
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.edits import Edit, Harm


def harm_of(edits: Sequence[Edit]) -> Harm:
    """Return the harm of the worst edit."""
    return max((each.harm for each in edits), key=lambda each: each.degree, default=Harm.NONE)


def caution_of(
    edits: Sequence[Edit], before: ScheduledObjects, after: ScheduledObjects, gates: FeatureGates
) -> str:
    """Return what speaks against a set of edits, in sentences; "" if nothing does.

    Args:
        edits: The edits.
        before: The binding without them.
        after: The binding with them.
        gates: The feature gates and rules, for the capacity of clusters and what an affinity selects.
    """
    found: dict[str, None] = {}
    for each in edits:
        if each.harm is Harm.UNCHECKED:
            found[_unchecked(before, after, gates, lacks=each.op.startswith("dropRequest"))] = None
        elif each.harm is Harm.WIDENS and not each.caution:
            found[_widened(before, after, gates)] = None
        elif each.caution:
            found[each.caution] = None
    return " ".join(found)


def _widened(before: ScheduledObjects, after: ScheduledObjects, gates: FeatureGates) -> str:
    allowed, then = _allowed(before, gates), _allowed(after, gates)
    clusters = "cluster is" if then == 1 else "clusters are"
    return f"It widens what the owner of the policy has restricted: {then} {clusters} allowed, and {allowed} now."


def _allowed(outcome: ScheduledObjects, gates: FeatureGates) -> int:
    """Return how many clusters some affinity of the placement selects."""
    affinities = affinities_of(gates.rules.placement(outcome.binding.spec.placement or Placement()))
    return sum(
        not affinities or any(affinity.matches(each) for affinity in affinities) for each in outcome.snapshot
    )


def _unchecked(before: ScheduledObjects, after: ScheduledObjects, gates: FeatureGates, *, lacks: bool) -> str:
    """Return how many Pods of the result do not fit with the requests as they are."""
    present = before.replicas
    added = {
        name: wanted
        for name, replicas in after.replicas.items()
        if (wanted := _units(after, replicas) - (_units(before, present[name]) if name in present else 0)) > 0
    }
    fits = {name: _fits(before, name, gates) for name in added}
    short = {name: wanted - fits[name] for name, wanted in added.items() if fits[name] < wanted}
    pending = "stay Pending" + (", or lack what they ask for" if lacks else "")
    what = "sets of Pods" if counts_component_sets(before.binding.spec, gates) else "Pods"
    if not short:
        return "It ends the check of capacity: later replicas may not fit anywhere."
    if not any(fits.values()):
        asked = _asked(before)
        return f"It only ends the check: all {what} would {pending}, because {_none_can(list(short))} take one{asked}."
    missing = sum(short.values())
    return (
        f"It only ends the check: {missing} of {sum(added.values())} new {what} would {pending} "
        f"({', '.join(f'{name} can take {fits[name]} of {added[name]}' for name in list(short)[:3])})."
    )


def _units(outcome: ScheduledObjects, replicas: int) -> int:
    """Return what a target counts for: its replicas, or one set of components."""
    if has_replicas(outcome.binding):
        return replicas
    return int(replicas > 0 or not outcome.binding.spec.replicas)


def _none_can(names: Sequence[str]) -> str:
    return f"{names[0]} cannot" if len(names) == 1 else f"none of {', '.join(names[:3])} can"


def _asked(outcome: ScheduledObjects) -> str:
    request = sorted(request_of(outcome.binding.spec).items())
    return f" ({', '.join(f'{shown(name, amount)} {name}' for name, amount in request)})" if request else ""


def _fits(outcome: ScheduledObjects, name: str, gates: FeatureGates) -> int:
    cluster = outcome.snapshot.get(name)
    return 0 if cluster is None else max(0, available(outcome.binding, cluster, gates))


def available(binding: Binding, cluster: Cluster, gates: FeatureGates) -> int:
    """Return how many further replicas, or sets of components where those are counted, fit on a cluster."""
    estimator, spec = GeneralEstimator(gates), binding.spec
    if counts_component_sets(spec, gates):
        [fits] = estimator.max_available_component_sets([cluster], spec.components, binding.key.namespace, {})
    else:
        [fits] = estimator.max_available_replicas([cluster], spec.replica_requirements, {})
    return fits
