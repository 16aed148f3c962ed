"""What ends a decision before it begins: a binding beyond the limits, or an expression that is not known.

The limits are far above real use, and low enough that a decision stays short. Upstream has none; bindings within them are
decided as upstream decides them.

An expression is not known if it is of a newer control plane, or has a typing error. For upstream, it selects nothing and
tolerates nothing, so the workload is deleted everywhere. Here it is an error of the binding, and the placement stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Final

from karmada_scheduler.api.binding import BindingSpec
from karmada_scheduler.api.matching import InvalidExpression
from karmada_scheduler.api.placement import WEIGHTED, Placement
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import InvalidExpressionError, SchedulingError

RESOURCE_NAMES: Final = 256
"""Of one replica, or of all components together. Nodes rarely have a dozen; each is compared with every cluster."""
COMPONENTS: Final = 256
AFFINITY_TERMS: Final = 1000
"""Each may need a run over all clusters, and an Event."""


def check_sizes(spec: BindingSpec, placement: Placement) -> None:
    """Check a binding against the limits.

    Raises:
        SchedulingError: The binding exceeds a limit; the text names the field, the number, and the limit.
    """
    if spec.replica_requirements is not None:
        names = spec.replica_requirements.resource_request
        _at_most(RESOURCE_NAMES, names, "spec.replicaRequirements.resourceRequest", "resource names")
    if spec.components:
        _at_most(COMPONENTS, spec.components, "spec.components", "components")
        names_of_all = [
            name
            for component in spec.components
            if component.replica_requirements is not None
            for name in component.replica_requirements.resource_request
        ]
        path = "spec.components[*].replicaRequirements.resourceRequest"
        _at_most(RESOURCE_NAMES, names_of_all, path, "resource names")
    terms = placement.cluster_affinities
    if terms:
        _at_most(AFFINITY_TERMS, terms, "spec.placement.clusterAffinities", "affinity terms")


def _at_most(limit: int, found: Sized, path: str, what: str) -> None:
    if len(found) > limit:
        raise SchedulingError(f"{path}: {len(found)} {what}, at most {limit} are supported")


_SHOWN: Final = 300
"""Characters of an expression in a text."""


def check_expressions(cycle: Cycle) -> None:
    """Check the expressions that an attempt depends on: of its affinity term, of tolerations, and of static weights.

    Raises:
        InvalidExpressionError: One is not known; the text has its field.
    """
    found = next(_invalid(cycle), None)
    if found is not None:
        text = f"spec.placement.{found.text[:_SHOWN]} is no valid expression; the placement stays as it is"
        raise InvalidExpressionError(text, found.path)


def _invalid(cycle: Cycle) -> Iterator[InvalidExpression]:
    placement = cycle.placement
    for tier, affinity in enumerate(cycle.affinities):
        if affinity.invalid:
            path, shown = _affinity(cycle)
            if tier:
                path, shown = (
                    (*path, "overflowAffinities", tier - 1),
                    f"{shown}.overflowAffinities[{tier - 1}]",
                )
            yield affinity.invalid.within(path, f"{shown}.")
    for index, toleration in enumerate(placement.cluster_tolerations):
        if not toleration.is_valid:
            shown = f"operator {toleration.operator!r}, effect {toleration.effect!r}"
            yield InvalidExpression(("clusterTolerations", index), f"clusterTolerations[{index}]: {shown}")
    if cycle.binding.spec.is_workload:
        yield from _invalid_weights(placement)


def _affinity(cycle: Cycle) -> tuple[tuple[str | int, ...], str]:
    """Return the path of the affinity of an attempt, and the same for people."""
    if cycle.term is None:
        return ("clusterAffinity",), "clusterAffinity"
    index = cycle.placement.cluster_affinities.index(cycle.term)
    return ("clusterAffinities", index), f"clusterAffinities[{cycle.affinity_name}]"


def _invalid_weights(placement: Placement) -> Iterator[InvalidExpression]:
    strategy = placement.replica_scheduling
    if strategy is None or placement.is_duplicated or strategy.replica_division_preference != WEIGHTED:
        return
    weights = strategy.weight_preference
    if weights is None or weights.dynamic_weight:
        return
    for index, rule in enumerate(weights.static_weight_list):
        if rule.target_cluster.invalid:
            path = ("replicaScheduling", "weightPreference", "staticWeightList", index, "targetCluster")
            shown = f"replicaScheduling.weightPreference.staticWeightList[{index}].targetCluster."
            yield rule.target_cluster.invalid.within(path, shown)
