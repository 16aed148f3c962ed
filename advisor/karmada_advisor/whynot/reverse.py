"""The reverse question: which bindings does a cluster not have, grouped by the primary cause."""

from __future__ import annotations

import time
from collections.abc import Iterable

from karmada_advisor.explain.causes import causes_of_cluster
from karmada_advisor.explain.causes_state import of_state
from karmada_advisor.explain.explaining import Explaining
from karmada_advisor.explain.model import Cause, Provenance, Stage
from karmada_advisor.explain.situation import Situation
from karmada_scheduler.structs import Struct


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
