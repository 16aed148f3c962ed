"""The forecast of losses as data: what ``survive`` prints, in every format."""

from __future__ import annotations

from collections.abc import Mapping

from karmada_advisor.explain.model import ObjectPatch, PolicyRef, Provenance
from karmada_advisor.state.model import BindingEntry, Target
from karmada_advisor.whatif.plan.capacity_model import Demand
from karmada_advisor.whatif.survive.classify import FailedBy, LossClass
from karmada_advisor.whatif.survive.domains import FailureDomain
from karmada_advisor.whatif.survive.loss import UNREACHABLE, Loss
from karmada_advisor.whynot.model import EditShown
from karmada_scheduler.structs import Struct


class LossSettings(Struct, frozen=True):
    """How the fleet is taken to react to a loss.

    Attributes:
        loss: The world by which domains are ordered and judged.
        failover: Whether karmada-controller-manager runs with the feature gate Failover.
        eviction: Whether it evicts from clusters with NoExecute taints.
        eviction_rate: Evictions per second of each of its workers; with 0 each waits for 30 minutes after one.
        purge_mode: Of bindings that name none.
        eviction_timeout: Seconds after which an eviction ends although the new replicas are not healthy.
        noticed_push: Seconds until a cluster in mode Push has a taint.
        noticed_pull: The same in mode Pull.
        tainted_clusters: Number of clusters to which ClusterTaintPolicies add a NoExecute taint once they are not ready; None if
            the policies are not known.
        taint: The key of the NoExecute taint that ``gone`` takes to be there.
        defaults_assumed: Whether these are Karmada's defaults because nothing tells otherwise.
    """

    loss: Loss
    failover: bool = False
    eviction: bool = False
    eviction_rate: float = 0.5
    purge_mode: str = "Gracefully"
    eviction_timeout: int = 600
    noticed_push: int = 40
    noticed_pull: int = 45
    tainted_clusters: int | None = None
    taint: str = UNREACHABLE
    defaults_assumed: bool = True


class LossCounts(Struct, frozen=True):
    """What a loss does in one world.

    Attributes:
        counts: Bindings by class; every class is there.
        dark: Bindings of which nothing runs afterwards, although replicas are wanted.
        interrupted: Bindings of which nothing runs until a new copy does.
        missing: Replicas, or copies, that are wanted and do not run afterwards.
        swept_replicas: Replicas, or copies, that start elsewhere of bindings that were not on a lost cluster.
        moving_replicas: The same of bindings that were.
    """

    counts: Mapping[str, int]
    dark: int
    interrupted: int
    missing: int
    swept_replicas: int
    moving_replicas: int


class LossTimes(Struct, frozen=True):
    """Estimated seconds since the loss.

    Attributes:
        noticed: Until Karmada sets the taint.
        first: Until the first eviction.
        last: Until the last one.
    """

    noticed: int
    first: int
    last: int


class Overcommitted(Struct, frozen=True):
    """A cluster of which a loss asks more than it has free.

    Attributes:
        name: The cluster.
        demands: What is asked, per resource of which there is too little.
    """

    name: str
    demands: tuple[Demand, ...]


class DomainLoss(FailureDomain, frozen=True):
    """A domain, and what its loss does.

    Attributes:
        done: Whether its loss was decided; if not, nothing is known about it.
        is_spof: Whether it makes at least one workload dark.
        chosen: What happens in the world by which domains are ordered.
        itself: What happens automatically, by the settings of the fleet.
        times: None if nothing is evicted.
        overcommitted: Where more is asked than is free, the most first.
    """

    done: bool
    is_spof: bool
    chosen: LossCounts
    itself: LossCounts
    times: LossTimes | None
    overcommitted: tuple[Overcommitted, ...]


class BindingLoss(Struct, frozen=True):
    """What some losses do to a binding, each of them alone.

    Attributes:
        domains: Their indexes in ``SurvivalReport.domains``.
        effect: The class.
        dark: Whether nothing runs afterwards, although replicas are wanted.
        interrupted: Whether nothing runs until a new copy does.
        missing: Replicas, or copies, that are wanted and do not run afterwards.
        failed_by: Why the decision fails.
        message: What the scheduler writes then; "" without a failure.
        pending: Whether it is short because replicas are assigned to clusters that have no capacity for them.
        after: Its clusters after the decision.
    """

    domains: tuple[int, ...]
    effect: LossClass
    dark: bool
    interrupted: bool
    missing: int
    failed_by: FailedBy
    message: str
    pending: bool
    after: tuple[Target, ...]


class BindingLosses(BindingEntry, frozen=True):
    """What losses do to one binding.

    Attributes:
        policy: The policy that claims it; None if that is not known.
        replicas: Of the workload.
        before: Its clusters.
        drift: Whether a decision is due that changes it without any loss; ``before`` is after that one.
        losses: The losses that do something to it; those of ``moves`` and ``holds`` only if all were asked for.
    """

    policy: PolicyRef | None
    replicas: int
    before: tuple[Target, ...]
    drift: bool
    losses: tuple[BindingLoss, ...]


class LossRemedy(Struct, frozen=True):
    """What to change so that workloads survive losses that they do not survive now.

    Attributes:
        policy: What is edited; None for bindings, and for what concerns the fleet.
        effect: The class that it mends.
        domains: The indexes of the losses that it mends for some binding, in ``SurvivalReport.domains``.
        bindings: How many bindings it mends.
        edits: In the order in which they are applied.
        apply: The patches; empty for what is no patch of an object.
        moves_today: Replicas that stop today, because of it.
        starts_today: Replicas that start today.
        needs_owner: Whether it admits what the owner of the policy has kept out, or not named.
        verified: Whether all losses were decided again with it: it mends what it says, nothing is worse, and no decision
            fails today.
        flags: To append to the command line of a component.
    """

    policy: PolicyRef | None
    effect: LossClass
    domains: tuple[int, ...]
    bindings: int
    edits: tuple[EditShown, ...]
    apply: tuple[ObjectPatch, ...]
    moves_today: int
    starts_today: int
    needs_owner: bool
    verified: bool
    flags: tuple[str, ...]


class SurvivalTotals(Struct, frozen=True):
    """The numbers of a report.

    Attributes:
        bindings: Bindings with a class for each loss.
        clusters: All clusters.
        pending_before: Bindings that are on no cluster already, or will be without any loss; they have no class.
        followers: Bindings without a placement: they follow those that require them.
        deleting: Bindings that are being deleted.
        domains: How many domains there are.
        spofs: How many of them are single points of failure.
        dark: Bindings that at least one loss makes dark.
        not_judged: Bindings of schedulers whose rules are not known; losses of their clusters have the class ``not-judged``.
    """

    bindings: int
    clusters: int
    pending_before: int
    followers: int
    deleting: int
    domains: int
    spofs: int
    dark: int
    not_judged: int = 0


class SurvivalReport(Struct, frozen=True):
    """What survives the loss of each failure domain.

    Attributes:
        fingerprint: A hash over all that the decisions read.
        summary: The first sentence, for the person on call.
        domains: The worst first.
        bindings: Those to which a loss does something.
        fail_on: What was asked for.
        failing: Indexes of the domains with something of it; with a baseline, with more than there.
        has_baseline: Whether an earlier report was compared.
        remedies: Those of the worst bindings first; what concerns the fleet comes last.
        notes: Sentences for people.
    """

    provenance: Provenance
    fingerprint: str
    settings: LossSettings
    summary: str
    totals: SurvivalTotals
    domains: tuple[DomainLoss, ...]
    bindings: tuple[BindingLosses, ...]
    fail_on: tuple[str, ...] = ()
    failing: tuple[int, ...] = ()
    has_baseline: bool = False
    remedies: tuple[LossRemedy, ...] = ()
    notes: tuple[str, ...] = ()
