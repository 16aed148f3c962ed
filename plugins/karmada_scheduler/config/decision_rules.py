"""The rules by which decisions of supported karmada-schedulers differ, as one frozen value that is handed down.

Source: karmada v1.17.1 and v1.18.2, pkg/estimator/client/general.go, pkg/util/selector.go; master of 2026-08-21
(f8fdd02df), pkg/scheduler/scheduler.go, pkg/scheduler/core/common.go, pkg/features/features.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from karmada_scheduler.api.placement import Placement

ModelEstimate = Literal["simulate", "by_grade"]


@dataclass(frozen=True, slots=True)
class DecisionRules:
    """The rules of one version of karmada-scheduler.

    Attributes:
        decisions_of: The version, as ``--decisions-of`` has it.
        zones_must_all_match: Whether a ``fieldSelector`` on ``zone`` with ``In`` has to list all zones of a cluster, and
            not only one of them.
        model_estimate: How replicas are counted by resource models. ``simulate``: placed on virtual nodes, where a
            resource in no model counts as 0. ``by_grade``: the nodes of each grade that suffices times what fits on one
            of them; the resource summary, if a resource is in no model.
        reschedule_from_first: Whether a requested reschedule begins with the first affinity term, and not with the one
            in use.
        target_components: Whether targets of a workload with several components have the replicas of each.
        refuses_old_purge_modes: Whether the API server of that Karmada refuses the purge modes Immediately and Graciously.
        beta_gates: Feature gates that are BETA and on by default, and ALPHA and off in others.
    """

    decisions_of: str = "1.18"
    zones_must_all_match: bool = False
    model_estimate: ModelEstimate = "simulate"
    reschedule_from_first: bool = False
    target_components: bool = False
    refuses_old_purge_modes: bool = False
    beta_gates: frozenset[str] = frozenset()

    def placement(self, placement: Placement) -> Placement:
        """Return a placement that matches clusters by these rules; it is not for writing."""
        return placement.matching_all_zones if self.zones_must_all_match else placement


DEFAULT_RULES: Final = DecisionRules()
RULES: Final[Mapping[str, DecisionRules]] = MappingProxyType(
    {
        each.decisions_of: each
        for each in (
            DEFAULT_RULES,
            DecisionRules(
                "1.19",
                reschedule_from_first=True,
                target_components=True,
                refuses_old_purge_modes=True,
                beta_gates=frozenset({"PriorityBasedScheduling"}),
            ),
            DecisionRules("1.17", zones_must_all_match=True, model_estimate="by_grade"),
        )
    }
)
