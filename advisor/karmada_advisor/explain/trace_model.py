"""The steps of a decision as data: what was compared, and what each cluster got."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada_advisor.state.model import Target
from karmada_scheduler.structs import Struct, field


class Rule(Struct, frozen=True):
    """One of the rules that decide whether a binding is scheduled.

    Attributes:
        id: R1 to R5, in the order in which they are checked.
        name: What is compared.
        holds: Whether the rule asks for a decision.
        left: One side of the comparison.
        right: The other side.
    """

    id: str
    name: str
    holds: bool
    left: str
    right: str


class TriggerTrace(Struct, frozen=True):
    """Whether anything asks for a decision.

    Attributes:
        schedule_class: First, Reconcile, Scale, Failover or Avoid.
        reason: The log line of karmada-scheduler for it.
        on_rebalance: The placement after a WorkloadRebalancer; None if it was not computed or that decision fails.
        rebalance_error: Why the decision after a WorkloadRebalancer fails; "" if it does not.
    """

    schedule_class: str
    reason: str
    rules: tuple[Rule, ...]
    on_rebalance: tuple[Target, ...] | None = None
    rebalance_error: str = ""

    @property
    def asks(self) -> bool:
        """Whether the binding is scheduled at its next event."""
        return self.schedule_class != "Avoid"


class FunnelStage(Struct, frozen=True):
    """One step from all clusters to the result.

    Attributes:
        before: Clusters, or for DIVIDE replicas, that enter the step.
        after: Clusters that leave it; None for SCORE and DIVIDE.
        decisive: Whether this step determines the answer.
    """

    name: str
    before: int
    after: int | None
    text: str
    decisive: bool = False


class Refusal(Struct, frozen=True):
    """The clusters that one plugin refuses for one reason, counted by the first refusal of each cluster.

    Attributes:
        reason: As in the condition.
        short: The same in a few words.
        count: The number of clusters.
        names: All of them, in the order of names.
    """

    plugin: str
    reason: str
    short: str
    count: int
    names: tuple[str, ...]


class FilterCell(Struct, frozen=True):
    """The answer of one Filter plugin about one cluster.

    Attributes:
        evidence: What the plugin compared: the taint, the selector with the value of the label.
    """

    plugin: str
    reason: str
    short: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


class ScoreCell(Struct, frozen=True):
    """The score of one plugin for one cluster.

    Attributes:
        raw: Before ``normalize_score``; None if the plugin was not called again.
        normalized: 0 to 100.
        total: ``normalized`` times ``weight``.
    """

    plugin: str
    raw: int | None
    normalized: int
    weight: int
    total: int


class Estimate(Struct, frozen=True):
    """The answer of one estimator about one cluster; None where it has none."""

    estimator: str
    replicas: int | None


class CapacityCell(Struct, frozen=True):
    """How many replicas a cluster can take.

    Attributes:
        available: With the replicas that the binding has there.
        allocatable: Replicas that can be added.
        own: Replicas that the binding has there.
        estimates: The answers of the estimators, and last what EstimateReplicas plugins make of them.
        source: The estimator, or the plugins, whose answer counts; "" if none has one, so that the number of replicas counts.
        limited_by: The resource that allows the fewest replicas; "pods", "nodes" for resource models, the reason of a
            plugin, "" if unknown.
        free: What is left of that resource.
        requested: What one replica requests of it.
        assumed: Bindings that count as placed there although the cluster has not reported them.
        bounded_by: What the number comes from: ``resource summary``, ``assumed workloads``, ``resource models`` with the
            largest grade of which a node is free, or ``EstimateReplicas`` with plugins; "" if it was not counted.
    """

    available: int
    allocatable: int
    own: int
    estimates: tuple[Estimate, ...] = ()
    source: str = ""
    limited_by: str = ""
    free: str = ""
    requested: str = ""
    assumed: tuple[str, ...] = ()
    bounded_by: str = ""


class ClusterRow(Struct, frozen=True):
    """One cluster on its way through the decision.

    Attributes:
        refusals: All refusals, the first one first; the clusters without any pass.
        not_called: Plugins that were not called again for this cluster.
        rank: Place in the order of preference from 1; 0 for a refused cluster.
        selected: None for a refused cluster.
        not_selected_because: For people; "" for a selected cluster.
        replicas: In the result.
        present: Replicas that the binding has there now; None if it is not there.
        cause: The code of the primary cause for which the cluster has no replicas; "" if it has some.
    """

    name: str
    region: str = ""
    refusals: tuple[FilterCell, ...] = ()
    not_called: tuple[str, ...] = ()
    scores: tuple[ScoreCell, ...] = ()
    score: int | None = None
    tier: int = 0
    capacity: CapacityCell | None = None
    rank: int = 0
    selected: bool | None = None
    not_selected_because: str = ""
    replicas: int = 0
    is_target: bool = False
    present: int | None = None
    cause: str = ""


class Combination(Struct, frozen=True):
    """A sufficient set of groups.

    Attributes:
        names: The groups, in the order of names.
        lost_by: The criterion at which it lost against the taken one: ``weight``, ``clusters``, ``groupClusters``,
            ``groupWeight``, ``name``, or ``superset`` for the winner of which a part suffices; "" for the taken one.
    """

    names: tuple[str, ...]
    clusters: int
    weight: int
    lost_by: str = ""

    @property
    def taken(self) -> bool:
        """Whether it was chosen."""
        return not self.lost_by


class GroupRow(Struct, frozen=True):
    """A region with its score."""

    name: str
    weight: int
    clusters: tuple[str, ...]


class Swap(Struct, frozen=True):
    """A cluster that was replaced because the first choice had too few available replicas."""

    removed: str
    added: str


class SelectTrace(Struct, frozen=True):
    """How the clusters were selected.

    Attributes:
        by: ``all`` without constraints that count, ``region``, ``cluster``, or ``plugin`` for another Select plugin.
        limits: Field to minimum and maximum, of the constraints that count.
        ignored: Constraints that do not count, with the reason.
        groups: The regions, in the order of names.
        combinations: The best, at most 10, the taken one first; empty if there are too many sets to enumerate.
        more_combinations: The number of the others; -1 if it was not counted.
        swaps: Clusters that were replaced by ones with more available replicas.
        losses: Cluster that was not selected to the criterion at which it lost: ``tier``, ``score``, ``available`` or
            ``name`` against the last selected one, ``maximum`` in a selected region, or ``one`` if there
            is no maximum, so that the region gets one, ``swap``, or ``region:`` with the criterion of the best combination with its region.
        error: Why nothing was selected; "" otherwise.
    """

    by: str
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    combinations: tuple[Combination, ...] = ()
    more_combinations: int = 0
    swaps: tuple[Swap, ...] = ()
    losses: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


class DivisionRow(Struct, frozen=True):
    """One cluster in the division.

    Attributes:
        weight: Available replicas, a static weight, or the current replicas when it shrinks.
        share: Part of all weights, 0 to 1.
        exact: The share of the replicas that were divided, before rounding.
        kept: Replicas that were kept before.
        seats: Replicas from this division.
        last_seat: The number of the replica that the cluster got last, from 1; 0 without any.
        next_at: The quotient at which the cluster would get its next replica.
    """

    name: str
    weight: int
    share: float
    exact: float
    kept: int
    seats: int
    last_seat: int
    next_at: float
    tier: int = 0


class DivideTrace(Struct, frozen=True):
    """How the replicas were divided.

    Attributes:
        strategy: Duplicated, StaticWeight, DynamicWeight, Aggregated, ``none`` without replicas, or the name of
            another Assign plugin.
        mode: ``first``, ``keep``, ``up`` and ``down`` for a steady division, ``fresh``.
        replicas: Replicas to have in all.
        divided: Replicas that were divided; the others were kept.
        ties: How ties are broken: ``ascending`` or ``descending`` names, from the parity of the uid.
        tied: The last replica went to the first of these clusters although all had the same quotient and seats.
        last_quotient: The quotient at which the last replica was given.
        unused: Clusters that were not needed (Aggregated) or have no weight.
        error: Why nothing was divided; "" otherwise.
    """

    strategy: str
    mode: str
    replicas: int
    divided: int = 0
    ties: str = "ascending"
    rows: tuple[DivisionRow, ...] = ()
    tied: tuple[str, ...] = ()
    last_quotient: float = 0.0
    unused: tuple[str, ...] = ()
    available: int = 0
    error: str = ""


class TermRow(Struct, frozen=True):
    """One affinity term of the decision.

    Attributes:
        outcome: ``used``, ``failed``, ``not tried`` or ``left`` for a term before the one in use.
        text: Why it failed.
    """

    index: int
    name: str
    outcome: str
    text: str = ""


class Mismatch(Struct, frozen=True):
    """A part of the schema of explanations; steps are what the core kept, so there is none."""

    trace: str
    place: str
    ours: str
    decision: str
