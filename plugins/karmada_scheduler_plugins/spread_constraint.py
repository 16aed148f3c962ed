"""SpreadConstraint: refuse clusters without the property of a spread constraint."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from karmada_scheduler.api.placement import SPREAD_BY_PROVIDER, SPREAD_BY_REGION, SPREAD_BY_ZONE
from karmada_scheduler.framework import SUCCESS, Cycle, FilterContext, Result

_NO_PROVIDER: Final = Result.unschedulable("cluster(s) did not have provider property")
_NO_REGION: Final = Result.unschedulable("cluster(s) did not have region property")
_NO_ZONES: Final = Result.unschedulable("cluster(s) did not have zones property")


class SpreadConstraint:
    """Filter by provider, region and zones, each only if a constraint spreads by it."""

    name = "SpreadConstraint"
    filter_key_covers_current = True

    def filter_key(self, cycle: Cycle, /) -> Hashable:
        """Depends on the fields to spread by, in their order, whatever their limits."""
        return tuple([each.spread_by_field for each in cycle.placement.spread_constraints])

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
