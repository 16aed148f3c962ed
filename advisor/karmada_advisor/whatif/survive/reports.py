"""Makes the reports of ``survive`` about objects that were read, also of losses of two domains at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING, Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.state.stored import others_on
from karmada_advisor.whatif.plan.effects import out_of_service
from karmada_advisor.whatif.plan.fleet_rules import (
    as_manifests,
    binding_digest,
    fleet_rules,
    progress_of_bindings,
)
from karmada_advisor.whatif.survive.classify import LossTally, present_on
from karmada_advisor.whatif.survive.domains import CLUSTER, PAIR, FailureDomain, failure_domains, joined_twice
from karmada_advisor.whatif.survive.edited import NOTHING, PairFigures, figures
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_advisor.whatif.survive.model import LossSettings, SurvivalReport
from karmada_advisor.whatif.survive.question import SurviveQuestion, purge_modes, reaction
from karmada_advisor.whatif.survive.report import survival_report
from karmada_advisor.whatif.survive.summary import notes_of_others, notes_of_present, notes_of_same
from karmada_scheduler.structs import replace

if TYPE_CHECKING:
    from karmada_advisor.whatif.survive.remedies import FoundRemedy

_FIRST: Final = 50
"""Half of the pairs are of the worst domains: there it hurts most if a second one goes."""

DomainPair = tuple[int, int]
"""The numbers of two domains."""


def survival_reports(
    question: SurviveQuestion,
    fleet: Fleet,
    *,
    taint_policies: Sequence[Mapping[str, Any]] | None = None,
    others: Sequence[Loss] = (),
    more_notes: Sequence[str] = (),
) -> Sequence[SurvivalReport]:
    """Return the report about objects that were read, and those of other worlds.

    Args:
        question: About the fleet.
        fleet: The objects, with at least one cluster.
        taint_policies: ClusterTaintPolicies; None if they are not known.
        others: Worlds besides that of the question; their reports have no remedies.
        more_notes: What the reader of the reports should know besides.

    Raises:
        NoAnswerError: There is no answer.
    """
    deadline = time.monotonic() + question.seconds
    loss, pairs = question.settings.loss, question.pairs
    taints, settings = reaction(question.settings, taint_policies, fleet)
    clusters = {cluster.name: fleet.manifests[cluster.name] for cluster in fleet.clusters}
    same = joined_twice(clusters.values())
    is_lost = question.spanning_is_lost
    domains = question.chosen(
        failure_domains(fleet.clusters, question.kinds, spanning_is_lost=is_lost, same=same)
    )
    digests, present, others_of = [], {}, {}
    closed = {cluster.name: state for cluster in fleet.clusters if (state := out_of_service(cluster))}
    for binding in fleet.bindings:  # each is read from what is kept of it, which takes time
        manifest = fleet.manifests[binding.key]
        digests.append(binding_digest(manifest))
        present[binding.key] = present_on(binding, manifest, clusters, closed)
        others_of[binding.key] = [name for name in others_on(manifest) if name in clusters]
    known = (*notes_of_same(same), *notes_of_present(closed, present), *notes_of_others(others_of))
    more_notes = (*more_notes, *fleet.unread_notes, *known)
    with fleet_rules(
        fleet, question.rules, expected=question.expected, again="survive", bindings=digests
    ) as found:
        losses = Losses(
            LossInputs(
                fleet.clusters,
                fleet.bindings,
                found.rules,
                domains.domains,
                tuple(dict.fromkeys((loss, *others, Loss.ITSELF))),
                hold_of=found.hold_of,
                purge_modes=purge_modes(fleet),
                purge_mode=settings.purge_mode,
                taints=taints,
                present=present,
                is_over=lambda: time.monotonic() >= deadline,
            )
        )
        losses.run(progress_of_bindings())
        remedies: Sequence[FoundRemedy] = ()
        notes: Sequence[str] = ()
        if question.remedies:
            remedies, notes = _remedies(question, fleet, losses, settings, deadline)
        if pairs or question.drawn_pairs:
            names = [domain.name for domain in domains.domains]
            numbers = [(names.index(one), names.index(other)) for one, other in pairs]
            numbers += drawn(losses, question.drawn_pairs, loss, found.fingerprint)
            decided = decide_pairs(losses, list(dict.fromkeys(numbers)))
            domains = replace(domains, domains=(*domains.domains, *decided))
        return [
            survival_report(
                losses,
                domains,
                replace(settings, loss=world),
                question,
                provenance=found.provenance,
                fingerprint=found.fingerprint,
                remedies=remedies if world is loss else (),
                more_notes=(*more_notes, *notes) if world is loss else more_notes,
            )
            for world in dict.fromkeys((loss, *others))
        ]


def _remedies(
    question: SurviveQuestion, fleet: Fleet, losses: Losses, settings: LossSettings, deadline: float
) -> tuple[Sequence[FoundRemedy], Sequence[str]]:
    """Return what mends losses, and notes about what was not looked for."""
    from karmada_advisor.whatif.survive import (  # the search for edits, which most reports do without
        least_capacity,
        remedies,
    )
    from karmada_advisor.whatif.survive.edited import FleetEditor

    found = remedies.Remedies(
        FleetEditor(losses, fleet.manifests, as_manifests(fleet).policies),
        settings.loss,
        question.is_reported,
        question.holds,
        per_policy=question.remedies,
        is_over=_after(remedies.SECONDS, deadline),
    )
    edits, unsearched = found.find()
    notes = []
    if unsearched:
        text = counted(unsearched, "group of failing bindings", "groups of failing bindings")
        notes.append(f"no remedy was looked for, for {text}: there are too many, or the time was over")
    capacity = least_capacity.LeastCapacity(losses, settings.loss, _after(least_capacity.SECONDS, deadline))
    more = [] if settings.loss is Loss.ITSELF else capacity.find()
    if capacity.looked < capacity.short:
        of = counted(capacity.short, "domain leaves", "domains leave")
        notes.append(f"{of} something short; the least capacity to add was looked for in {capacity.looked:,}")
    return [*edits, *more, *found.of_settings(settings)], notes


def _after(seconds: float, deadline: float) -> Callable[[], bool]:
    """Return what says whether some time from now, or a deadline, is over."""
    end = min(deadline, time.monotonic() + seconds)
    return lambda: time.monotonic() >= end


def drawn(losses: Losses, count: int, loss: Loss, seed: str) -> Sequence[DomainPair]:
    """Return pairs of clusters, half of them of those whose loss is worst.

    Args:
        losses: All domains, decided.
        count: How many; fewer if there are not so many.
        loss: The world by which the worst are found.
        seed: Equal seeds draw equal pairs.
    """
    numbers = [number for number, domain in enumerate(losses.inputs.domains) if domain.kind == CLUSTER]
    tallies = losses.tallies[loss]
    worst = sorted(numbers, key=lambda number: _badness(tallies[number]))[:_FIRST]
    dice, found = random.Random(seed), dict[DomainPair, None]()  # noqa: S311 (a sample, not a secret)
    for among, wanted in ((worst, count // 2), (numbers, count)):
        while len(found) < min(wanted, comb(len(among), 2)):
            first, second = sorted(dice.sample(among, 2))
            found[first, second] = None
    return list(found)


def _badness(tally: LossTally) -> tuple[int, int, int]:
    found = [figures(pair.classified) for pair in tally.pairs]
    dark, missing, interrupted = (sum(each[place] for each in found) for place in range(3))
    return -dark, -missing, -interrupted


def decide_pairs(losses: Losses, pairs: Sequence[DomainPair]) -> Sequence[FailureDomain]:
    """Decide about the losses of pairs, add what is new to the tallies, and return the pairs as domains.

    A binding is new in a pair if it is dark, misses more replicas, or is interrupted, and is not in either domain alone.
    """
    domains = losses.inputs.domains
    made = [
        FailureDomain(PAIR, f"{one.name}+{other.name}", tuple(sorted({*one.clusters, *other.clusters})), ())
        for one, other in ((domains[first], domains[second]) for first, second in pairs)
    ]
    both = Losses(replace(losses.inputs, domains=made))
    both.run()
    for loss, tallies in both.tallies.items():
        singles = losses.tallies[loss]
        for tally, pair in zip(tallies, pairs, strict=True):
            alone = [
                {each.position: figures(each.classified) for each in singles[number].pairs} for number in pair
            ]
            tally.pairs = [
                each
                for each in tally.pairs
                if _is_new(figures(each.classified), [one.get(each.position, NOTHING) for one in alone])
            ]
        losses.tallies[loss] += tallies
    losses.done.extend(
        is_done and all(losses.done[number] for number in pair)
        for is_done, pair in zip(both.done, pairs, strict=True)
    )
    losses.inputs = replace(losses.inputs, domains=[*domains, *made])
    return made


def _is_new(now: PairFigures, alone: Sequence[PairFigures]) -> bool:
    return any(value > max(known) for value, *known in zip(now, *alone, strict=True))
