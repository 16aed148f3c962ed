"""A rebalance proposal as data: what ``rebalance`` prints, in every format."""

from __future__ import annotations

from enum import Enum

from karmada_advisor.explain.model import PolicyRef, Provenance
from karmada_advisor.state.model import BindingEntry, Target, WordedEnum
from karmada_scheduler.structs import Struct


class Goal(WordedEnum):
    """What a rebalance is for."""

    SPREAD = "spread", "even out the dominant shares"
    """Lower the standard deviation of the clusters' dominant shares."""
    CONSOLIDATE = "consolidate", "use fewer clusters per Aggregated binding"
    """Use fewer clusters per binding that is divided as Aggregated."""
    FILL = "fill", "use one cluster"
    """Start replicas on one cluster."""


class Reason(WordedEnum):
    """Why a binding is in a proposal, in the order of their weight."""

    PLACED = "placed", "placed at last"
    """It has no cluster, or its decision fails, and a rebalance places it."""
    DISALLOWED = "disallowed", "off clusters that the policy no longer allows"
    """It has replicas on clusters that its placement no longer allows."""
    GOAL = "goal", "for the goal"
    """It serves the goal."""


class Left(WordedEnum):
    """Why a binding is not in a proposal."""

    LOCALITY_KEEPS = (
        "LocalityKeeps",
        "cluster maxGroups is met by present clusters, which score 100: a rebalance selects them again",
    )
    """The clusters that it has meet maxGroups, and present clusters score 100: a rebalance selects them again."""
    SAME_PLACEMENT = "SamePlacement", "a rebalance gives the placement that it has"
    """A rebalance gives the clusters and replicas that it has."""
    NO_GAIN = "NoGain", "would move, and not serve the goal"
    BELOW_MIN_KEPT = "BelowMinKept", "more than --min-kept permits would move"
    MAX_MOVES = "MaxMoves", "more would move than --max-moves permits"
    MAX_BINDINGS = "MaxBindings", "--max-bindings is reached"
    MAX_PER_NAMESPACE = "MaxPerNamespace", "--max-per-namespace is reached"
    FAILS = "Fails", "the decision would fail"
    CHANGES_ANYWAY = "ChangesAnyway", "the next event moves it without a rebalance"


class Skipped(Enum):
    """Why a binding was not looked at."""

    DUPLICATED = "Duplicated"
    STATIC_WEIGHTS = "static weights"
    WITHOUT_REPLICAS = "without replicas"
    NOT_SCHEDULED_HERE = "suspended, deleted or of another scheduler"
    FOLLOWERS = "without a placement of their own"
    EXCLUDED = "excluded"
    UNDECIDED = "nobody decides"
    """Its scheduler does not exist, or is down."""
    HELD = "held by a quota or a plugin"
    NOT_JUDGED = "not judged"
    """The rules by which its scheduler decides are not known."""


class Bounds(Struct, frozen=True):
    """The limits of a proposal.

    Attributes:
        max_moves: Replicas that stop on a cluster, of all bindings together.
        max_bindings: Bindings; None for any number.
        max_per_namespace: Bindings of one namespace; None for any number.
        min_kept: The part of its replicas, from 0 to 1, that each binding keeps where they are.
        min_gain: What a replica that moves has to gain at least, in the unit of the goal.
        batch_size: Bindings that are rebalanced at the same time.
    """

    max_moves: int
    max_bindings: int | None = None
    max_per_namespace: int | None = None
    min_kept: float = 0.5
    min_gain: float = 0.0
    batch_size: int = 10


class RebalancedWorkload(Struct, frozen=True):
    """The template of a binding, as a WorkloadRebalancer names it."""

    api_version: str
    kind: str
    namespace: str
    name: str


class BindingMove(BindingEntry, frozen=True):
    """What a rebalance does to one binding.

    Attributes:
        before: Its clusters, as they are stored.
        after: Its clusters after the rebalance.
        stops: Replicas that stop on a cluster; they count for ``--max-moves``.
        starts: Replicas that start on a cluster.
        gain: What it does for the goal.
    """

    workload: RebalancedWorkload
    reason: Reason
    before: tuple[Target, ...]
    after: tuple[Target, ...]
    stops: int
    starts: int
    gain: float


class Batch(Struct, frozen=True):
    """Bindings that are rebalanced at the same time; their decisions do not see each other."""

    number: int
    moves: tuple[BindingMove, ...]


class LeftGroup(Struct, frozen=True):
    """Bindings that are not in the proposal, for one reason."""

    reason: Left
    count: int
    bindings: tuple[str, ...]


class SkippedGroup(Struct, frozen=True):
    """Bindings that were not looked at."""

    reason: Skipped
    count: int


class ClusterShare(Struct, frozen=True):
    """A cluster before and after the proposal.

    Attributes:
        share_before: The dominant share of what is allocated: 1 is full; None without a resource summary.
        share_after: The same after all batches, if all replicas run.
    """

    name: str
    share_before: float | None
    share_after: float | None
    replicas_before: int
    replicas_after: int


class Suggestion(Struct, frozen=True):
    """An edit of a policy after which the same search finds more, verified by that search.

    Attributes:
        policy: The policy; None if its bindings do not name one.
        text: The edit.
        bindings: Bindings in the proposal after it.
        stops: Replicas that stop in it.
    """

    policy: PolicyRef | None
    text: str
    bindings: int
    stops: int


class RebalanceProposal(Struct, frozen=True):
    """Which bindings to rebalance, and what that does. Nothing is executed.

    Attributes:
        fingerprint: A hash over all that the decisions read.
        fill: The cluster of the goal ``fill``; "" otherwise.
        clusters: How many clusters there are.
        total: How many bindings there are.
        looked_at: Bindings for which a rebalance was decided.
        bindings: Bindings in the proposal.
        stops: Replicas that stop in all batches.
        deviation_before: The standard deviation of the clusters' dominant shares.
        deviation_after: The same after all batches.
        shares: The clusters whose replicas change, the largest change first.
        suggestion: None if no edit of a policy was found that helps.
        notes: Sentences for people.
    """

    provenance: Provenance
    fingerprint: str
    goal: Goal
    fill: str
    bounds: Bounds
    clusters: int
    total: int
    looked_at: int
    bindings: int
    stops: int
    batches: tuple[Batch, ...]
    deviation_before: float
    deviation_after: float
    shares: tuple[ClusterShare, ...]
    left: tuple[LeftGroup, ...]
    skipped: tuple[SkippedGroup, ...]
    suggestion: Suggestion | None
    notes: tuple[str, ...] = ()
