"""The inputs of a decision, which all of its runs share."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from karmada_scheduler.api.binding import BindingKey, BindingSpec
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import Assumed, Estimators, counts_component_sets
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.ordering.cache import OrderingCaches
from karmada_scheduler.framework.cycle import Cycle, InFlight, Peers, no_workload
from karmada_scheduler.framework.diagnosis import Diagnosis
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.scheduling_points import Shortage
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct


class TermShortage(Struct, frozen=True):
    """An affinity term for which clusters pass, and cannot take what is needed.

    ``skipped`` and ``left_out`` are plugins and clusters as in ``Framework.run_post_filter``.
    """

    cycle: Cycle
    diagnosis: Diagnosis
    skipped: frozenset[str]
    left_out: Container[str]
    shortage: Shortage


class DecisionInputs(Struct, frozen=True):
    """The inputs of a decision, which all of its runs share.

    Attributes:
        snapshot: All clusters.
        framework: The plugins of the binding's profile.
        caches: The cached orders of that profile.
        estimators: The estimators of this decision.
        gates: Feature gates.
        empty_workload_propagation: Whether selected clusters without replicas become targets.
        assumed: Recent placements that count as taken.
        peers: The bindings of the same workload groups; None without the gate WorkloadAffinity.
        in_flight: Bindings that are decided and may not be written yet.
        budget: CPU time of the decision; None means no limit.
        workload: Metadata of the workload; None if no plugin needs it.
        stored_workload: Returns the workload of a binding as it is stored, None if it is not known.
        keeps_steps: Whether the attempts keep what their steps worked with.
        shortages: Gets the affinity terms that lack capacity, for PostFilter plugins; None if none is called for that.
        is_proposed: Whether a Reconsider plugin has proposed the decision. Nothing is then done to make it possible.
    """

    snapshot: Snapshot
    framework: Framework
    caches: OrderingCaches
    estimators: Estimators
    gates: FeatureGates
    empty_workload_propagation: bool
    assumed: Assumed
    peers: Peers | None
    in_flight: Sequence[InFlight]
    budget: Budget | None = None
    workload: WorkloadAnswer | None = None
    stored_workload: Callable[[BindingKey], Workload | None] = no_workload
    is_proposed: bool = False
    keeps_steps: bool = False
    shortages: list[TermShortage] | None = None

    def slice_is_over(self) -> bool:
        """Return whether the decision has to yield to the event loop; see ``yield_if_due``."""
        return self.budget is not None and self.budget.slice_is_over()

    async def yield_if_due(self) -> None:
        """Yield to the event loop if the slice is over.

        Raises:
            OverBudgetError: The decision has used its CPU time.
        """
        if self.budget is not None:
            await self.budget.yield_if_due()

    def can_use_cached_order(self, spec: BindingSpec) -> bool:
        """Return whether a cluster's available replicas depend only on that cluster and the resource request."""
        return (
            not self.assumed
            and self.estimators.session is None
            and not counts_component_sets(spec, self.gates)
        )
