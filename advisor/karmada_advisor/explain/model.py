"""An explanation as data: what ``explain`` and ``why-not`` print, in every format.

Texts are short and for people; programs read codes, names and numbers. Units are those of the objects: replicas, and
quantities as Kubernetes writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from karmada_advisor.state.model import BindingEntry, BindingState, Target

__all__ = ["BindingState", "Target"]  # both are a part of an explanation

API_VERSION: Final = "explain.pyscheduler.karmada.io/v1alpha1"


class Stage(Enum):
    """A step of a decision, in the order of the precedence of causes."""

    TRIGGER = "trigger"
    POLICY = "policy"
    FILTER = "filter"
    SCORE = "score"
    SELECT = "select"
    DIVIDE = "divide"
    CAPACITY = "capacity"
    WRITE = "write"
    PROPAGATE = "propagate"


class NextState(Enum):
    """What the next decision would make of a binding, or why there would be none."""

    PLACED = "placed"
    NOT_PLACED = "not placed"
    STUCK = "stuck"
    """It keeps its placement, and every decision fails."""
    NO_REPLICAS = "no replicas"
    """There is nothing to divide, so an empty result is right."""
    SUSPENDED = "suspended"
    NOT_CLAIMED = "not claimed"
    NO_PLACEMENT = "no placement"
    OTHER_SCHEDULER = "other scheduler"
    GATED = "gated"
    """A PreEnqueue plugin holds it back."""
    BEING_DELETED = "being deleted"


class Tense(Enum):
    """Where an explanation comes from."""

    RECORDED = "recorded"
    """What the scheduler saw at the time of the decision."""
    REPLAYED = "replayed"
    """The same rules on a capture of what the decision read."""
    RECOMPUTED = "recomputed"
    """What the same rules say now."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a binding is not placed, or a cluster does not have it, or the result looks as it does.

    Attributes:
        code: Stable and documented in docs/explain.md.
        stage: The step that it belongs to.
        evidence: Names and numbers that show it; JSON values.
        text: One sentence.
        primary: Whether it is the one to look at first; of the causes of one answer exactly one is.
    """

    code: str
    stage: Stage
    evidence: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    primary: bool = False


@dataclass(frozen=True, slots=True)
class PolicyRef:
    """The policy that claims the template of the binding."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}"


@dataclass(frozen=True, slots=True)
class BindingHead(BindingEntry):
    """What the binding asks for.

    Attributes:
        request: Resource name to quantity of one replica.
        policy: None if the binding names none.
    """

    generation: int
    replicas: int
    request: Mapping[str, str]
    policy: PolicyRef | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the explanation comes from.

    Attributes:
        source: For people: "the API server", "files".
        rules: By which rules it was decided again, for people.
        at: Time in the format of the API; "" if it does not matter.
        fleet: A hash of the clusters that were read, to compare two explanations.
        basis: How the decision that is shown was made: ``as it is``, or ``first`` for a decision as if the binding
            were new, which is shown if its result is the placement that the binding has.
        record: The record of a running scheduler, None without one. The steps are recomputed all the same.
        no_record: Why there is no record although one was asked for.
        queue_state: Where the binding is in the queue of that scheduler; "" if it is in none, or unknown.
        due_in_seconds: Until the next decision by timer; None without one.
    """

    tense: Tense
    source: str
    at: str = ""
    fleet: str = ""
    basis: str = "as it is"
    rules: str = ""
    record: RecordedDecision | None = None
    no_record: str = ""
    queue_state: str = ""
    due_in_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """The record that a running scheduler has of the last decision.

    Attributes:
        at: When it was decided.
        age_seconds: How long ago; None without a clock.
        event: What enqueued the binding; "" for a timer.
        generation: Of the binding.
        stages: The number of clusters after each step.
        placement: The result; None if it kept what there was.
        error: The message of the condition; "" for a success.
        ending: How the attempt ended: ``written``, ``unchanged``, ``conflict``; "" while it goes on.
        agrees: Whether deciding again gives the same result or error; None if nothing was decided again.
    """

    at: str
    age_seconds: float | None
    process: str
    schedule_class: str
    event: str
    generation: int
    stages: Mapping[str, int]
    placement: tuple[Target, ...] | None
    error: str
    ending: str
    agrees: bool | None


@dataclass(frozen=True, slots=True)
class Rule:
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


@dataclass(frozen=True, slots=True)
class TriggerTrace:
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


@dataclass(frozen=True, slots=True)
class FunnelStage:
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """The clusters that one plugin refuses for one reason, counted by the first refusal of each cluster.

    Attributes:
        reason: As in the condition.
        short: The same in a few words.
        names: All of them, in the order of names.
    """

    plugin: str
    reason: str
    short: str
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class FilterCell:
    """The answer of one Filter plugin about one cluster.

    Attributes:
        evidence: What the plugin compared: the taint, the selector with the value of the label.
    """

    plugin: str
    reason: str
    short: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoreCell:
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """The answer of one estimator about one cluster; None where it has none."""

    estimator: str
    replicas: int | None


@dataclass(frozen=True, slots=True)
class CapacityCell:
    """How many replicas a cluster can take.

    Attributes:
        available: With the replicas that the binding has there.
        allocatable: Replicas that can be added.
        own: Replicas that the binding has there.
        estimates: The answers of the estimators.
        source: The estimator whose answer counts; "" if none has one, so that the number of replicas counts.
        limited_by: The resource that allows the fewest replicas; "pods", "nodes" for resource models, "" if unknown.
        free: What is left of that resource.
        requested: What one replica requests of it.
        assumed: Bindings that count as placed there although the cluster has not reported them.
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


@dataclass(frozen=True, slots=True)
class ClusterRow:
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

    def with_cause(self, code: str) -> ClusterRow:
        """Return the row with the code of its primary cause."""
        return replace(self, cause=code)


@dataclass(frozen=True, slots=True)
class Combination:
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


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A region with its score."""

    name: str
    weight: int
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Swap:
    """A cluster that was replaced because the first choice had too few available replicas."""

    removed: str
    added: str


@dataclass(frozen=True, slots=True)
class SelectTrace:
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
            ``name`` against the last selected one, ``maximum`` in a selected region, ``swap``, or ``region:`` with the
            criterion of the best combination with its region.
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


@dataclass(frozen=True, slots=True)
class DivisionRow:
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


@dataclass(frozen=True, slots=True)
class DivideTrace:
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


@dataclass(frozen=True, slots=True)
class TermRow:
    """One affinity term of the decision.

    Attributes:
        outcome: ``used``, ``failed``, ``not tried`` or ``left`` for a term before the one in use.
        text: Why it failed.
    """

    index: int
    name: str
    outcome: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A trace that does not equal the decision: a defect of the explanation."""

    trace: str
    place: str
    ours: str
    decision: str


@dataclass(frozen=True, slots=True)
class ConditionShown:
    """The condition ``Scheduled`` of the object.

    Attributes:
        is_current: Whether it is about the current generation; a failure does not say.
        agrees: Whether the decision that is shown would write the same.
    """

    status: str
    reason: str
    message: str
    is_current: bool
    agrees: bool
    since: str = ""


@dataclass(frozen=True, slots=True)
class ObjectShown:
    """A Cluster or binding; the namespace is "" for cluster-scoped ones."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class RemedyEdit:
    """One change of one object.

    Attributes:
        side: The part of the system: trigger, policy, workload, cluster, competitor, peer.
        op: The kind of the change; stable.
        text: For people.
        instead: What a person does, if the patch only shows the effect of it; "" if the patch is what a person applies.
    """

    side: str
    op: str
    object: ObjectShown
    text: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class ObjectPatch:
    """An RFC 6902 patch of an object as it was read."""

    object: ObjectShown
    patch: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that places the binding, verified by deciding again; found by why-not.

    Attributes:
        side: The side of the first edit.
        subject: The object of the first edit, for people.
        change: What to change, in one line.
        result: The placement afterwards.
        edits: The edits, in the order in which they are applied; none of them can be left out.
        apply: The patches, in the same order, without those of taints that Karmada's controllers would set again.
        moves: Replicas that stop in one cluster.
        rank: Its place, from 1: less harm first, then less effort.
        harm: What speaks against it: none, narrows, widens, unchecked.
        caution: The same in sentences; "" if nothing does.
    """

    side: str
    subject: str
    change: str
    result: tuple[Target, ...]
    edits: tuple[RemedyEdit, ...] = ()
    apply: tuple[ObjectPatch, ...] = ()
    moves: int = 0
    rank: int = 1
    harm: str = "none"
    caution: str = ""


@dataclass(frozen=True, slots=True)
class RemedySearch:
    """How far the search for remedies went.

    Attributes:
        runs: Sets of changes that were tried.
        seconds: Time that it took.
        complete: Whether nothing was left to try.
        ended_by: The bound that ended it: ``timeout``, ``maxRuns``, or "".
        timeout_seconds: The bound of its time.
    """

    runs: int
    seconds: float
    complete: bool
    ended_by: str
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class WouldBe:
    """What a decision now would give. It is a hypothesis: nothing of it is stored.

    Attributes:
        outcome: What it would make of the binding.
        placement: The clusters that the binding would have.
        text: Why it would fail, and when it is made; "" for a success.
        differs: Whether it is something else than what is stored, or the binding is not placed.
    """

    outcome: NextState
    placement: tuple[Target, ...] = ()
    text: str = ""
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to "why is it there, or why is it nowhere".

    Attributes:
        state: What is stored, and who decides.
        would_be: What a decision now would give; None if there would be none.
        schedule: One sentence about the next decision.
        remedies: Changes that place a binding which is not placed, at most three.
        remedy_search: How far the search for them went; None if there was none.
    """

    binding: BindingHead
    state: BindingState
    provenance: Provenance
    would_be: WouldBe | None = None
    schedule: str = ""
    trigger: TriggerTrace | None = None
    funnel: tuple[FunnelStage, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    clusters: tuple[ClusterRow, ...] = ()
    capacity_note: str = ""
    selection: SelectTrace | None = None
    division: DivideTrace | None = None
    terms: tuple[TermRow, ...] = ()
    causes: tuple[Cause, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    remedy_search: RemedySearch | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    condition: ConditionShown | None = None
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the exit status is 0: it is placed and runs, or nothing has to be placed."""
        return self.state.is_good
