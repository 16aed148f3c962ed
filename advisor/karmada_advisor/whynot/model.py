"""The answer to "why not" as data: what ``why-not`` prints in every format."""

from __future__ import annotations

from enum import Enum

from karmada_advisor.explain.model import Cause, ObjectPatch, ObjectShown, Provenance
from karmada_advisor.state.model import BindingEntry, BindingState, Target
from karmada_advisor.whynot.json_patch import Patched
from karmada_scheduler.framework.edits import Edit, Harm, Minimum, Side
from karmada_scheduler.structs import Struct


class GoalType(Enum):
    """What the question asks for."""

    ON_CLUSTER = "onCluster"
    OFF_CLUSTER = "offCluster"
    PLACED = "placed"


class BindingShown(BindingEntry, frozen=True):
    """The binding in question; ``replicas`` is what it wants in all."""

    generation: int
    replicas: int


class GoalShown(Struct, frozen=True):
    """The goal.

    Attributes:
        replicas: What the cluster should have at least; 0 if the goal is another.
        as_new: Whether placements are forgotten, as ``simulate --anew`` does.
    """

    type: GoalType
    replicas: int
    as_new: bool


class NextDecision(Struct, frozen=True):
    """What the binding has after the next moment in which the scheduler can act, without any edit.

    Attributes:
        reason: The reason of the condition ``Scheduled``; "" if nothing asks for a decision.
        message: The error; "" without one.
    """

    result: tuple[Target, ...] = ()
    reason: str = ""
    message: str = ""


class EditShown(Struct, frozen=True):
    """An edit.

    Attributes:
        op: The kind of the edit; stable.
        text: For people.
        minimal: The boundary of its amount, None without an amount.
        instead: What a person does, if the patch only shows the effect of it, for example on the status of a cluster; ""
            if the patch is what a person applies.
    """

    side: Side
    op: str
    object: ObjectShown
    text: str
    minimal: Minimum | None = None
    instead: str = ""


def edit_shown(edit: Edit) -> EditShown:
    """Return an edit as an answer shows it."""
    return EditShown(edit.side, edit.op, ObjectShown(*edit.target), edit.text, edit.minimal, edit.instead)


def patches_of(patched: Patched) -> tuple[ObjectPatch, ...]:
    """Return the patches of edits, one each."""
    return tuple(ObjectPatch(ObjectShown(*edit.target), (change,)) for edit, change in patched.operations)


class Touched(Struct, frozen=True):
    """What the edits concern besides the binding.

    Attributes:
        bindings: Bindings, with the one in question, whose policy is edited or whose placement changes.
        checked: Whether all others are known, and were scheduled with the edits where these are of clusters.
    """

    bindings: int
    checked: bool


class Verified(Struct, frozen=True):
    """The decisions that prove an answer: with all edits, and without each one, which miss the goal."""

    decisions: int
    leave_one_out: int


class VerifiedRemedy(Struct, frozen=True):
    """A verified, irreducible set of edits.

    Attributes:
        edits: In the order in which they are applied.
        apply: The patches, one per edit, in the same order.
        result: The placement afterwards, as ``simulate`` prints it over the patched objects.
        moves: Replicas that stop in one cluster.
        uses_cluster: Whether the cluster in question has replicas afterwards.
        flags: What to append to the command line of the scheduler, for changes of the configuration.
        rank: Its place, from 1: less harm first, then less effort.
        harm: What speaks against it.
        caution: The same in sentences; "" if nothing does.
    """

    edits: tuple[EditShown, ...]
    apply: tuple[ObjectPatch, ...] = ()
    result: tuple[Target, ...] = ()
    moves: int = 0
    touches: Touched = Touched(1, checked=False)
    uses_cluster: bool = False
    verified: Verified = Verified(1, 1)
    flags: tuple[str, ...] = ()
    rank: int = 1
    harm: Harm = Harm.NONE
    caution: str = ""


class Ineffective(Struct, frozen=True):
    """A single edit that does not reach the goal.

    Attributes:
        unchanged: Whether the placement is the same as without it.
    """

    edits: tuple[EditShown, ...]
    result: tuple[Target, ...]
    unchanged: bool


class SearchShown(Struct, frozen=True):
    """How far the search went.

    Attributes:
        complete: Whether nothing was left to try.
        decisions: All decisions, with those that verify answers.
        runs: Decisions about sets of edits.
        exhausted_singles: Whether all single edits of the step that refuses the cluster were tried.
        ended_by: The bound that ended it: ``timeout``, ``maxRuns``, or "".
    """

    complete: bool = False
    decisions: int = 0
    runs: int = 0
    max_runs: int = 0
    max_depth: int = 1
    seconds: float = 0.0
    timeout_seconds: float = 0.0
    exhausted_singles: bool = False
    ended_by: str = ""


class WhyNot(Struct, frozen=True, kw_only=True):
    """The answer.

    Attributes:
        cluster: The cluster in question; "" if the goal is that the binding is placed anywhere.
        state: What is stored about the binding, and who decides.
        holds: Whether the goal holds in what is stored, and the next decision does not change that.
        next_holds: Whether the next decision reaches the goal without any edit. If it is not stored, it is a hypothesis.
        present: The placement of the binding.
        causes: Why the goal does not hold; none if the next decision reaches it.
        remedies: The best ones, in the order of their ranks.
        ineffective: Single edits that were tried.
        notes: What limits the answer, in sentences: objects that may not be read.
    """

    binding: BindingShown
    cluster: str
    goal: GoalShown
    state: BindingState
    holds: bool = False
    next_holds: bool = False
    provenance: Provenance
    present: tuple[Target, ...] = ()
    next: NextDecision = NextDecision()
    causes: tuple[Cause, ...] = ()
    remedies: tuple[VerifiedRemedy, ...] = ()
    ineffective: tuple[Ineffective, ...] = ()
    search: SearchShown = SearchShown()
    notes: tuple[str, ...] = ()
