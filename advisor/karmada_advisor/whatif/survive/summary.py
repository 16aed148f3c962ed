"""The sentences of a report: the first one, and the notes below it.

The first one says how many single points of failure there are, which is the worst, and what happens automatically.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from karmada_advisor.explain.amounts import counted, first_names
from karmada_advisor.whatif.survive.classify import PresentOn
from karmada_advisor.whatif.survive.domains import CLUSTER, PAIR, FailureDomains, kind_order
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import DomainLoss, LossSettings, SurvivalTotals
from karmada_scheduler.api.binding import BindingKey


def summary(settings: LossSettings, totals: SurvivalTotals, domains: Sequence[DomainLoss]) -> str:
    """Return the sentence; without a domain that is done, it says why nothing is known."""
    done = [domain for domain in domains if domain.done and domain.kind != PAIR]
    if not done:
        return f"none of {counted(len(domains), 'domain')} is done (--timeout), so nothing is known."
    if not totals.bindings:
        return "no binding that was asked about is placed, so no loss takes one down."
    parts = [_spofs(done), _worst(_smallest(done)), _itself(settings)]
    if totals.not_judged:
        parts.insert(2, f"{counted(totals.not_judged, 'binding is', 'bindings are')} not judged.")
    if left := sum(not domain.done for domain in domains):
        parts.append(f"{counted(left, 'domain is', 'domains are')} not done (--timeout).")
    return " ".join(part for part in parts if part)


def _spofs(domains: Sequence[DomainLoss]) -> str:
    every = Counter(domain.kind for domain in sorted(domains, key=lambda each: kind_order(each.kind)))
    spofs = Counter(domain.kind for domain in domains if domain.is_spof)
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
    """Return the worst domain of the smallest kind that has the worst of all effects: larger domains are worse of course."""
    firsts = {domain.kind: domain for domain in reversed(domains)}
    ordered = sorted(firsts.values(), key=lambda each: kind_order(each.kind))
    return min(
        ordered,
        key=lambda each: (not each.is_spof, not each.chosen.missing, not each.chosen.interrupted),
    )


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
    else:
        why = ""
    if why:
        text = f"Whatever went now, NOTHING would be evicted by itself: {why}."
    elif settings.tainted_clusters is None:
        text = "What would be evicted by itself is not known: ClusterTaintPolicies were not read (--taint-policies)."
    else:
        text = f"Evictions by itself: from {counted(settings.tainted_clusters, 'cluster')}, by ClusterTaintPolicies."
    if settings.loss is Loss.ITSELF:
        return text
    if settings.loss is Loss.GONE:
        return f"{text} The figures are those after an eviction ({settings.taint})."
    return f"{text} The figures are those after the clusters are deleted."


def notes_of_domains(found: FailureDomains, unapplied: Sequence[BindingKey]) -> Iterator[str]:
    """Yield what to know about the domains, and which bindings are never evicted.

    Args:
        found: The domains.
        unapplied: The bindings without an applied placement.
    """
    for kind, count in found.without.items():
        yield f"{counted(count, 'cluster')} without a value for {kind}, and so in no domain of that kind"
    if found.spanning:
        yield (
            f"{counted(len(found.spanning), 'cluster')} in several zones, lost with none of them (--spanning lost): "
            f"{first_names(found.spanning, 3)}"
        )
    alone = Counter(each.kind for each in found.domains if each.kind != CLUSTER and len(each.clusters) == 1)
    for kind, count in alone.items():
        one, many = f"{kind} has one cluster", f"{kind}s have one cluster"
        yield f"{counted(count, one, many)}: losing it is losing that cluster"
    if found.deleting:
        clusters = counted(len(found.deleting), "cluster is", "clusters are")
        yield f"{clusters} being deleted already, and in no domain: {first_names(found.deleting, 3)}"
    if unapplied:
        yield (
            f"{counted(len(unapplied), 'binding has', 'bindings have')} no applied placement, and the taint manager "
            f"evicts none such: {first_names([str(key) for key in unapplied], 3)}"
        )


def notes_of_same(same: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield which Clusters are one member cluster."""
    for names in dict.fromkeys(same.values()):
        yield f"{' and '.join(sorted(names))} are one cluster that joined twice (same spec.id or apiEndpoint), lost together"


def notes_of_present(
    out_of_service: Mapping[str, str], present: Mapping[BindingKey, PresentOn]
) -> Iterator[str]:
    """Yield where nothing starts, and of which bindings less runs than is assigned, or is not dispatched."""
    found = [f"{name} is {state}" for name, state in out_of_service.items()]
    found += [
        f"{key} runs less than is assigned, or its dispatching is suspended"
        for key, exceptions in present.items()
        if exceptions.keys() - out_of_service.keys()
    ]
    if found:
        yield f"only what runs, or can start, counts: {first_names(found, 3)}"


def notes_of_others(clusters: Mapping[BindingKey, Sequence[str]]) -> Iterator[str]:
    """Yield which copies are in no class: by binding the clusters on which others require it, or its old copies run."""
    found = [f"{key} on {', '.join(names)}" for key, names in clusters.items() if names]
    if found:
        what = "copies that follow other bindings, or run until an eviction ends"
        yield f"not judged: {what}: {first_names(found, 3)}"


def notes_of_pairs(domains: Sequence[DomainLoss], clusters: int) -> Iterator[str]:
    """Yield how many pairs of domains there are of those of so many clusters."""
    pairs = [domain for domain in domains if domain.kind == PAIR]
    if pairs:
        dark = sum(pair.is_spof for pair in pairs)
        yield (
            f"{dark:,} of {counted(len(pairs), 'pair')} of domains, of {math.comb(clusters, 2):,} possible ones of clusters, take "
            "a workload down that neither takes down alone; what is shown about pairs is what is new in that way"
        )
