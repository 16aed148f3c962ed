"""SpreadConstraint: refuse clusters without the property of a spread constraint."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from karmada_scheduler.api.placement import SPREAD_BY_PROVIDER, SPREAD_BY_REGION, SPREAD_BY_ZONE
from karmada_scheduler.framework import (
    SUCCESS,
    Cluster,
    Cycle,
    Edit,
    EditContext,
    Evidence,
    EvidenceContext,
    FilterContext,
    Result,
)
from karmada_scheduler_plugins.placement_edits import drop_constraint, drop_constraints
from karmada_scheduler_plugins.selector_edits import set_field, set_zones

_NO_PROVIDER: Final = Result.unschedulable("cluster(s) did not have provider property")
_NO_REGION: Final = Result.unschedulable("cluster(s) did not have region property")
_NO_ZONES: Final = Result.unschedulable("cluster(s) did not have zones property")


class SpreadConstraint:
    """Filter by provider, region and zones, each only if a constraint spreads by it."""

    name = "SpreadConstraint"
    filter_key_covers_current = True
    free_of_side_effects = True
    codes: Final = {
        "PropertyMissing": "a spread constraint needs another property",
        "ProviderMissing": "a spread constraint needs spec.provider",
        "RegionMissing": "a spread constraint needs spec.region",
        "ZonesMissing": "a spread constraint needs spec.zones",
    }

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the fields to spread by, in their order, whatever their limits."""
        return tuple([constraint.spread_by_field for constraint in cycle.placement.spread_constraints])

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse a cluster by the first constraint whose property it lacks."""
        cluster = context.cluster
        for constraint in context.cycle.placement.spread_constraints:
            match constraint.spread_by_field:
                case field if field == SPREAD_BY_PROVIDER and not cluster.provider:
                    return _NO_PROVIDER
                case field if field == SPREAD_BY_REGION and not cluster.region:
                    return _NO_REGION
                case field if field == SPREAD_BY_ZONE and not cluster.zones:
                    return _NO_ZONES
        return SUCCESS

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        """Return the property that the cluster lacks."""
        for constraint in context.cycle.placement.spread_constraints:
            if (name := constraint.spread_by_field) in _lacking(context.cluster):
                shown = "zones" if name == SPREAD_BY_ZONE else name
                short, path = f"no {shown}", f"spec.{shown}"
                fields = {"clause": f"{short} property", "field": path}
                text = f"{path} is not set, and a spread constraint needs it"
                return Evidence(f"{shown.capitalize()}Missing", short, fields, text, short)
        return Evidence("PropertyMissing", text="a property is not set, and a spread constraint needs it")

    def edits(self, context: EditContext, /) -> Iterator[Edit]:
        """Yield the property that the cluster lacks, and the removal of the constraints that need it."""
        lacking, needs = _lacking(context.cluster), False
        for index, constraint in enumerate(context.placement_items("spreadConstraints")):
            name = constraint.get("spreadByField")
            if name not in lacking:
                continue
            needs = True
            if name == SPREAD_BY_ZONE:
                yield set_zones(context, "zone-1")
            else:
                yield from _new_field(context, name)
            yield drop_constraint(context, index, name)
        if needs:
            yield from drop_constraints(context)


def _lacking(cluster: Cluster) -> set[str]:
    """Return the fields of spread constraints for which a cluster has no value."""
    present = {
        SPREAD_BY_PROVIDER: cluster.provider,
        SPREAD_BY_REGION: cluster.region,
        SPREAD_BY_ZONE: cluster.zones,
    }
    return {name for name, value in present.items() if not value}


def _new_field(context: EditContext, name: str) -> Iterator[Edit]:
    """Yield edits that fill in the region (or provider) of a cluster that has none: an existing one, or one of its own."""
    existing = sorted({getattr(cluster, name) for cluster in context.cycle.snapshot} - {""})
    used = [getattr(candidate.cluster, name) for candidate in context.selected]
    first = [value for value in existing if value in used]
    others = [value for value in existing if value not in used]
    for number, value in enumerate([*first[:2], *others[:1], f"{context.name}-{name}"]):
        yield set_field(context, name, value, extra=0.05 * number)
