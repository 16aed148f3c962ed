"""From the decided losses to the report as data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import Provenance
from karmada_advisor.whatif.plan.effects import targets
from karmada_advisor.whatif.survive import model
from karmada_advisor.whatif.survive.classify import Classified, LossClass, LossTally, Pair
from karmada_advisor.whatif.survive.domains import PAIR, FailureDomain, FailureDomains
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.fail_on import failing
from karmada_advisor.whatif.survive.loss import Loss, eviction_delay
from karmada_advisor.whatif.survive.question import SurviveQuestion
from karmada_advisor.whatif.survive.summary import notes_of_domains, notes_of_pairs, summary
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.structs import asdict, replace

if TYPE_CHECKING:  # the search for edits, which most reports do without
    from karmada_advisor.whatif.survive.remedies import FoundRemedy

WORKERS: Final = 3
"""Workers of the taint manager, for each kind of binding.

Source: karmada v1.18.2 cmd/controller-manager/app/controllermanager.go startClusterController.
"""

_WITHOUT_RATE: Final = 1800
"""Seconds that a worker waits after an eviction if the rate is 0.

Source: karmada v1.18.2 pkg/controllers/cluster/eviction_worker.go.
"""

_QUIET: Final = frozenset({LossClass.MOVES, LossClass.HOLDS})


def survival_report(
    losses: Losses,
    found: FailureDomains,
    settings: model.LossSettings,
    question: SurviveQuestion,
    *,
    provenance: Provenance,
    fingerprint: str,
    remedies: Sequence[FoundRemedy] = (),
    more_notes: Sequence[str] = (),
) -> model.SurvivalReport:
    """Return the report.

    Args:
        losses: After ``run``.
        found: The domains of ``losses``, in the same order.
        settings: How the fleet is taken to react.
        question: Which bindings are counted and listed, though all of them compete for capacity; and what fails.
        provenance: Where the objects come from.
        fingerprint: A hash over all that the decisions read.
        remedies: What mends losses.
        more_notes: Further notes.

    Raises:
        NoAnswerError: The baseline is a report about another fleet.
    """
    made = _Report(losses, settings, question)
    decided = [made.domain(number, domain) for number, domain in enumerate(found.domains)]
    ranked = sorted(range(len(decided)), key=lambda number: _order(decided[number]))
    domains = tuple(decided[number] for number in ranked)
    places = {number: place for place, number in enumerate(ranked)}
    bindings = tuple(made.bindings(places))
    totals = made.totals(domains, sum(any(loss.dark for loss in one.losses) for one in bindings))
    report = model.SurvivalReport(
        provenance,
        fingerprint,
        settings,
        summary(settings, totals, domains),
        totals,
        domains,
        bindings,
        has_baseline=question.baseline is not None,
        remedies=tuple(_remedy(remedy, places) for remedy in remedies),
        notes=(
            *made.not_judged(),
            *notes_of_domains(found, made.without_applied_placement()),
            *notes_of_pairs(domains, totals.clusters),
            *made.not_known(),
            *more_notes,
        ),
    )
    fail_on = question.fails_on(report)
    failing_ = failing(report, fail_on, question.baseline)
    return replace(report, fail_on=tuple(map(str, fail_on)), failing=failing_)


def _remedy(found: FoundRemedy, places: Mapping[int, int]) -> model.LossRemedy:
    fields = asdict(found)
    cured = fields.pop("cured")
    domains = tuple(sorted({places[number] for number, _ in cured}))
    return model.LossRemedy(domains=domains, bindings=len({position for _, position in cured}), **fields)


def _order(domain: model.DomainLoss) -> tuple[bool, int, int, int, int, int, str, str]:
    found = domain.chosen
    return (
        not domain.done,
        -found.dark,
        -found.missing,
        -found.interrupted,
        -found.swept_replicas,
        -found.moving_replicas,
        domain.name,
        domain.kind,
    )


def _starting(found: Iterable[Classified]) -> int:
    return sum(target.replicas for starting in found for target in starting.starts)


class _Report:
    """A report in the making."""

    def __init__(self, losses: Losses, settings: model.LossSettings, question: SurviveQuestion) -> None:
        self._losses, self._settings, self._every_loss = losses, settings, question.every_loss
        self._reported = {place for place, each in losses.asked.items() if question.is_reported(each.stored)}
        self._clusters = {cluster.name: cluster for cluster in losses.side.snapshot}

    def domain(self, number: int, domain: FailureDomain) -> model.DomainLoss:
        """Return what the loss of a domain does."""
        tallies = self._losses.tallies
        chosen = tallies[self._settings.loss][number]
        counts = self._counts(chosen)
        return model.DomainLoss(
            **asdict(domain),
            done=self._losses.done[number],
            is_spof=counts.dark > 0,
            chosen=counts,
            itself=self._counts(tallies[Loss.ITSELF][number]),
            times=self._times(domain, chosen),
            overcommitted=tuple(
                model.Overcommitted(name, demands)
                for name, demands in sorted(
                    chosen.overcommitted.items(),
                    key=lambda item: (-max(demand.asked - (demand.free or 0) for demand in item[1]), item[0]),
                )
            ),
        )

    def _pairs(self, tally: LossTally) -> Iterator[Pair]:
        return (pair for pair in tally.pairs if pair.position in self._reported)

    def _counts(self, tally: LossTally) -> model.LossCounts:
        found = [pair.classified for pair in self._pairs(tally)]
        counts = {loss.value: 0 for loss in LossClass}
        for loss in found:
            counts[loss.effect.value] += 1
        counts[LossClass.UNTOUCHED.value] = len(self._reported) - len(found)
        return model.LossCounts(
            counts,
            sum(loss.dark for loss in found),
            sum(loss.interrupted for loss in found),
            sum(loss.missing for loss in found),
            _starting(loss for loss in found if loss.effect is LossClass.SWEPT),
            _starting(loss for loss in found if loss.effect is not LossClass.SWEPT),
        )

    def _times(self, domain: FailureDomain, tally: LossTally) -> model.LossTimes | None:
        """Return the estimated times of evictions; None without any, or where clusters are deleted instead."""
        if self._settings.loss is Loss.DELETED:
            return None
        evicted = [self._losses.asked[pair.position].binding for pair in tally.pairs if pair.found.is_evicted]
        if not evicted:
            return None
        modes = {self._clusters[name].sync_mode for name in domain.clusters}
        settings = self._settings
        noticed = max(settings.noticed_pull if mode == "Pull" else settings.noticed_push for mode in modes)
        taints = {*self._losses.inputs.taints.evicting_any(domain.clusters, settings.loss)}
        delays = [eviction_delay(binding, taints) for binding in evicted]
        first = noticed + min(delays)
        queued = Counter(binding.key.kind for binding in evicted)
        each = 1 / settings.eviction_rate if settings.eviction_rate else _WITHOUT_RATE
        last = first + math.ceil(max(queued.values()) / WORKERS * each)
        return model.LossTimes(noticed, first, max(last, noticed + max(delays)))

    def bindings(self, places: dict[int, int]) -> Iterator[model.BindingLosses]:
        """Yield the bindings to which a loss does something, in the order of the queue."""
        by_binding: dict[int, dict[tuple[object, ...], tuple[Pair, list[int]]]] = {}
        for number, tally in enumerate(self._losses.tallies[self._settings.loss]):
            for pair in self._pairs(tally):
                found = pair.classified
                is_quiet = found.effect in _QUIET and not (found.dark or found.interrupted or found.missing)
                if is_quiet and not self._every_loss:
                    continue
                same = (id(pair.found), pair.classified, pair.is_pending)
                _, numbers = by_binding.setdefault(pair.position, {}).setdefault(same, (pair, []))
                numbers.append(places[number])
        for position in sorted(by_binding):
            asked = self._losses.asked[position]
            spec = asked.binding.spec
            yield model.BindingLosses(
                *asked.stored.key,
                policy_of(asked.stored.annotations),
                spec.replicas,
                targets(spec.clusters),
                asked.drifts,
                tuple(
                    model.BindingLoss(
                        tuple(sorted(numbers)),
                        *pair.classified[:4],
                        pair.found.failed_by,
                        pair.found.message,
                        pair.is_pending,
                        targets(pair.found.after),
                    )
                    for pair, numbers in by_binding[position].values()
                ),
            )

    def totals(self, domains: Sequence[model.DomainLoss], dark: int) -> model.SurvivalTotals:
        """Return the numbers of the report."""
        present = [binding.spec for binding in self._losses.bindings if not binding.deleting]
        pending = sum(spec.placement is not None and not spec.clusters for spec in present)
        return model.SurvivalTotals(
            len(self._reported),
            len(self._clusters),
            self._losses.emptied + pending,
            sum(spec.placement is None for spec in present),
            len(self._losses.bindings) - len(present),
            len(domains),
            sum(domain.is_spof and domain.kind != PAIR for domain in domains),
            dark,
            sum(not self._losses.asked[place].is_judged for place in self._reported),
        )

    def not_judged(self) -> Iterator[str]:
        """Yield how many bindings are not judged, by why."""
        reasons = Counter(
            decisions.hold.text
            for place, decisions in self._losses.asked.items()
            if place in self._reported and not decisions.is_judged and decisions.hold is not None
        )
        for reason, count in sorted(reasons.items()):
            yield f"not judged: {counted(count, 'binding')} {reason}"

    def not_known(self) -> Iterator[str]:
        """Yield the clusters on which replicas start and of which no capacity is known."""
        tallies = self._losses.tallies[self._settings.loss]
        starts = (
            target for tally in tallies for pair in self._pairs(tally) for target in pair.classified.starts
        )
        names = {target.name for target in starts if target.replicas}
        unread = (name for name, each in self._clusters.items() if each.resource_summary is None)
        if found := ", ".join(name for name in unread if name in names):
            yield f"not judged: whether there is capacity for what starts on {found}: no resource summary"

    def without_applied_placement(self) -> list[BindingKey]:
        """Return the bindings that are never evicted as they have no applied placement."""
        stored = (decisions.stored for decisions in self._losses.asked.values())
        return [binding.key for binding in stored if not binding.applied_placement_json]
