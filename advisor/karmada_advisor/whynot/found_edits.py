"""What a search returns: irreducible answers, which of them are shown, and what a careful colleague says against them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.amounts import request_of, shown
from karmada_advisor.explain.causes_failure import affinities_of
from karmada_advisor.whynot.goals import Goal, has_replicas
from karmada_advisor.whynot.json_patch import ordered
from karmada_advisor.whynot.objects import ObjectSet, ScheduledObjects
from karmada_advisor.whynot.quantities import least
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import counts_component_sets
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.edits import Edit, Harm, Side
from karmada_scheduler.structs import Struct, field

_ROUNDS: Final = 6
"""How often amounts and leaving out are repeated until an answer is stable."""


class SearchBounds(Struct, frozen=True):
    """Where a search ends.

    Attributes:
        seconds: Time for the search; what it has found is still verified afterwards.
        max_runs: Decisions of the search, without those that verify an answer.
        max_depth: Edits in one answer.
        answers: Answers to return.
    """

    seconds: float = 2.0
    max_runs: int = 96
    max_depth: int = 4
    answers: int = 3


DEFAULT_BOUNDS: Final = SearchBounds()


class Answer(Struct, frozen=True):
    """An irreducible set of edits that reaches the goal.

    Attributes:
        edits: The edits in the order in which they are applied.
        outcome: The binding after them.
    """

    edits: tuple[Edit, ...]
    outcome: ScheduledObjects

    @property
    def cost(self) -> float:
        """The effort of all edits."""
        return math.fsum(edit.cost for edit in self.edits)

    @property
    def sides(self) -> frozenset[Side]:
        """The parts of the system that it changes."""
        return sides_of(self.edits)

    @property
    def harm(self) -> Harm:
        """What speaks against it."""
        return harm_of(self.edits)


class FoundEdits(Struct):
    """The result of a search.

    Attributes:
        answers: At most as many as the bounds allow, those of different sides first.
        ineffective: Single edits that do not reach the goal, with the binding after them.
        runs: Decisions of the search.
        all_singles: Whether all single edits of the vocabulary for the step that refuses were tried.
        complete: Whether nothing was left to try.
        ended_by: The bound that ended it: ``timeout``, ``maxRuns``, or "".
    """

    answers: list[Answer] = field(default_factory=list)
    ineffective: list[tuple[Edit, ScheduledObjects]] = field(default_factory=list)
    runs: int = 0
    all_singles: bool = True
    complete: bool = True
    ended_by: str = ""


def irreducible(
    edits: Iterable[Edit], objects: ObjectSet, goal: Goal, has_time: Callable[[], bool]
) -> Answer | None:
    """Return the irreducible part of edits that reach the goal, with the least amounts.

    The least amount of one edit depends on the others, so both steps are repeated until nothing changes; None if
    that does not happen.
    """

    def reaches(*tried: Edit) -> bool:
        outcome = objects.outcome(tried)
        return outcome is not None and goal.holds(outcome)

    # Which of two equally expensive edits is left out first decides on the answer, and a set has no order of its own.
    current = _shrunk(ordered(edits), reaches)
    for _ in range(_ROUNDS):
        before = list(current)
        for index, edit in enumerate(current):
            others = [*current[:index], *current[index + 1 :]]
            current[index] = least(edit, partial(reaches, *others), has_time)
        current = _shrunk(current, reaches)
        if current == before:
            outcome = objects.outcome(current)
            assert outcome is not None  # it was computed by ``_shrunk`` or ``least``
            mine = {edit: edit for edit in current}
            return Answer(tuple(mine[edit] for edit, _ in outcome.patched.operations), outcome)
    return None


def _shrunk(edits: list[Edit], reaches: Callable[..., bool]) -> list[Edit]:
    """Leave out edits, the most expensive first, until none can be left out."""
    current = list(edits)
    while len(current) > 1:
        for edit in sorted(current, key=lambda one: -one.cost):
            rest = [one for one in current if one is not edit]
            if reaches(*rest):
                current = rest
                break
        else:
            break
    return current


def sides_of(edits: Iterable[Edit]) -> frozenset[Side]:
    """Return the parts of the system that edits change."""
    return frozenset(edit.side for edit in edits)


def kinds_of(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Return what edits do, sorted."""
    return tuple(sorted(edit.op for edit in edits))


def keys_of(edits: Iterable[Edit]) -> frozenset[object]:
    """Return what identifies a set of edits whatever the amounts."""
    sizes = ((edit, edit.quantity) for edit in edits)
    return frozenset(
        (edit.slot, edit.identity) if size is None else (edit.slot, edit.op, size.at > size.base)
        for edit, size in sizes
    )


def simplest(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers with the fewest edits that do no harm, and the harmful ones with no more.

    To place a binding anywhere, somebody who can change one thing does not change two.
    """
    harmless = [len(answer.edits) for answer in answers if answer.harm is Harm.NONE]
    fewest = min(harmless, default=min((len(answer.edits) for answer in answers), default=0))
    return [answer for answer in answers if len(answer.edits) <= fewest]


def best(answers: Sequence[Answer], count: int) -> list[Answer]:
    """Return the best answers: those of the least harm, and of these, those that change other sides."""

    def rank(each: Answer) -> tuple[int, float, int]:
        return each.harm.degree, each.cost, len(each.edits)

    ranked = sorted(answers, key=rank)
    chosen: list[Answer] = []
    for harm in Harm:
        same = [answer for answer in ranked if answer.harm is harm]
        for answer in same:
            if all(answer.sides != other.sides for other in chosen):
                chosen.append(answer)
        for answer in same:
            if all(kinds_of(answer.edits) != kinds_of(other.edits) for other in chosen):
                chosen.append(answer)
        chosen += [answer for answer in same if answer not in chosen]
    return sorted(chosen[:count], key=rank)


def harm_of(edits: Sequence[Edit]) -> Harm:
    """Return the harm of the worst edit."""
    return max((edit.harm for edit in edits), key=lambda each: each.degree, default=Harm.NONE)


def caution_of(
    edits: Sequence[Edit], before: ScheduledObjects, after: ScheduledObjects, gates: FeatureGates
) -> str:
    """Return what speaks against a set of edits, in sentences; "" if nothing does.

    Args:
        edits: The edits.
        before: The binding without them.
        after: The binding with them.
        gates: The feature gates and rules, for the capacity of clusters and what an affinity selects.
    """
    found: dict[str, None] = {}
    for edit in edits:
        if edit.harm is Harm.UNCHECKED:
            found[_unchecked(before, after, gates, lacks=edit.op.startswith("dropRequest"))] = None
        elif edit.harm is Harm.WIDENS and not edit.caution:
            found[_widened(before, after, gates)] = None
        elif edit.caution:
            found[edit.caution] = None
    return " ".join(found)


def _widened(before: ScheduledObjects, after: ScheduledObjects, gates: FeatureGates) -> str:
    allowed, then = _allowed(before, gates), _allowed(after, gates)
    clusters = "cluster is" if then == 1 else "clusters are"
    return f"It widens what the owner of the policy has restricted: {then} {clusters} allowed, and {allowed} now."


def _allowed(outcome: ScheduledObjects, gates: FeatureGates) -> int:
    """Return how many clusters some affinity of the placement selects."""
    affinities = affinities_of(gates.rules.placement(outcome.binding.spec.placement or Placement()))
    clusters = outcome.snapshot
    return sum(not affinities or any(affinity.matches(each) for affinity in affinities) for each in clusters)


def _unchecked(before: ScheduledObjects, after: ScheduledObjects, gates: FeatureGates, *, lacks: bool) -> str:
    """Return how many Pods of the result do not fit with the requests as they are."""
    present = before.replicas
    added = {
        name: wanted
        for name, replicas in after.replicas.items()
        if (wanted := _units(after, replicas) - (_units(before, present[name]) if name in present else 0)) > 0
    }
    fits = {name: _fits(before, name, gates) for name in added}
    short = {name: wanted - fits[name] for name, wanted in added.items() if fits[name] < wanted}
    pending = "stay Pending" + (", or lack what they ask for" if lacks else "")
    what = "sets of Pods" if counts_component_sets(before.binding.spec, gates) else "Pods"
    if not short:
        return "It ends the check of capacity: later replicas may not fit anywhere."
    clusters = (before.snapshot.get(name) for name in short)
    if unread := [each.name for each in clusters if each is not None and each.resource_summary is None]:
        return f"It only ends the check: whether {what} start on {', '.join(unread[:3])} is not known: no resource summary."
    if not any(fits.values()):
        asked = _asked(before)
        return f"It only ends the check: all {what} would {pending}, because {_none_can(list(short))} take one{asked}."
    missing = sum(short.values())
    return (
        f"It only ends the check: {missing} of {sum(added.values())} new {what} would {pending} "
        f"({', '.join(f'{name} can take {fits[name]} of {added[name]}' for name in list(short)[:3])})."
    )


def _units(outcome: ScheduledObjects, replicas: int) -> int:
    """Return what a target counts for: its replicas, or one set of components."""
    if has_replicas(outcome.binding):
        return replicas
    return int(replicas > 0 or not outcome.binding.spec.replicas)


def _none_can(names: Sequence[str]) -> str:
    return f"{names[0]} cannot" if len(names) == 1 else f"none of {', '.join(names[:3])} can"


def _asked(outcome: ScheduledObjects) -> str:
    request = sorted(request_of(outcome.binding.spec).items())
    return f" ({', '.join(f'{shown(name, amount)} {name}' for name, amount in request)})" if request else ""


def _fits(outcome: ScheduledObjects, name: str, gates: FeatureGates) -> int:
    cluster = outcome.snapshot.get(name)
    return 0 if cluster is None else max(0, available(outcome.binding, cluster, gates))


def available(binding: Binding, cluster: Cluster, gates: FeatureGates) -> int:
    """Return how many further replicas, or sets of components where those are counted, fit on a cluster."""
    estimator, spec = GeneralEstimator(gates), binding.spec
    if counts_component_sets(spec, gates):
        [fits] = estimator.max_available_component_sets([cluster], spec.components, binding.key.namespace, {})
    else:
        [fits] = estimator.max_available_replicas([cluster], spec.replica_requirements, {})
    return fits
