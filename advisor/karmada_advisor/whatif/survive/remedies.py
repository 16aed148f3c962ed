"""Edits after which workloads survive a loss that takes them down today, verified over all losses before they are named.

Failing pairs of a binding and a domain are grouped by policy, class and kind of domain. Some have an answer without a search
(``closed``). The others are searched by the engine of why-not, on the clusters after the loss, limited to edits of
placements. An edit counts if it cures every pair of its group, makes no pair of the fleet worse, and lets no decision fail
today.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import ObjectPatch, ObjectShown, PolicyRef
from karmada_advisor.whatif.survive import closed, edited
from karmada_advisor.whatif.survive.classify import FailedBy, LossClass, Pair
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import LossSettings
from karmada_advisor.whynot.model import EditShown, edit_shown
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.edits import Edit, Harm, ObjectRef, Side
from karmada_scheduler.structs import Struct, replace

MAX_GROUPS: Final = 200
SECONDS: Final = 20.0
"""Of all searches of edits of placements."""
_WIDENING: Final = frozenset({"addClusterName", "addValue", "addOverflow", "tolerate", "tolerateAll"})
"""Edits that admit clusters which the owner of the policy has not named; whynot names no harm of them."""


class FoundRemedy(Struct, frozen=True):
    """A remedy, by numbers and positions of the losses that it was found for.

    Attributes:
        policy: What is edited; None for bindings, and for what concerns the fleet.
        effect: The class that it mends.
        cured: The pairs that no longer fail.
        edits: What to change, in the order in which it is applied.
        apply: The patches.
        moves_today: Replicas that stop today, because of it.
        starts_today: Replicas that start today.
        needs_owner: Whether it admits what the owner of the policy has kept out.
        verified: Whether it was decided again over all losses.
        flags: To append to a command line, for settings.
    """

    policy: PolicyRef | None
    effect: LossClass
    cured: frozenset[edited.PairKey]
    edits: tuple[EditShown, ...]
    apply: tuple[ObjectPatch, ...] = ()
    moves_today: int = 0
    starts_today: int = 0
    needs_owner: bool = False
    verified: bool = True
    flags: tuple[str, ...] = ()


class _Group(Struct):
    policy: PolicyRef
    effect: LossClass
    failed_by: FailedBy
    pairs: dict[edited.PairKey, Pair]


def _size(group: _Group) -> tuple[int, int]:
    found = [pair.classified for pair in group.pairs.values()]
    return -sum(loss.dark for loss in found), -sum(loss.missing for loss in found)


class Remedies(Struct, frozen=True):
    """Looks for remedies.

    Attributes:
        editor: The fleet.
        loss: The world.
        is_reported: Whether a binding is to be mended.
        holds: Whether what is interrupted fails, too.
        per_policy: Remedies for each policy; each of its groups gets one at least.
        is_over: Whether to end.
    """

    editor: edited.FleetEditor
    loss: Loss
    is_reported: Callable[[Binding], bool] = lambda _: True
    holds: bool = False
    per_policy: int = 3
    is_over: Callable[[], bool] = lambda: False

    @property
    def _losses(self) -> Losses:
        return self.editor.losses

    def find(self) -> tuple[list[FoundRemedy], int]:
        """Return the remedies, those of the worst groups first, and how many groups were not looked at."""
        found: list[FoundRemedy] = []
        groups = self._groups()
        for number, group in enumerate(groups):
            if number >= MAX_GROUPS or self.is_over():
                return found, len(groups) - number
            mine = [remedy for remedy in found if remedy.policy == group.policy]
            if any(group.pairs.keys() <= remedy.cured for remedy in mine):
                continue
            made = sorted(self._of_group(group), key=self._rank)
            known = [remedy.edits for remedy in mine]
            fresh = [answer for answer in made if answer.edits not in known]
            found += fresh[: max(1, self.per_policy - len(mine))]
        return found, 0

    def of_settings(self, settings: LossSettings) -> Iterator[FoundRemedy]:
        """Yield how the fleet has to be set so that anything is evicted; nothing if it is, or nothing stays."""
        losses, lost = self._losses, set[str]()
        stay = set[edited.PairKey]()
        for number, tally in enumerate(losses.tallies[Loss.ITSELF]):
            domain = losses.inputs.domains[number].clusters
            for pair in tally.pairs:
                if pair.classified.effect is LossClass.NOT_EVICTED:
                    stay.add((number, pair.position))
                    lost |= losses.asked[pair.position].binding.spec.target_names.intersection(domain)
        is_tainted = all(map(losses.inputs.taints.no_execute, lost))
        if stay and not (settings.failover and settings.eviction and is_tainted):
            edit_, flags = closed.settings_edit(settings, is_tainted=is_tainted)
            pairs = frozenset(stay)
            yield FoundRemedy(None, LossClass.NOT_EVICTED, pairs, (edit_,), verified=False, flags=flags)

    def _rank(self, found: FoundRemedy) -> tuple[bool, bool, int, int, int]:
        return not found.verified, found.needs_owner, -len(found.cured), len(found.edits), found.moves_today

    def _groups(self) -> list[_Group]:
        made: dict[tuple[object, ...], _Group] = {}
        domains = self._losses.inputs.domains
        for number, tally in enumerate(self._losses.tallies[self.loss]):
            for pair in tally.pairs:
                stored = self._losses.asked[pair.position].stored
                policy = policy_of(stored.annotations)
                is_failing = edited.fails(edited.figures(pair.classified), holds=self.holds)
                if policy is None or not is_failing or pair.is_pending or not self.is_reported(stored):
                    continue
                effect, why = pair.classified.effect, pair.found.failed_by
                key = (policy, id(stored.spec.placement), effect, why, domains[number].kind)
                group = made.setdefault(key, _Group(policy, effect, why, {}))
                group.pairs[number, pair.position] = pair
        return sorted(made.values(), key=_size)

    def _of_group(self, group: _Group) -> Iterator[FoundRemedy]:
        """Yield remedies."""
        sizes = [len(domain.clusters) for domain in self._losses.inputs.domains]
        (number, place), pair = max(
            group.pairs.items(), key=lambda item: (item[1].classified.missing, sizes[item[0][0]])
        )
        stored = self._losses.asked[place].stored
        if group.effect is LossClass.FROZEN and stored.spec.scheduling_suspended:
            yield from self._resumed(group)
            return
        manifest = self.editor.policy(group.policy, stored)
        if manifest is None:
            return
        inputs, of_binding = self._losses.inputs, self.editor.manifests[stored.key]
        taints = inputs.taints.evicting_any(inputs.domains[number].clusters, self.loss)
        known = closed.closed_edits(group.effect, of_binding, stored, taints)
        for edits in known:
            yield from self._verified(group, stored, edits)
        if group.effect is LossClass.CLEARED and not inputs.rules.frameworks.has_guards:
            pairs = frozenset(group.pairs)
            yield FoundRemedy(group.policy, group.effect, pairs, (closed.guard_edit(),), verified=False)
        if group.effect is LossClass.MOVES:
            for edits in closed.spreading_edits(ObjectRef(*stored.key), of_binding, inputs.clusters):
                yield from self._verified(group, stored, edits, rebalances=True)
            return
        if known or not pair.found.is_decided:
            return
        seen: set[tuple[object, ...]] = set()
        for answer in self.editor.answers(number, place, self.loss, self.is_over):
            key = tuple((edit.slot, edit.identity) for edit in answer.edits)
            if key not in seen and not self.is_over():
                seen.add(key)
                yield from self._verified(group, stored, answer.edits)

    def _resumed(self, group: _Group) -> Iterator[FoundRemedy]:
        bindings = [self._losses.asked[place].stored for _, place in group.pairs]
        keys = {binding.key for binding in bindings if binding.spec.scheduling_suspended}
        edits, apply = closed.resume_patches(sorted(keys))
        fleet = self.editor.resumed(keys, apply)
        if fleet is not None:
            yield from self._judged(group, fleet, edits, needs_owner=False)

    def _verified(
        self, group: _Group, binding: Binding, edits: Sequence[Edit], *, rebalances: bool = False
    ) -> Iterator[FoundRemedy]:
        """Yield edits as a remedy, if they are one."""
        fleet = self.editor.edited(group.policy, binding, edits, rebalances=rebalances)
        if fleet is None:
            return
        widens = any(edit.harm is Harm.WIDENS or edit.op in _WIDENING for edit in edits)
        shown = (*map(edit_shown, edits), *([closed.rebalancer()] if rebalances else ()))
        yield from self._judged(group, fleet, shown, needs_owner=widens)

    def _judged(
        self, group: _Group, fleet: edited.EditedFleet, edits: tuple[EditShown, ...], *, needs_owner: bool
    ) -> Iterator[FoundRemedy]:
        cured, worse = edited.changes(self._losses, fleet.losses, self.loss, holds=self.holds)
        if worse or not group.pairs.keys() <= cured:
            return
        policy = ObjectShown(group.policy.kind, group.policy.namespace, group.policy.name)
        shown = tuple(edit if edit.side is Side.TRIGGER else replace(edit, object=policy) for edit in edits)
        widens = needs_owner or self._leaves_regions(fleet.losses, cured)
        yield FoundRemedy(
            group.policy, group.effect, cured, shown, fleet.apply, fleet.moves, fleet.starts, widens
        )

    def _leaves_regions(self, after: Losses, cured: frozenset[edited.PairKey]) -> bool:
        """Return whether a cured binding then runs in a region in which none of its policy has been."""
        regions = {cluster.name: cluster.region for cluster in self._losses.side.snapshot}

        def regions_after(losses: Losses) -> set[str]:
            return {
                regions.get(target.name, "")
                for number, tally in enumerate(losses.tallies[self.loss])
                for pair in tally.pairs
                if (number, pair.position) in cured
                for target in pair.found.after
            }

        bindings = (self._losses.asked[place].binding for _, place in cured)
        before = {regions.get(name, "") for binding in bindings for name in binding.spec.target_names}
        return bool(regions_after(after) - before - regions_after(self._losses))
