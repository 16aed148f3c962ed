"""Limits of one binding: far above real use, and low enough that a decision stays short.

Upstream has no such limits. Bindings within them are decided as upstream decides them.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from karmada_scheduler.api.binding import BindingSpec
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.framework.diagnosis import SchedulingError

RESOURCE_NAMES: Final = 256
"""Of one replica, or of all components together. Nodes rarely have a dozen; each is compared with every cluster."""
COMPONENTS: Final = 256
AFFINITY_TERMS: Final = 1000
"""Each may need a run over all clusters, and an Event."""


def check(spec: BindingSpec, placement: Placement) -> None:
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
