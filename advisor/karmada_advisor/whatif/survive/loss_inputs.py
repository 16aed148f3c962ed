"""Everything that the forecast of losses reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from karmada_advisor.whatif.plan.decide import Progress, no_progress
from karmada_advisor.whatif.plan.holds import HoldOf, nothing_holds
from karmada_advisor.whatif.survive.domains import FailureDomain
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.taints import NO_POLICIES, LossTaints
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, field


def never() -> bool:
    return False


class LossInputs(Struct, frozen=True):
    """Everything that the forecast of losses reads.

    Attributes:
        clusters: All clusters.
        bindings: All bindings, in the order in which they were read.
        rules: The configuration of the scheduler.
        domains: What is lost, each alone.
        losses: The worlds after a loss.
        hold_of: Returns why decisions about a binding do not take effect, None if they do.
        purge_modes: ``spec.failover.cluster.purgeMode`` of the bindings that have one.
        purge_mode: Of the others; "" for Karmada's default.
        taints: Of lost clusters.
        progress: Called with the number of bindings that are done, and their total.
        is_over: Whether to end with the domains that are done.
        snapshot: The same clusters; None to make one. Of a sequence with a log of changes, caches stay hot.
    """

    clusters: Sequence[Cluster]
    bindings: Sequence[Binding]
    rules: DryRun
    domains: Sequence[FailureDomain]
    losses: Sequence[Loss] = (Loss.GONE, Loss.ITSELF)
    hold_of: HoldOf = nothing_holds
    purge_modes: Mapping[BindingKey, str] = field(default_factory=dict)
    purge_mode: str = ""
    taints: LossTaints = NO_POLICIES
    progress: Progress = no_progress
    is_over: Callable[[], bool] = never
    snapshot: Snapshot | None = None
