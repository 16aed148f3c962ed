"""Questions about many: clusters of a region, a zone or a provider, or with a label; and the bindings that a cluster does not have."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from karmada_advisor.explain.causes import causes_of_cluster
from karmada_advisor.explain.causes_state import of_state
from karmada_advisor.explain.inputs import Explaining
from karmada_advisor.explain.model import Cause, Provenance, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.whynot.model import VerifiedRemedy, WhyNot
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.names import FleetValues, nearest_hint, unknown
from karmada_scheduler.structs import Struct

_MAX_SEARCHED: Final = 8
"""Clusters for which changes are searched: more would leave too little of the time for each."""


class CauseGroup(Struct, frozen=True):
    """The bindings that a cluster does not have for one cause, or the clusters that do not have a binding.

    Attributes:
        text: The cause of the first of them, in one sentence.
        names: All of them, in the order of the files.
    """

    code: str
    stage: Stage
    text: str
    count: int
    names: tuple[str, ...]


class WhyNotCluster(Struct, frozen=True):
    """Which bindings a cluster does not have, and why.

    Attributes:
        bindings: All bindings.
        present: Bindings that are on the cluster, and stay there.
        at_once: Those that get it at the next decision, which something asks for already.
        after_rebalance: Those that would get it from a WorkloadRebalancer; they are in ``groups`` as well.
        groups: The others by primary cause, the largest first.
        not_looked_at: Bindings for which there was no time.
    """

    cluster: str
    provenance: Provenance
    bindings: int
    present: int
    at_once: int
    after_rebalance: int
    not_looked_at: int
    groups: tuple[CauseGroup, ...]


def why_not_cluster(using: Explaining, cluster: str, provenance: Provenance, seconds: float) -> WhyNotCluster:
    """Return the answer; bindings are looked at until the time is over.

    Args:
        using: What was read, and the rules.
        cluster: The name of a known cluster.
        provenance: Where the objects come from.
        seconds: The time.
    """
    using.show(using.snapshot)
    bindings, end = using.fleet.bindings, time.monotonic() + seconds
    present = at_once = after_rebalance = looked_at = 0
    causes: list[tuple[str, Cause]] = []
    for binding in bindings:
        if time.monotonic() >= end:
            break
        looked_at += 1
        situation = Situation(using.inputs_of(binding))
        is_present = cluster in situation.present
        stored = None if is_present else next(of_state(situation), None)
        if cluster in situation.placement and stored is None:
            present, at_once = present + is_present, at_once + (not is_present)
            continue
        primary = stored or next(iter(causes_of_cluster(situation, cluster)), None)
        if primary is None:
            continue
        causes.append((str(binding.key), primary))
        if primary.stage is Stage.TRIGGER and situation.is_decided:
            after_rebalance += cluster in (situation.rebalanced.placement or {})
    total, left = len(bindings), len(bindings) - looked_at
    return WhyNotCluster(cluster, provenance, total, present, at_once, after_rebalance, left, grouped(causes))


def grouped(causes: Iterable[tuple[str, Cause]]) -> tuple[CauseGroup, ...]:
    """Return names by the cause of each, the largest group first."""
    groups: dict[tuple[str, Stage], list[tuple[str, str]]] = {}
    for name, cause in causes:
        groups.setdefault((cause.code, cause.stage), []).append((name, cause.text))
    found = []
    for (code, stage), members in groups.items():
        names, text = tuple(name for name, _ in members), members[0][1]
        found.append(CauseGroup(code, stage, text, len(members), names))
    return tuple(sorted(found, key=lambda group: (-group.count, group.code)))


class WhyNotClusters(Struct, frozen=True):
    """Why clusters that have something in common have no replicas of a binding.

    Attributes:
        where: What they have in common, for example ``region=eu-west``.
        clusters: Their names.
        present: Those that are in the stored placement.
        at_once: The others that get replicas at the next decision.
        groups: Those that have none after the next decision, by primary cause, the largest group first.
        searched: Clusters for which changes were searched.
        answer: The answer about the cluster that needs the least of them; about one that has replicas, if one has.
    """

    where: str
    clusters: tuple[str, ...]
    present: tuple[str, ...]
    at_once: tuple[str, ...]
    groups: tuple[CauseGroup, ...]
    searched: int
    answer: WhyNot


def clusters_with(where: str, clusters: Sequence[Cluster], name: str) -> list[str]:
    """Return the names of the clusters that have ``region=VALUE``, ``zone=...``, ``provider=...``, or a label.

    Args:
        where: What they have.
        clusters: All clusters.
        name: The binding, for errors.

    Raises:
        NoAnswerError: No cluster has it.
    """
    if found := [cluster.name for cluster in clusters if where in values_of([cluster])]:
        return found
    values, (key, is_value, _) = values_of(clusters), where.partition("=")
    if is_value:
        alike = [value for value in values if value.startswith(f"{key}=")]
        raise NoAnswerError(f"no cluster has {where}{nearest_hint(where, alike or values)}")
    for kind in ("region", "zone", "provider"):
        if f"{kind}={where}" in values:
            hint = f"{where} is a {kind}: why-not {name} {kind}={where}"
            raise NoAnswerError(f"cluster {where} does not exist. {hint}")
    raise NoAnswerError(unknown(f"cluster {where}", where, [cluster.name for cluster in clusters]))


def values_of(clusters: Iterable[Cluster]) -> list[str]:
    """Return what clusters may be asked for by, as ``key=value``; fields come before labels, and hide those of their names."""
    found = FleetValues(clusters)
    return [f"{key}={value}" for key, values in {**found.labels, **found.fields}.items() for value in values]


def answer_clusters(
    where: str,
    causes: Mapping[str, Cause | None],
    stored: Collection[str],
    ask: Callable[[str, float], WhyNot],
    seconds: float,
) -> WhyNotClusters:
    """Return the answer; changes are searched for a few clusters, of each cause in turn.

    Args:
        where: What the clusters have in common.
        causes: The primary cause by cluster; None for those that have replicas after the next decision.
        stored: The clusters of the stored placement.
        ask: Returns the answer about one cluster, from a search of some seconds.
        seconds: The time for all searches.
    """
    end = time.monotonic() + seconds
    groups = grouped((name, cause) for name, cause in causes.items() if cause is not None)
    turns = zip_longest(*(group.names for group in groups))
    chosen = [name for turn in turns for name in turn if name is not None][:_MAX_SEARCHED]
    having = sorted(
        (name for name, cause in causes.items() if cause is None), key=lambda name: name not in stored
    )
    chosen = having[:1] or chosen
    answers = [
        ask(name, max(0.0, end - time.monotonic()) / (len(chosen) - index))
        for index, name in enumerate(chosen)
    ]
    return WhyNotClusters(
        where,
        clusters=tuple(causes),
        present=tuple(name for name in causes if name in stored),
        at_once=tuple(name for name in having if name not in stored),
        groups=groups,
        searched=0 if having else len(answers),
        answer=min(answers, key=lambda found: min(map(_need, found.remedies), default=(2,))),
    )


def _need(remedy: VerifiedRemedy) -> tuple[int, ...]:
    """Return the rank of a remedy, the least first; an answer without one comes after all (``2``)."""
    return (not remedy.uses_cluster, remedy.harm.degree, len(remedy.edits), remedy.moves)
