"""Edits after which a workload runs in several places, so that a loss does not interrupt it.

No decision after a loss reaches that, since nothing is left then. So these edits need no search: a spread constraint demands two
clusters, or two regions, and a WorkloadRebalancer divides the replicas again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.remedy_model import ObjectShown
from karmada_advisor.state.stored import mappings, value_at
from karmada_advisor.whynot.edits import Edit, ObjectRef, PatchAction, Side, edit
from karmada_advisor.whynot.model import EditShown
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION

_PATH: Final = ("spec", "placement", "spreadConstraints")
_PLACES: Final = 2


def spreading_edits(ref: ObjectRef, manifest: Mapping[str, Any]) -> Iterator[Sequence[Edit]]:
    """Yield the edits of a placement that demand two clusters, then those that demand two regions.

    Args:
        ref: The object with the placement.
        manifest: The same as it was read.
    """
    listed = list(mappings(value_at(manifest, *_PATH)))
    by_cluster = list(_demanding(ref, listed, SPREAD_BY_CLUSTER))
    if by_cluster:
        yield by_cluster
    by_region = list(_demanding(ref, listed, SPREAD_BY_REGION))
    if by_region:
        # Karmada refuses a constraint on regions without one on clusters.
        has_clusters = any(each.get("spreadByField") == SPREAD_BY_CLUSTER for each in listed)
        yield by_region if has_clusters else [*by_region, *by_cluster]


def _demanding(ref: ObjectRef, listed: Sequence[Mapping[str, Any]], field: str) -> Iterator[Edit]:
    """Yield the edits after which a constraint demands two groups; none if it does."""
    text = f"spreadConstraints: {field} minGroups {_PLACES}"
    for index, each in enumerate(listed):
        if each.get("spreadByField") != field:
            continue
        for name in ("minGroups", "maxGroups"):
            value = each.get(name) or 0
            if (value or name == "minGroups") and value < _PLACES:
                yield edit(
                    Side.POLICY,
                    "spread",
                    ref,
                    PatchAction.SET,
                    (*_PATH, index, name),
                    value=_PLACES,
                    text=text if name == "minGroups" else f"{field} maxGroups {_PLACES}",
                )
        return
    constraint = {"spreadByField": field, "minGroups": _PLACES}
    yield edit(Side.POLICY, "spread", ref, PatchAction.APPEND, _PATH, value=constraint, text=text)


def rebalancer() -> EditShown:
    """Return the WorkloadRebalancer of the workloads of a policy; ``rebalance`` writes one."""
    shown = ObjectShown("WorkloadRebalancer", "", "")
    return EditShown(Side.TRIGGER, "rebalance", shown, "a WorkloadRebalancer of its workloads")
