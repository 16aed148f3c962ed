"""From the decided losses to the report as data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import Provenance
from karmada_advisor.plan.result import targets
from karmada_advisor.survive.classify import LossClass
from karmada_advisor.survive.domains import CLUSTER, PAIR, FailureDomain, FailureDomains, kind_order
from karmada_advisor.survive.engine import Losses, LossTally, Pair
from karmada_advisor.survive.loss import Loss, eviction_delay
from karmada_advisor.survive.model import (
    BindingLoss,
    BindingLosses,
    DomainLoss,
    LossCounts,
    LossRemedy,
    LossSettings,
    LossTimes,
    Overcommitted,
    SurvivalReport,
    SurvivalTotals,
)
from karmada_scheduler.api.binding import Binding, BindingKey

if TYPE_CHECKING:  # the search for edits, which most reports do without
    from karmada_advisor.survive.remedies import FoundRemedy

WORKERS: Final = 3
"""Workers of the taint manager, for each kind of binding.

Source: karmada v1.18.2 cmd/controller-manager/app/controllermanager.go startClusterController.
"""

_WITHOUT_RATE: Final = 1800
"""Seconds that a worker waits after an eviction if the rate is 0.

Source: karmada v1.18.2 pkg/controllers/cluster/eviction_worker.go.
"""

_QUIET: Final = frozenset({LossClass.MOVES, LossClass.HOLDS})

Selected = Callable[[Binding], bool]


def survival_report(
    losses: Losses,
    found: FailureDomains,
    settings: LossSettings,
    *,
    provenance: Provenance,
    fingerprint: str,
    is_reported: Selected = lambda _: True,
    every_loss: bool = False,
    remedies: Sequence[FoundRemedy] = (),
    more_notes: Sequence[str] = (),
) -> SurvivalReport:
    """Return the report.

    Args:
        losses: After ``run``.
        found: The domains of ``losses``, in the same order.
        settings: How the fleet is taken to react.
        provenance: Where the objects come from.
        fingerprint: A hash over all that the decisions read.
        is_reported: Whether a binding is counted and listed; all of them compete for capacity.
        every_loss: Whether losses that a binding survives are listed, too.
        remedies: What mends losses.
        more_notes: Further notes.
    """
    made = _Report(losses, settings, is_reported)
    ranked = sorted(
        (made.domain(number, domain) for number, domain in enumerate(found.domains)),
        key=lambda item: _order(item[1]),
    )
    domains = tuple(domain for _, domain in ranked)
    places = {number: place for place, (number, _) in enumerate(ranked)}
    bindings = tuple(made.bindings(places, every_loss=every_loss))
    totals = made.totals(domains, sum(any(each.dark for each in one.losses) for one in bindings))
    return SurvivalReport(
        provenance,
        fingerprint,
        settings,
        summary(settings, totals, domains),
        totals,
        domains,
        bindings,
        remedies=tuple(_remedy(each, places) for each in remedies),
        notes=(
            *_notes(found, made),
            *_of_pairs(domains, totals.clusters),
            *more_notes,
        ),
    )


def _remedy(found: FoundRemedy, places: Mapping[int, int]) -> LossRemedy:
    return LossRemedy(
        found.policy,
        found.effect,
        tuple(sorted({places[number] for number, _ in found.cured})),
        len({position for _, position in found.cured}),
        found.edits,
        found.apply,
        found.moves,
        found.starts,
        found.needs_owner,
        found.verified,
        found.flags,
    )


def _of_pairs(domains: Sequence[DomainLoss], clusters: int) -> Iterator[str]:
    pairs = [each for each in domains if each.kind == PAIR]
    if pairs:
        dark = sum(each.is_spof for each in pairs)
        yield (
            f"{dark:,} of {counted(len(pairs), 'pair')} of domains, of {math.comb(clusters, 2):,} possible ones of clusters, take "
            "a workload down that neither takes down alone; what is shown about pairs is what is new in that way"
        )


def _order(domain: DomainLoss) -> tuple[bool, int, int, int, int, int, str, str]:
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


class _Report:
    """A report in the making."""

    def __init__(self, losses: Losses, settings: LossSettings, is_reported: Selected) -> None:
        self._losses, self._settings = losses, settings
        self._reported = {place for place, each in losses.asked.items() if is_reported(each.stored)}
        self._clusters = {each.name: each for each in losses.side.snapshot}

    def domain(self, number: int, domain: FailureDomain) -> tuple[int, DomainLoss]:
        """Return the number of a domain, and what its loss does."""
        tallies = self._losses.tallies
        chosen = tallies[self._settings.loss][number]
        counts = self._counts(chosen)
        return number, DomainLoss(
            domain.kind,
            domain.name,
            domain.clusters,
            domain.partly,
            self._losses.done[number],
            counts.dark > 0,
            counts,
            self._counts(tallies[Loss.ITSELF][number]),
            self._times(domain, chosen),
            tuple(
                Overcommitted(name, demands)
                for name, demands in sorted(
                    chosen.overcommitted.items(),
                    key=lambda item: (-max(each.asked - (each.free or 0) for each in item[1]), item[0]),
                )
            ),
        )

    def _pairs(self, tally: LossTally) -> Iterator[Pair]:
        return (each for each in tally.pairs if each.position in self._reported)

    def _counts(self, tally: LossTally) -> LossCounts:
        counts = Counter({each.value: 0 for each in LossClass})
        dark = interrupted = missing = swept = moving = 0
        for pair in self._pairs(tally):
            found = pair.classified
            counts[found.effect.value] += 1
            dark += found.dark
            interrupted += found.interrupted
            missing += found.missing
            if found.effect is LossClass.SWEPT:
                swept += sum(each.replicas for each in found.starts)
            else:
                moving += sum(each.replicas for each in found.starts)
        counts[LossClass.UNTOUCHED.value] = len(self._reported) - counts.total()
        return LossCounts(dict(counts), dark, interrupted, missing, swept, moving)

    def _times(self, domain: FailureDomain, tally: LossTally) -> LossTimes | None:
        """Return the estimated times of evictions; None without any, or where clusters are deleted instead."""
        if self._settings.loss is Loss.DELETED:
            return None
        evicted = [self._losses.asked[each.position].binding for each in tally.pairs if each.found.is_evicted]
        if not evicted:
            return None
        modes = {self._clusters[name].sync_mode for name in domain.clusters}
        settings = self._settings
        noticed = max(settings.noticed_pull if mode == "Pull" else settings.noticed_push for mode in modes)
        taints = {
            taint
            for name in domain.clusters
            for taint in self._losses.inputs.taints.evicting(name, self._settings.loss)
        }
        delays = [eviction_delay(each, taints) for each in evicted]
        first = noticed + min(delays)
        queued = Counter(each.key.kind for each in evicted)
        each = 1 / settings.eviction_rate if settings.eviction_rate else _WITHOUT_RATE
        last = first + math.ceil(max(queued.values()) / WORKERS * each)
        return LossTimes(noticed, first, max(last, noticed + max(delays)))

    def bindings(self, places: dict[int, int], *, every_loss: bool) -> Iterator[BindingLosses]:
        """Yield the bindings to which a loss does something, in the order of the queue."""
        by_binding: dict[int, dict[tuple[object, ...], list[int]]] = {}
        kept: dict[tuple[object, ...], Pair] = {}
        for number, tally in enumerate(self._losses.tallies[self._settings.loss]):
            for pair in self._pairs(tally):
                found = pair.classified
                is_quiet = found.effect in _QUIET and not (found.dark or found.interrupted or found.missing)
                if is_quiet and not every_loss:
                    continue
                same = (pair.position, id(pair.found), pair.classified, pair.is_pending)
                kept[same] = pair
                by_binding.setdefault(pair.position, {}).setdefault(same, []).append(places[number])
        for position in sorted(by_binding):
            asked = self._losses.asked[position]
            spec, key = asked.binding.spec, asked.stored.key
            yield BindingLosses(
                key.kind,
                key.namespace,
                key.name,
                policy_of(asked.stored.annotations),
                spec.replicas,
                targets(spec.clusters),
                asked.drifts,
                tuple(
                    _binding_loss(kept[same], sorted(numbers))
                    for same, numbers in by_binding[position].items()
                ),
            )

    def totals(self, domains: Sequence[DomainLoss], dark: int) -> SurvivalTotals:
        """Return the numbers of the report."""
        every = self._losses.bindings
        deleting = sum(each.deleting for each in every)
        pending = sum(
            each.spec.placement is not None and not each.deleting and not each.spec.clusters for each in every
        )
        followers = sum(each.spec.placement is None and not each.deleting for each in every)
        return SurvivalTotals(
            len(self._reported),
            len(self._clusters),
            self._losses.emptied + pending,
            followers,
            deleting,
            len(domains),
            sum(each.is_spof and each.kind != PAIR for each in domains),
            dark,
        )

    def without_applied_placement(self) -> list[BindingKey]:
        """Return the bindings that are never evicted as they have no applied placement."""
        return [
            each.stored.key for each in self._losses.asked.values() if not each.stored.applied_placement_json
        ]


def _binding_loss(pair: Pair, numbers: Sequence[int]) -> BindingLoss:
    found, result = pair.found, pair.classified
    return BindingLoss(
        tuple(numbers),
        result.effect,
        result.dark,
        result.interrupted,
        result.missing,
        found.failed_by,
        found.message,
        pair.is_pending,
        targets(found.after),
    )


def _notes(found: FailureDomains, made: _Report) -> Iterator[str]:
    for kind, count in found.without.items():
        yield f"{counted(count, 'cluster')} without a value for {kind}, and so in no domain of that kind"
    spanning = sorted({name for each in found.domains for name in each.partly})
    if spanning:
        yield (
            f"{counted(len(spanning), 'cluster')} in several zones, lost with none of them (--spanning lost): "
            f"{_some(spanning)}"
        )
    alone = Counter(each.kind for each in found.domains if each.kind != CLUSTER and len(each.clusters) == 1)
    for kind, count in alone.items():
        one, many = f"{kind} has one cluster", f"{kind}s have one cluster"
        yield f"{counted(count, one, many)}: losing it is losing that cluster"
    if found.deleting:
        yield f"{counted(len(found.deleting), 'cluster is', 'clusters are')} being deleted already, and in no domain: {_some(found.deleting)}"
    unapplied = made.without_applied_placement()
    if unapplied:
        yield (
            f"{counted(len(unapplied), 'binding has', 'bindings have')} no applied placement, and the taint manager "
            f"evicts none such: {_some([str(each) for each in unapplied])}"
        )


def _some(names: Iterable[str], limit: int = 3) -> str:
    every = list(names)
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def summary(settings: LossSettings, totals: SurvivalTotals, domains: Sequence[DomainLoss]) -> str:
    """Return the first sentence: how many single points of failure, the worst, and what happens automatically."""
    if not domains:
        return "there is no failure domain of the kinds that were asked for, so nothing is lost."
    done = [each for each in domains if each.done and each.kind != PAIR]
    if not done:
        return f"none of {counted(len(domains), 'domain')} is done (--timeout), so nothing is known."
    if not totals.bindings:
        return "no binding is placed, so no loss takes anything down."
    parts = [_spofs(done), _worst(_smallest(done)), _itself(settings)]
    if left := sum(not each.done for each in domains):
        parts.append(f"{counted(left, 'domain is', 'domains are')} not done (--timeout).")
    return " ".join(each for each in parts if each)


def _spofs(domains: Sequence[DomainLoss]) -> str:
    every = Counter(each.kind for each in sorted(domains, key=lambda each: kind_order(each.kind)))
    spofs = Counter(each.kind for each in domains if each.is_spof)
    if not spofs:
        kinds = [*every]
        listed = f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else kinds[0]
        return f"no single {listed} takes a workload down."
    texts: list[str] = []
    for kind in every:
        if not spofs[kind]:
            continue
        of = f"{spofs[kind]:,} of {counted(every[kind], kind)}"
        is_one = spofs[kind] == 1
        what = "is a single point of failure" if is_one else "are single points of failure"
        texts.append(f"{of} {what if not texts else 'is' if is_one else 'are'}")
    return "; ".join(texts) + "."


def _smallest(domains: Sequence[DomainLoss]) -> DomainLoss:
    """Return the worst domain of the first kind that has a single point of failure: larger domains are worse of course."""
    firsts = {each.kind: each for each in reversed(domains)}
    ordered = sorted(firsts.values(), key=lambda each: kind_order(each.kind))
    return next((each for each in ordered if each.is_spof), ordered[0])


def _worst(worst: DomainLoss) -> str:
    found = worst.chosen
    if worst.is_spof:
        return f"Worst: {worst} ({counted(found.dark, 'workload')} dark, {counted(found.missing, 'replica')} missing)."
    if found.missing:
        return f"Tightest: {worst} ({counted(found.missing, 'replica')} missing)."
    if found.interrupted:
        return f"Worst: {worst} ({counted(found.interrupted, 'workload')} interrupted)."
    return "Nothing is missing, and nothing is interrupted."


def _itself(settings: LossSettings) -> str:
    assumed = " (defaults assumed)" if settings.defaults_assumed else ""
    if not settings.failover:
        why = f"Failover is off{assumed}"
    elif not settings.eviction:
        why = "eviction is off"
    elif settings.tainted_clusters == 0:
        why = "no ClusterTaintPolicy gives a cluster that is not ready a NoExecute taint"
    elif settings.tainted_clusters is None:
        why = "ClusterTaintPolicies are not known"
    else:
        why = ""
    text = (
        f"Whatever went now, NOTHING would be evicted by itself: {why}."
        if why
        else f"Evictions by itself: from {counted(settings.tainted_clusters or 0, 'cluster')}, by ClusterTaintPolicies."
    )
    if settings.loss is Loss.ITSELF:
        return text
    if settings.loss is Loss.GONE:
        return f"{text} The figures are those after an eviction ({settings.taint})."
    return f"{text} The figures are those after the clusters are deleted."
