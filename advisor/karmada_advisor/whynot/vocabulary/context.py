"""What the vocabulary sees of a set of edits whose outcome is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from karmada_advisor.whynot.edits import Edit, Harm, ObjectRef, PatchAction, Path, Side, edit
from karmada_advisor.whynot.goals import GoalBlocker
from karmada_advisor.whynot.json_patch import found_at, patched
from karmada_advisor.whynot.objects import ObjectSet, ScheduledObjects
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.structs import Struct

PLACEMENT: Final = ("spec", "placement")
NEAREST: Final = 6
"""The number of competitors that are edited one by one."""

_COST: Final = {
    Side.TRIGGER: 1.0,
    Side.POLICY: 2.0,
    Side.WORKLOAD: 2.0,
    Side.CLUSTER: 3.0,
    Side.COMPETITOR: 4.0,
    Side.PEER: 4.0,
    Side.QUOTA: 2.5,
}
_HARM_COST: Final = {Harm.NONE: 0.0, Harm.NARROWS: 1.5, Harm.WIDENS: 3.0, Harm.UNCHECKED: 6.0}


class Context(Struct, frozen=True, dict=True):
    """An outcome, and the cluster that has no replicas in it.

    Attributes:
        objects: All objects.
        outcome: The binding after edits.
        blocker: Where the cluster drops out.
        name: The cluster.
        is_wanted: Whether replicas are wanted on this cluster, and not anywhere: then it may be preferred to others.
    """

    objects: ObjectSet
    outcome: ScheduledObjects
    blocker: GoalBlocker
    name: str
    is_wanted: bool = False

    @property
    def binding(self) -> Binding:
        """The binding after the edits."""
        return self.outcome.binding

    @property
    def placement(self) -> Placement:
        """The placement after the edits."""
        return self.binding.spec.placement or Placement()

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster after the edits."""
        found = self.outcome.snapshot.get(self.name)
        assert found is not None  # the search asks for known clusters only
        return found

    @property
    def cluster_ref(self) -> ObjectRef:
        """The cluster as an object."""
        return ObjectRef(CLUSTER, "", self.name)

    @property
    def attempt(self) -> TermAttempt | None:
        """The run in which the cluster drops out."""
        return self.blocker.attempt

    @cached_property
    def available(self) -> int:
        """Replicas that fit on all candidates together."""
        return sum(each.available for each in self.attempt.candidates) if self.attempt is not None else 0

    @cached_property
    def _indexed(self) -> Mapping[ObjectRef, Any]:
        """The changed objects without removals, so that every index is that of the object as it was read."""
        kept = [each for each in self.outcome.edits if each.action is not PatchAction.REMOVE]
        found = patched(kept, self.objects.manifests)
        return {} if found is None else found.manifests

    @property
    def counts_sets(self) -> bool:
        """Whether sets of components are counted, and not replicas."""
        return counts_component_sets(self.binding.spec, self.objects.gates)

    def manifest(self, ref: ObjectRef) -> Any:
        """Return an object with the edits, except that nothing is removed from it."""
        return self._indexed.get(ref, self.objects.manifests[ref])

    def at(self, ref: ObjectRef, path: Path) -> Any:
        """Return the value at a path of an object, None if it has none."""
        return found_at(self.manifest(ref), path)

    def mine(self, *path: str | int) -> Any:
        """Return the value at a path of the binding, None if it has none."""
        return self.at(self.objects.ref, path)

    def items(self, *path: str | int) -> list[Any]:
        """Return the list at a path of the binding, empty if it has none."""
        found = self.mine(*path)
        return found if isinstance(found, list) else []

    def make(
        self,
        side: Side,
        op: str,
        ref: ObjectRef,
        action: PatchAction,
        path: Path,
        *,
        extra: float = 0.0,
        harm: Harm = Harm.NONE,
        **rest: Any,
    ) -> Edit:
        """Return an edit with the cost of its side and of its harm."""
        cost = _COST[side] + extra + _HARM_COST[harm]
        return edit(side, op, ref, action, path, cost=cost, harm=harm, **rest)

    def policy(self, op: str, action: PatchAction, path: Path, text: str, **rest: Any) -> Edit:
        """Return an edit of the placement; the path starts below it, the rest are arguments of ``make``."""
        return self.make(Side.POLICY, op, self.objects.ref, action, (*PLACEMENT, *path), text=text, **rest)

    def workload(self, op: str, action: PatchAction, path: Path, text: str, **rest: Any) -> Edit:
        """Return an edit of what the workload asks for; the rest are arguments of ``make``."""
        return self.make(Side.WORKLOAD, op, self.objects.ref, action, path, text=text, **rest)

    def on_cluster(self, op: str, action: PatchAction, path: Path, text: str, **rest: Any) -> Edit:
        """Return an edit of the cluster; the rest are arguments of ``make``."""
        return self.make(Side.CLUSTER, op, self.cluster_ref, action, path, text=text, **rest)

    def competitors(self) -> Iterator[Candidate]:
        """Yield the other candidates that got replicas or were selected, those with the most replicas first."""
        attempt = self.attempt
        if attempt is None:
            return
        replicas = self.outcome.replicas
        selected = [each for each in attempt.selected if each.name != self.name]
        yield from sorted(selected, key=lambda each: -replicas.get(each.name, 0))

    def affinity_paths(self) -> Iterator[tuple[Path, Any]]:
        """Yield the path of each affinity of the run, with its manifest; the single one may be missing (None)."""
        if self.placement.cluster_affinity is not None or not self.placement.cluster_affinities:
            yield ("clusterAffinity",), self.mine(*PLACEMENT, "clusterAffinity")
            return
        name = self.attempt.affinity_name if self.attempt is not None else ""
        for index, term in enumerate(self.items(*PLACEMENT, "clusterAffinities")):
            if not isinstance(term, dict) or term.get("affinityName") != name:
                continue
            yield ("clusterAffinities", index), term
            overflow = term.get("overflowAffinities")
            for number, each in enumerate(overflow if isinstance(overflow, list) else []):
                yield ("clusterAffinities", index, "overflowAffinities", number), each
            return
