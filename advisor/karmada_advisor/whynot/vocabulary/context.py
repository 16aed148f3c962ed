"""What the vocabulary sees of a set of edits whose outcome is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada_advisor.whynot.goals import GoalBlocker
from karmada_advisor.whynot.json_patch import patched
from karmada_advisor.whynot.objects import ObjectSet, ScheduledObjects
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.edits import EditContext, ObjectRef, PatchAction
from karmada_scheduler.framework.result import Result

_NEAREST: Final = 6
"""The number of competitors that are edited one by one."""


class Context(EditContext, frozen=True, kw_only=True):
    """An outcome, and the cluster that has no replicas in it.

    Attributes:
        objects: All objects.
        outcome: The binding after edits.
        blocker: Where the cluster drops out.
    """

    objects: ObjectSet
    outcome: ScheduledObjects
    blocker: GoalBlocker

    @classmethod
    def of(
        cls,
        objects: ObjectSet,
        outcome: ScheduledObjects,
        blocker: GoalBlocker,
        name: str,
        *,
        is_wanted: bool = False,
    ) -> Context:
        """Return the context for a known cluster."""
        binding, attempt = outcome.binding, blocker.attempt
        cluster = outcome.snapshot.get(name)
        assert cluster is not None  # the search asks for known clusters only
        cycle = attempt.cycle if attempt is not None else None
        kept = [edit for edit in outcome.edits if edit.action is not PatchAction.REMOVE]
        changed = patched(kept, objects.manifests)

        def manifest_of(ref: ObjectRef) -> Manifest:
            """Return an object with the edits, except that nothing is removed from it."""
            found = changed.manifests.get(ref) if changed is not None else None
            return objects.manifests[ref] if found is None else found

        return cls(
            cycle=cycle or Cycle(binding, binding.spec.placement or Placement(), snapshot=outcome.snapshot),
            cluster=cluster,
            result=Result.unschedulable(*blocker.reasons),
            manifest_of=manifest_of,
            others=objects.others,
            values=objects.values,
            selected=attempt.selected if attempt is not None else (),
            counts_sets=counts_component_sets(binding.spec, objects.gates),
            is_wanted=is_wanted,
            objects=objects,
            outcome=outcome,
            blocker=blocker,
        )

    @property
    def binding(self) -> Binding:
        """The binding after the edits."""
        return self.outcome.binding

    @property
    def attempt(self) -> TermAttempt | None:
        """The run in which the cluster drops out."""
        return self.blocker.attempt

    @property
    def available(self) -> int:
        """Replicas that fit on all candidates together."""
        return sum(each.available for each in self.attempt.candidates) if self.attempt is not None else 0

    def competitors(self) -> Sequence[Candidate]:
        """Return the first of the other candidates that got replicas or were selected, those with the most replicas first."""
        replicas = self.outcome.replicas
        others = [candidate for candidate in self.selected if candidate.name != self.name]
        return sorted(others, key=lambda candidate: -replicas.get(candidate.name, 0))[:_NEAREST]
