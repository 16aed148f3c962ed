"""The search for edits of a placement after which one binding runs again after a loss: the engine of why-not, on other objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from karmada_advisor.whatif.survive.classify import wanted
from karmada_advisor.whatif.survive.edited import FleetEditor
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whynot.found_edits import Answer, SearchBounds
from karmada_advisor.whynot.goals import OnCluster, RunsAll
from karmada_advisor.whynot.objects import NO_EDITS, ObjectSet
from karmada_advisor.whynot.search import Search
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.object_fields import object_fields
from karmada_scheduler.dryrun.written import manifest_as_written
from karmada_scheduler.framework.edits import Edit, Harm, ObjectRef, Side
from karmada_scheduler.structs import Struct

_BOUNDS: Final = SearchBounds(seconds=1.0, max_runs=40, max_depth=2, answers=4)
_CANDIDATES: Final = 3
"""Clusters that are asked for one by one, besides the search for any."""


class LossSearch(Struct, frozen=True):
    """Searches on the clusters after a loss.

    Attributes:
        editor: The fleet.
        loss: The world.
        is_over: Whether to end.
    """

    editor: FleetEditor
    loss: Loss
    is_over: Callable[[], bool]

    def answers(self, number: int, place: int) -> Iterator[Answer]:
        """Yield edits of the placement after which the representative of a group runs after the loss."""
        objects = self._after_loss(number, place)
        if objects is None:
            return
        spec, lost = objects.bindings[objects.ref][1].spec, self._lost(number)
        everything = RunsAll(wanted(spec), lost)
        root = objects.outcome(NO_EDITS)
        if root is None or everything.holds(root):
            return
        yield from Search(objects, everything, _BOUNDS, may_use=_is_of_placement).run().answers
        for name in self._candidates(place, lost):
            if self.is_over():
                return
            goal = OnCluster(name)
            yield from Search(objects, goal, _BOUNDS, cluster=name, may_use=_is_of_placement).run().answers

    def _lost(self, number: int) -> frozenset[str]:
        return frozenset(self.editor.losses.inputs.domains[number].clusters)

    def _candidates(self, place: int, lost: frozenset[str]) -> list[str]:
        """Return clusters that might take a binding: those of its regions first, then those with the most free capacity."""
        snapshot = self.editor.losses.side.snapshot
        present = self.editor.losses.asked[place].binding.spec.target_names
        regions = {each.region for each in snapshot if each.name in present}

        def key(each: Cluster) -> tuple[bool, int, str]:
            summary = each.resource_summary
            return each.region not in regions, -(summary.left("cpu").milli_value if summary else 0), each.name

        left = [
            each
            for each in snapshot
            if each.name not in lost and each.name not in present and not each.deleting
        ]
        return [each.name for each in sorted(left, key=key)[:_CANDIDATES]]

    def _after_loss(self, number: int, place: int) -> ObjectSet | None:
        """Return the objects after a loss, with the binding as the loss leaves it."""
        lost, asked = self._lost(number), self.editor.losses.asked[place]
        left = asked.left(lost, self.loss).binding
        manifest = manifest_as_written(self.editor.manifests[left.key], left)
        clusters: dict[ObjectRef, tuple[Any, Cluster]] = {}
        for each in self.editor.losses.inputs.clusters:
            known = self.editor.manifests[each.name], each
            clusters[ObjectRef(CLUSTER, "", each.name)] = (
                self._lost_cluster(*known) if each.name in lost else known
            )
        ref = ObjectRef(*left.key)
        return ObjectSet(left.key, self.editor.scheduler, clusters, {ref: (manifest, left)})

    def _lost_cluster(self, manifest: Mapping[str, Any], cluster: Cluster) -> tuple[Any, Cluster]:
        taints = self.editor.losses.inputs.taints
        lost = taints.lost(cluster, self.loss)
        if self.loss is Loss.DELETED:
            return manifest, lost
        spec = manifest.get("spec") or {}
        written = map(object_fields, taints.of(cluster, self.loss))
        return {**manifest, "spec": {**spec, "taints": [*(spec.get("taints") or ()), *written]}}, lost


def _is_of_placement(edit: Edit) -> bool:
    """Return whether an edit is one of the placement, and turns no check off."""
    return (
        edit.side is Side.POLICY
        and edit.path[:2] == ("spec", "placement")
        and edit.harm is not Harm.UNCHECKED
    )
