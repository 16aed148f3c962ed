"""An explanation as data: what ``explain`` and ``why-not`` print, in every format.

Texts are short and for people; programs read codes, names and numbers. Units are those of the objects: replicas, and
quantities as Kubernetes writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from karmada_advisor.explain import trace_model
from karmada_advisor.state.model import BindingEntry, BindingState, Target
from karmada_scheduler.structs import Struct, field

__all__ = ["BindingState", "Target"]  # both are a part of an explanation


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


class Cause(Struct, frozen=True):
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


class PolicyRef(Struct, frozen=True):
    """The policy that claims the template of the binding."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}"


class BindingHead(BindingEntry, frozen=True):
    """What the binding asks for.

    Attributes:
        request: Resource name to quantity of one replica.
        policy: None if the binding names none.
        template: Kind and API group of the template, ``Deployment.apps``.
    """

    generation: int
    replicas: int
    request: Mapping[str, str]
    policy: PolicyRef | None = None
    template: str = ""

    @property
    def has_uncommon_template(self) -> bool:
        """Whether the template is of a group that Kubernetes does not have, which may have kinds of the same name."""
        group = self.template.partition(".")[2]
        return "." in group and not group.endswith(".k8s.io")


class Provenance(Struct, frozen=True):
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

    @property
    def fleet_text(self) -> str:
        """The fleet with the time of day: ``4f12ab, 10:00:00``."""
        clock = self.at.partition("T")[2].removesuffix("Z")
        return f"{self.fleet}, {clock}" if clock else self.fleet


class RecordedDecision(Struct, frozen=True):
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


class ConditionShown(Struct, frozen=True):
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


class WouldBe(Struct, frozen=True):
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


class ObjectShown(Struct, frozen=True):
    """A Cluster or binding; the namespace is "" for cluster-scoped ones."""

    kind: str
    namespace: str
    name: str


class RemedyEdit(Struct, frozen=True):
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


class ObjectPatch(Struct, frozen=True):
    """An RFC 6902 patch of an object as it was read."""

    object: ObjectShown
    patch: tuple[Mapping[str, Any], ...]


class Remedy(Struct, frozen=True):
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


class RemedySearch(Struct, frozen=True):
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


class Explanation(Struct, frozen=True):
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
    trigger: trace_model.TriggerTrace | None = None
    funnel: tuple[trace_model.FunnelStage, ...] = ()
    refusals: tuple[trace_model.Refusal, ...] = ()
    clusters: tuple[trace_model.ClusterRow, ...] = ()
    capacity_note: str = ""
    selection: trace_model.SelectTrace | None = None
    division: trace_model.DivideTrace | None = None
    terms: tuple[trace_model.TermRow, ...] = ()
    causes: tuple[Cause, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    remedy_search: RemedySearch | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    condition: ConditionShown | None = None
    mismatches: tuple[trace_model.Mismatch, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the exit status is 0: it is placed and runs, or nothing has to be placed."""
        return self.state.is_good
