"""The answer to "why not" as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from karmada_scheduler.api.binding import BindingKey, TargetCluster
from karmada_scheduler.whynot.edits import Edit

API_VERSION: Final = "explain.pyscheduler.karmada.io/v1alpha1"
KIND: Final = "WhyNot"

Placement = Sequence[TargetCluster]
"""Replicas by cluster, in the order of the result."""


@dataclass(frozen=True)
class CauseFound:
    """Why the cluster does not have replicas.

    Attributes:
        code: See docs/explain.md.
        stage: trigger, filter, select, divide, ...
        text: One sentence.
        evidence: Names and numbers; JSON values.
        primary: Whether it comes first; of the causes of an answer exactly one does.
    """

    code: str
    stage: str
    text: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    primary: bool = False

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the output."""
        return {
            "code": self.code,
            "stage": self.stage,
            "primary": self.primary,
            "text": self.text,
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True)
class Touched:
    """What else an edit concerns.

    Attributes:
        bindings: Bindings, with the one in question, whose placement changes or whose policy is edited.
        checked: Whether the other bindings were scheduled with the edit; otherwise those of the policy are counted.
    """

    bindings: int
    checked: bool


@dataclass(frozen=True)
class Remedy:
    """A verified, irreducible set of edits.

    Attributes:
        edits: In the order in which they are applied.
        apply: The patches, one per edit.
        result: The placement afterwards.
        moves: Replicas that stop in one cluster.
        touches: Other bindings.
        leave_one_out: Decisions without one of the edits, all of which miss the goal.
        uses_cluster: Whether the cluster in question has replicas afterwards.
    """

    edits: Sequence[Edit]
    apply: Sequence[Mapping[str, Any]]
    result: Placement
    moves: int
    touches: Touched
    leave_one_out: int
    uses_cluster: bool

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the output."""
        return {
            "edits": [_edit_fields(each) for each in self.edits],
            "apply": [dict(each) for each in self.apply],
            "result": _clusters(self.result),
            "moves": self.moves,
            "touches": {"bindings": self.touches.bindings, "checked": self.touches.checked},
            "usesCluster": self.uses_cluster,
            "verified": {"decisions": 1, "leaveOneOut": self.leave_one_out},
        }


@dataclass(frozen=True)
class Tried:
    """A single edit that does not reach the goal."""

    edit: Edit
    result: Placement
    unchanged: bool

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the output."""
        return {
            "edits": [_edit_fields(self.edit)],
            "unchanged": self.unchanged,
            "result": _clusters(self.result),
        }


@dataclass(frozen=True)
class SearchFacts:
    """How far the search went."""

    complete: bool
    decisions: int
    runs: int
    max_runs: int
    max_depth: int
    seconds: float
    timeout: float
    exhausted_singles: bool
    ended_by: str

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the output."""
        return {
            "complete": self.complete,
            "decisions": self.decisions,
            "runs": self.runs,
            "maxRuns": self.max_runs,
            "maxDepth": self.max_depth,
            "seconds": round(self.seconds, 3),
            "timeoutSeconds": self.timeout,
            "exhaustedSingles": self.exhausted_singles,
            "endedBy": self.ended_by,
        }


@dataclass(frozen=True)
class WhyNot:
    """The answer.

    Attributes:
        key: The binding.
        generation: Of the binding.
        replicas: Replicas that it wants in all.
        cluster: The cluster; "" if the question is why it is not placed.
        goal: ``onCluster``, ``placed`` or ``offCluster``.
        wanted: Replicas that the goal asks for on the cluster.
        holds: Whether the goal holds without any edit.
        as_new: Whether the placement was forgotten.
        present: The placement of the binding.
        scheduled: The placement after the next decision without any edit.
        condition: The reason of the condition after it.
        message: The error of it; "" without one.
    """

    key: BindingKey
    generation: int
    replicas: int
    cluster: str
    goal: str
    wanted: int
    holds: bool
    as_new: bool
    present: Placement
    scheduled: Placement
    condition: str
    message: str
    provenance: Mapping[str, Any]
    causes: Sequence[CauseFound]
    remedies: Sequence[Remedy]
    ineffective: Sequence[Tried]
    search: SearchFacts

    def as_fields(self) -> dict[str, Any]:
        """Return the answer as one JSON object."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "binding": {
                "kind": self.key.kind,
                "namespace": self.key.namespace,
                "name": self.key.name,
                "generation": self.generation,
                "replicas": self.replicas,
            },
            "cluster": self.cluster,
            "goal": {"type": self.goal, "replicas": self.wanted, "asNew": self.as_new},
            "holds": self.holds,
            "provenance": dict(self.provenance),
            "present": _clusters(self.present),
            "next": {
                "result": _clusters(self.scheduled),
                "reason": self.condition,
                "message": self.message,
            },
            "causes": [each.as_fields() for each in self.causes],
            "remedies": [each.as_fields() for each in self.remedies],
            "ineffective": [each.as_fields() for each in self.ineffective],
            "search": self.search.as_fields(),
        }


def _clusters(placement: Placement) -> list[dict[str, Any]]:
    return [{"name": each.name, "replicas": each.replicas} for each in placement]


def _edit_fields(edit: Edit) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "side": edit.side.value,
        "op": edit.op,
        "object": edit.target.as_fields(),
        "text": edit.text,
    }
    if edit.minimal is not None:
        fields["minimal"] = {
            "at": edit.minimal.at,
            "failsAt": edit.minimal.fails_at,
            "monotone": edit.minimal.monotone,
        }
    return fields
