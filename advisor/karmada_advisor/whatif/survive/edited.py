"""Edits of policies: the search for them, and a fleet after one: its bindings today, and which losses are better or worse."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import ObjectPatch, PolicyRef
from karmada_advisor.state.stored import value_at
from karmada_advisor.whatif.plan.decide import settled
from karmada_advisor.whatif.survive.classify import Classified, starts, wanted
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whynot.found_edits import Answer, SearchBounds
from karmada_advisor.whynot.goals import OnCluster, RunsAll
from karmada_advisor.whynot.json_patch import patched
from karmada_advisor.whynot.model import patches_of
from karmada_advisor.whynot.objects import NO_EDITS, ObjectSet
from karmada_advisor.whynot.search import Search
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest, ManifestError
from karmada_scheduler.api.object_fields import object_fields
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.dryrun.result import manifest_as_written
from karmada_scheduler.framework.edits import Edit, Harm, ObjectRef, Side
from karmada_scheduler.structs import Struct, replace

PairKey = tuple[int, int]
"""The number of a domain, and the position of a binding."""

PairFigures = tuple[bool, int, bool]
"""Dark, missing, interrupted."""

NOTHING: PairFigures = (False, 0, False)
_LATER = datetime(9999, 1, 1, tzinfo=UTC)
"""A time after each decision that was made."""


_BOUNDS: Final = SearchBounds(seconds=1.0, max_runs=40, max_depth=2, answers=4)
_CANDIDATES: Final = 3
"""Clusters that are asked for one by one, besides the search for any."""


class EditedFleet(Struct, frozen=True):
    """The losses after an edit.

    Attributes:
        losses: After it, and after the decisions that it causes today.
        apply: The patches.
        moves: Replicas that stop today, because of it.
        starts: Replicas that start today.
    """

    losses: Losses
    apply: tuple[ObjectPatch, ...]
    moves: int = 0
    starts: int = 0


class FleetEditor(Struct, frozen=True):
    """Edits policies of a fleet whose losses are decided.

    Attributes:
        losses: The losses as they are.
        manifests: Bindings by key as they were read, and clusters by name.
        policies: All policies, with their defaults; None if they are not known.
    """

    losses: Losses
    manifests: Mapping[Any, Manifest]
    policies: Mapping[PolicyKey, Manifest] | None

    def policy(self, ref: PolicyRef, binding: Binding) -> Manifest | None:
        """Return a policy; of one that is not known, what a binding tells of it; None if it differs from the binding."""
        of_binding = value_at(self.manifests[binding.key], "spec", "placement")
        if self.policies is None:
            failover = value_at(self.manifests[binding.key], "spec", "failover")
            return {"spec": {"placement": of_binding, **({"failover": failover} if failover else {})}}
        found = self.policies.get(PolicyKey(ref.kind, ref.namespace, ref.name))
        return found if found is not None and value_at(found, "spec", "placement") == of_binding else None

    def edited(
        self, ref: PolicyRef, binding: Binding, edits: Sequence[Edit], *, rebalances: bool = False
    ) -> EditedFleet | None:
        """Return the fleet after edits of a policy; None if they cannot be applied, or a binding is not placed then.

        Args:
            ref: The policy.
            binding: One of its bindings. Those with the same placement are edited.
            edits: Of that binding's placement, or of the policy itself.
            rebalances: Whether the replicas of its bindings are then divided again, as by a WorkloadRebalancer.
        """
        manifest, target = self.policy(ref, binding), ObjectRef(ref.kind, ref.namespace, ref.name)
        of_policy = [replace(edit, target=target) for edit in edits]
        found = None if manifest is None else patched(of_policy, {target: manifest})
        if found is None:
            return None
        after = found.manifests[target]
        of_binding = self.manifests[binding.key]
        after_spec = {**of_binding["spec"], "placement": value_at(after, "spec", "placement")}
        try:
            placement = Binding.from_manifest({**of_binding, "spec": after_spec}).spec.placement
        except ManifestError:
            return None
        mode = value_at(after, "spec", "failover", "cluster", "purgeMode")
        changed: dict[int, Binding] = {}
        modes = dict(self.losses.inputs.purge_modes)
        for place, each in enumerate(self.losses.bindings):
            spec = each.spec
            if policy_of(each.annotations) != ref or spec.placement != binding.spec.placement:
                continue
            if isinstance(mode, str) and mode:
                modes[each.key] = mode
            edited = replace(spec, placement=placement)
            if rebalances:
                edited = replace(edited, reschedule_triggered_at=_LATER)
            is_same = edited == spec
            changed[place] = each if is_same else replace(each, generation=each.generation + 1, spec=edited)
        return self._fleet(changed, patches_of(found), modes)

    def resumed(self, keys: Collection[BindingKey], apply: tuple[ObjectPatch, ...]) -> EditedFleet | None:
        """Return the fleet after the end of the suspension of some bindings; None if one is not placed then."""
        changed = {
            place: replace(binding, spec=replace(binding.spec, scheduling_suspended=False))
            for place, binding in enumerate(self.losses.bindings)
            if binding.key in keys
        }
        return self._fleet(changed, apply)

    def _fleet(
        self,
        edited: Mapping[int, Binding],
        apply: tuple[ObjectPatch, ...],
        purge_modes: Mapping[BindingKey, str] | None = None,
    ) -> EditedFleet | None:
        """Return the fleet with edited bindings, after the decisions that follow today; None if one fails."""
        side, changed, moves, started = self.losses.side, dict[int, Binding](), 0, 0
        if side.rules.is_coupled:  # a search has shown plugins another fleet
            side.rules.objects.show(side.snapshot, self.losses.bindings)
        for place, decisions in edited.items():
            made = self._today(decisions)
            if made is None:
                return None
            changed[place] = made
            spec, after = self.losses.bindings[place].spec, made.spec.clusters
            moves += sum(target.replicas for target in starts(spec, after, spec.clusters))
            started += sum(target.replicas for target in starts(spec, spec.clusters, after))
        return EditedFleet(self.losses.after(changed, purge_modes), apply, moves, started)

    def _today(self, edited: Binding) -> Binding | None:
        """Return a binding after the decision that an edit causes without any loss; None if that fails."""
        side = self.losses.side
        if not edited.spec.clusters or not side.is_assigned(edited):
            return edited
        if side.type_of(edited) is ScheduleType.AVOID:
            return edited
        found = side.decision(edited)
        if found is None or found.error is not None or not found.targets:
            return None
        return settled(edited, found)

    def answers(self, number: int, place: int, loss: Loss, is_over: Callable[[], bool]) -> Iterator[Answer]:
        """Yield edits of a placement after which a binding runs after a loss.

        Args:
            number: Of the domain that is lost.
            place: Of the binding.
            loss: The world.
            is_over: Whether to end.
        """
        lost = frozenset(self.losses.inputs.domains[number].clusters)
        objects = self._after_loss(lost, place, loss)
        everything = RunsAll(wanted(objects.bindings[objects.ref][1].spec), lost)
        root = objects.outcome(NO_EDITS)
        if root is None or everything.holds(root):
            return
        yield from Search(objects, everything, _BOUNDS, may_use=_is_of_placement).run().answers
        for name in self._candidates(place, lost):
            if is_over():
                return
            yield from Search(objects, OnCluster(name), _BOUNDS, may_use=_is_of_placement).run().answers

    def _candidates(self, place: int, lost: frozenset[str]) -> list[str]:
        """Return clusters that might take a binding: those of its regions first, then those with the most free capacity."""
        snapshot = self.losses.side.snapshot
        present = self.losses.asked[place].binding.spec.target_names
        regions = {cluster.region for cluster in snapshot if cluster.name in present}

        def key(each: Cluster) -> tuple[bool, int, str]:
            summary = each.resource_summary
            return each.region not in regions, -(summary.left("cpu").milli_value if summary else 0), each.name

        left = [each for each in snapshot if each.name not in lost | present and not each.deleting]
        return [cluster.name for cluster in sorted(left, key=key)[:_CANDIDATES]]

    def _after_loss(self, lost: frozenset[str], place: int, loss: Loss) -> ObjectSet:
        """Return the objects after a loss, with the binding as the loss leaves it."""
        left, inputs = self.losses.asked[place].left(lost, loss).binding, self.losses.inputs
        clusters: dict[ObjectRef, tuple[Any, Cluster]] = {}
        for cluster in inputs.clusters:
            known = self.manifests[cluster.name], cluster
            clusters[ObjectRef(CLUSTER, "", cluster.name)] = (
                self._lost_cluster(*known, loss) if cluster.name in lost else known
            )
        manifest = manifest_as_written(self.manifests[left.key], left)
        return ObjectSet(left.key, inputs.rules, clusters, {ObjectRef(*left.key): (manifest, left)})

    def _lost_cluster(self, manifest: Manifest, cluster: Cluster, loss: Loss) -> tuple[Any, Cluster]:
        taints = self.losses.inputs.taints
        lost = taints.lost(cluster, loss)
        if loss is Loss.DELETED:
            return manifest, lost
        spec = manifest.get("spec") or {}
        written = map(object_fields, taints.of(cluster, loss))
        return {**manifest, "spec": {**spec, "taints": [*(spec.get("taints") or ()), *written]}}, lost


def changes(
    before: Losses, after: Losses, loss: Loss, *, holds: bool = False
) -> tuple[frozenset[PairKey], int]:
    """Return the failing pairs that no longer fail after an edit, and how many pairs are worse in any figure.

    Args:
        before: Without it.
        after: With it.
        loss: The world.
        holds: Whether what is interrupted fails.
    """
    cured: set[PairKey] = set()
    worse = 0
    for number, (old, new) in enumerate(zip(before.tallies[loss], after.tallies[loss], strict=True)):
        if old is new:
            continue
        had = {pair.position: figures(pair.classified) for pair in old.pairs}
        has = {pair.position: figures(pair.classified) for pair in new.pairs}
        for place in had.keys() | has.keys():
            one, other = had.get(place, NOTHING), has.get(place, NOTHING)
            worse += any(now > then for now, then in zip(other, one, strict=True))
            if fails(one, holds=holds) and not fails(other, holds=holds):
                cured.add((number, place))
    return frozenset(cured), worse


def figures(found: Classified) -> PairFigures:
    """Return what is compared about a pair."""
    return found.dark, found.missing, found.interrupted


def fails(found: PairFigures, *, holds: bool = False) -> bool:
    """Return whether a pair does not survive: a replica is missing, or, with ``holds``, it is interrupted."""
    dark, missing, interrupted = found
    return dark or missing > 0 or (holds and interrupted)


def _is_of_placement(edit: Edit) -> bool:
    """Return whether an edit is one of the placement, and turns no check off."""
    return (
        edit.side is Side.POLICY
        and edit.path[:2] == ("spec", "placement")
        and edit.harm is not Harm.UNCHECKED
    )
