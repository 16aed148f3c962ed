"""Sentences for people below the report: about domains, pairs of them, and bindings that are never evicted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from karmada_advisor.explain.amounts import counted
from karmada_advisor.survive.domains import CLUSTER, PAIR, FailureDomains
from karmada_advisor.survive.model import DomainLoss
from karmada_scheduler.api.binding import BindingKey


def notes_of_domains(found: FailureDomains, unapplied: Sequence[BindingKey]) -> Iterator[str]:
    """Yield what to know about the domains, and which bindings are never evicted.

    Args:
        found: The domains.
        unapplied: The bindings without an applied placement.
    """
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
    if unapplied:
        yield (
            f"{counted(len(unapplied), 'binding has', 'bindings have')} no applied placement, and the taint manager "
            f"evicts none such: {_some([str(each) for each in unapplied])}"
        )


def notes_of_pairs(domains: Sequence[DomainLoss], clusters: int) -> Iterator[str]:
    """Yield how many pairs of domains there are of those of so many clusters."""
    pairs = [each for each in domains if each.kind == PAIR]
    if pairs:
        dark = sum(each.is_spof for each in pairs)
        yield (
            f"{dark:,} of {counted(len(pairs), 'pair')} of domains, of {math.comb(clusters, 2):,} possible ones of clusters, take "
            "a workload down that neither takes down alone; what is shown about pairs is what is new in that way"
        )


def _some(names: Iterable[str], limit: int = 3) -> str:
    every = list(names)
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more
