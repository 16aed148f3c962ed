"""Decides about every binding in every loss: bindings outside, domains inside, so that the caches of a policy stay hot.

All decisions are made about one snapshot. Only the bindings on a lost cluster are decided again, and those of ``sweep``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from karmada_advisor.whatif.plan.decide import PlanSide, Progress, grouped, no_progress
from karmada_advisor.whatif.plan.load import FreeCapacity, Starting, requests
from karmada_advisor.whatif.survive.classify import (
    LossClass,
    LossTally,
    Pair,
    classified,
    counts_copies,
    wanted,
)
from karmada_advisor.whatif.survive.decisions import CoupledLosses, LossDecisions
from karmada_advisor.whatif.survive.loss import Loss, LossInputs, never
from karmada_advisor.whatif.survive.loss_decision import SharedDecisions
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import replace

_FIRST: Final = 64
"""Domains that are decided before all others, those with the most bindings; of an end before its time, they are left."""


class Losses:
    """The bindings of a fleet in the losses of its domains.

    Attributes:
        bindings: All bindings, in the order of the queue.
        asked: Those that have a class, by their position: not followers, not pending before, not being deleted.
        tallies: By world, one for each domain.
        done: Whether the loss of each domain was decided.
        emptied: Bindings that a decision takes off all clusters without any loss.
    """

    def __init__(
        self, inputs: LossInputs, before: Losses | None = None, changed: Collection[int] = ()
    ) -> None:
        """Prepare; nothing is decided yet.

        Args:
            inputs: Everything that is read.
            before: The same fleet, decided, of which only some bindings differ; None without one.
            changed: Their positions.
        """
        self.inputs = inputs
        self._before: Final = None if inputs.rules.is_coupled else before
        self._changed: Final = frozenset(changed)
        self.side: PlanSide = (
            PlanSide(inputs.rules, inputs.snapshot or Snapshot.of(inputs.clusters), inputs.bindings)
            if self._before is None
            else self._before.side
        )
        self.bindings: Final = inputs.rules.in_queue_order(inputs.bindings)
        known = {} if self._before is None else self._before.asked
        self.asked: Final[dict[int, LossDecisions]] = {
            place: decisions for place, decisions in known.items() if place not in self._changed
        }
        self._domains_of: Final[dict[str, list[int]]] = {}
        for number, domain in enumerate(inputs.domains):
            for name in domain.clusters:
                self._domains_of.setdefault(name, []).append(number)
        self._lost = [frozenset(domain.clusters) for domain in inputs.domains]
        self._several: Final = frozenset[str]().union(*(names for names in self._lost if len(names) > 1))
        self.emptied = 0
        self.done: Final = [False] * len(inputs.domains)
        chosen = range(len(self.bindings)) if self._before is None else sorted(self._changed)
        places = {id(self.bindings[place]): place for place in chosen}
        ordered = grouped(self.bindings[place] for place in chosen)
        self._ordered: Final = [(places[id(binding)], binding) for binding in ordered]
        self.tallies: Final = {loss: [LossTally() for _ in inputs.domains] for loss in inputs.losses}

    def run(self, progress: Progress = no_progress) -> None:
        """Decide about everything, or until ``is_over``; ``progress`` gets how many are done, and their total."""
        coupled = self.inputs.rules.is_coupled
        for part in [()] if coupled else self._parts():
            self._decide_part(frozenset(part), progress)
            if self.inputs.is_over():
                break
            for number in part:
                self.done[number] = True
        else:
            if coupled:
                self._decide_in_order(progress)
        free = FreeCapacity(self.side.snapshot)
        for loss, tallies in self.tallies.items():
            for number, tally in enumerate(tallies):
                if not self.done[number]:
                    tally.pairs.clear()
                elif self._before is not None and not self._add_unchanged(self._before, loss, number):
                    continue
                elif loss is not Loss.ITSELF or self.inputs.taints.evicts:
                    self._settle(tally, free)

    def after(
        self, changed: Mapping[int, Binding], purge_modes: Mapping[BindingKey, str] | None = None
    ) -> Losses:
        """Return the losses after a change, decided. Bindings that it does not concern are not decided again.

        Args:
            changed: Bindings by their position.
            purge_modes: Of the bindings that have one afterwards; None if they stay.
        """
        inputs = replace(
            self.inputs,
            bindings=[changed.get(place, binding) for place, binding in enumerate(self.bindings)],
            purge_modes=self.inputs.purge_modes if purge_modes is None else purge_modes,
            is_over=never,
        )
        made = Losses(inputs, self, changed)
        made.run()
        return made

    def _add_unchanged(self, before: Losses, loss: Loss, number: int) -> bool:
        """Add the bindings that are as before; return whether the loss is another one by those that are not."""
        tally, old = self.tallies[loss][number], before.tallies[loss][number]
        if not tally.pairs and not any(pair.position in self._changed for pair in old.pairs):
            self.tallies[loss][number] = old
            return False
        tally.pairs += [
            pair if pair.alone is None else pair._replace(classified=pair.alone, alone=None)
            for pair in old.pairs
            if pair.position not in self._changed
        ]
        return True

    def _parts(self) -> Sequence[Sequence[int]]:
        """Return the domains in parts; those with the most bindings come first."""
        ordered = self._fullest_first()
        if self._before is not None:
            return [[number for number in ordered if self._before.done[number]]]
        if len(ordered) <= 2 * _FIRST:
            return [ordered]
        return [ordered[:_FIRST], ordered[_FIRST:]]

    def _fullest_first(self) -> list[int]:
        counts = [0] * len(self._lost)
        for binding in self.bindings:
            for target in binding.spec.clusters:
                for number in self._domains_of.get(target.name, ()):
                    counts[number] += 1
        return sorted(range(len(counts)), key=lambda number: -counts[number])

    def _decide_part(self, part: frozenset[int], progress: Progress) -> None:
        """Decide about all bindings in some domains, or until ``is_over``."""
        shared, last = SharedDecisions(), None
        for number, (place, binding) in enumerate(self._ordered, 1):
            if self.inputs.is_over():
                return
            placement = binding.spec.placement
            if placement is not last:
                shared, last = SharedDecisions(), placement
            if placement is not None and binding.spec.clusters and not binding.deleting:
                self._prepare(place, binding, shared, part)
            progress(number, len(self._ordered))

    def _prepare(self, place: int, binding: Binding, shared: SharedDecisions, part: frozenset[int]) -> None:
        decisions = self.asked.get(place)
        if decisions is None:
            decisions = LossDecisions(self.side, binding, self.inputs, shared)
            if not decisions.binding.spec.clusters:
                self.emptied += 1
                return
            self.asked[place] = decisions
        decisions.shared = shared
        if part:
            self._decide(place, decisions, part)
            decisions.forget()

    def _decide_in_order(self, progress: Progress) -> None:
        """Decide domain by domain, each decision after those before it."""
        coupled = CoupledLosses(self.side, self.bindings, self.inputs.taints)
        asked = dict(sorted(self.asked.items()))
        for count, number in enumerate(self._fullest_first(), 1):
            if self.inputs.is_over():
                return
            lost = self._lost[number]
            for loss in self.inputs.losses:
                for place, found in coupled.after(asked, lost, loss):
                    result = classified(asked[place].binding.spec, lost, found)
                    self._add(loss, number, Pair(place, found, result))
            self.done[number] = True
            progress(count, len(self._lost))

    def _decide(self, place: int, decisions: LossDecisions, part: frozenset[int]) -> None:
        """Decide about one binding in every loss of a part that concerns it."""
        inputs, spec = self.inputs, decisions.binding.spec
        for number in self._concerned(decisions) & part:
            lost = self._lost[number]
            for loss in inputs.losses:
                found = decisions.after(lost, loss)
                self._add(loss, number, Pair(place, found, classified(spec, lost, found)))
        for loss in inputs.losses:
            for names, found in decisions.swept_by_one(loss):
                pair = Pair(place, found, classified(spec, (), found))
                for name in names:
                    for number in self._domains_of.get(name, ()):
                        if number in part and len(self._lost[number]) == 1:
                            self._add(loss, number, pair)

    def _add(self, loss: Loss, number: int, pair: Pair) -> None:
        if pair.classified.effect is not LossClass.UNTOUCHED:
            self.tallies[loss][number].pairs.append(pair)

    def _concerned(self, decisions: LossDecisions) -> set[int]:
        """Return the domains that a binding is in, and those of several clusters that may sweep it."""
        found = self._with(decisions.binding.spec.target_names)
        sweeps = decisions.sweeps if self._several else None
        if sweeps is not None:
            members = self._with(self._several.intersection(sweeps.members))
            found |= {number for number in members if len(self._lost[number]) > 1}
        return found

    def _with(self, names: Iterable[str]) -> set[int]:
        """Return the domains that have some clusters."""
        return {number for name in names for number in self._domains_of.get(name, ())}

    def _settle(self, tally: LossTally, capacity: FreeCapacity) -> None:
        """Find the replicas that do not fit."""
        starting = [
            Starting(pair.position, amounts, pair.classified.starts)
            for pair in tally.pairs
            if pair.classified.starts and (amounts := self._amounts(pair.position))
        ]
        tally.overcommitted = capacity.overcommitted(starting)
        if not tally.overcommitted:
            return
        missing = capacity.pending(starting, tally.overcommitted)
        for index, pair in enumerate(tally.pairs):
            if pair.position in missing and pair.classified.effect is LossClass.MOVES:
                tally.pairs[index] = self._short(pair, missing[pair.position])

    def _short(self, pair: Pair, missing: int) -> Pair:
        spec = self.asked[pair.position].binding.spec
        total = min(wanted(spec), pair.classified.missing + missing)
        result = pair.classified._replace(
            effect=LossClass.SHORT, missing=total, dark=total >= wanted(spec) > 0
        )
        return pair._replace(classified=result, alone=pair.classified)

    def _amounts(self, position: int) -> Mapping[str, int]:
        """Return what one replica of a binding requests; nothing if it has no replicas."""
        spec = self.asked[position].binding.spec
        return {} if counts_copies(spec) and not spec.components else requests(spec)
