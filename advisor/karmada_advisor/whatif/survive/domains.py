"""The failure domains of a fleet: sets of clusters that are lost together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from karmada_advisor.state.stored import value_at
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.structs import Struct, replace

CLUSTER: Final = "cluster"
ZONE: Final = "zone"
REGION: Final = "region"
PROVIDER: Final = "provider"
LABEL: Final = "label="
PAIR: Final = "pair"
"""Two domains that are lost at once, ``A+B``."""
KINDS: Final = (CLUSTER, ZONE, REGION, PROVIDER)
"""The kinds without ``label=KEY``, in the order of a report."""


def kind_order(kind: str) -> tuple[int, str]:
    """Return the key by which kinds are ordered: those of ``KINDS`` first, the smallest domains before larger ones."""
    return (KINDS.index(kind), "") if kind in KINDS else (len(KINDS), kind)


class FailureDomain(Struct, frozen=True):
    """Clusters that are lost together.

    Attributes:
        kind: One of ``KINDS``, or ``label=KEY``.
        name: Of the cluster, zone, region or provider, or the value of the label.
        clusters: The names of the clusters, sorted.
        partly: Clusters in this and other zones, which are not lost with it, sorted.
    """

    kind: str
    name: str
    clusters: tuple[str, ...]
    partly: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class FailureDomains(Struct, frozen=True):
    """The domains that were asked for, and the clusters that are in none of a kind.

    Attributes:
        domains: By kind, in the order that was asked for, then by name.
        without: By kind, the number of clusters that have no value for it; kinds without such clusters are left out.
        deleting: Clusters that are being deleted: their loss is under way, so they are in no domain.
        spanning: Clusters in several zones, which are lost with none of them.
    """

    domains: tuple[FailureDomain, ...]
    without: Mapping[str, int]
    deleting: tuple[str, ...]
    spanning: tuple[str, ...] = ()


def joined_twice(manifests: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Return the Clusters that are one member cluster, by the name of each: they have the same id or address."""
    sharing: dict[tuple[str, str], set[str]] = {}
    for manifest in manifests:
        name = str(value_at(manifest, "metadata", "name"))
        for field in ("id", "apiEndpoint"):
            if value := value_at(manifest, "spec", field):
                sharing.setdefault((field, str(value)), set()).add(name)
    found: dict[str, frozenset[str]] = {}
    for names in sharing.values():
        if len(names) > 1:
            together = names.union(*(found.get(name, ()) for name in names))
            found |= dict.fromkeys(together, frozenset(together))
    return found


def failure_domains(
    clusters: Iterable[Cluster],
    kinds: Sequence[str] = (),
    *,
    spanning_is_lost: bool = False,
    same: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> FailureDomains:
    """Return the failure domains of some kinds.

    Args:
        clusters: All clusters.
        kinds: Of ``KINDS``, or ``label=KEY``; empty for ``cluster``, and of the others those with at least two values.
        spanning_is_lost: Whether a cluster in several zones is lost with each of them; otherwise with none.
        same: Clusters that are lost with another one, whatever their values are: those of ``joined_twice``.
    """
    every = sorted(clusters, key=lambda each: each.name)
    present = [cluster for cluster in every if not cluster.deleting]
    found: list[FailureDomain] = []
    without: dict[str, int] = {}
    spanning: list[str] = []
    for kind in dict.fromkeys(kinds or KINDS):
        values = {cluster.name: _values(cluster, kind) for cluster in present}
        domains = _together(_of_kind(kind, values, spanning_is_lost=spanning_is_lost), present, same)
        if not kinds and kind != CLUSTER and len(domains) < 2:
            continue
        found += domains
        if not spanning_is_lost:
            spanning += [name for name, known in values.items() if len(known) > 1]
        if missing := sum(not value for value in values.values()):
            without[kind] = missing
    deleting = tuple(cluster.name for cluster in every if cluster.deleting)
    return FailureDomains(tuple(found), without, deleting, tuple(spanning))


def _together(
    domains: Iterable[FailureDomain], present: Iterable[Cluster], same: Mapping[str, frozenset[str]]
) -> list[FailureDomain]:
    """Return domains with the clusters that are lost with theirs; of equal clusters only the first."""
    names, found = {cluster.name for cluster in present}, dict[tuple[str, ...], FailureDomain]()
    for domain in domains:
        lost = {*domain.clusters}.union(*(same.get(name, ()) for name in domain.clusters)) & names
        clusters = tuple(sorted(lost))
        key = clusters if domain.kind == CLUSTER else (domain.name,)
        found.setdefault(key, replace(domain, clusters=clusters))
    return [*found.values()]


def _values(cluster: Cluster, kind: str) -> tuple[str, ...]:
    if kind == CLUSTER:
        return (cluster.name,)
    if kind == ZONE:
        return tuple(dict.fromkeys(zone for zone in cluster.zones if zone))
    if kind in {REGION, PROVIDER}:
        value = cluster.region if kind == REGION else cluster.provider
    else:
        value = cluster.labels.get(kind.removeprefix(LABEL), "")
    return (value,) if value else ()


def _of_kind(
    kind: str, values: Mapping[str, tuple[str, ...]], *, spanning_is_lost: bool
) -> Iterable[FailureDomain]:
    members: dict[str, list[str]] = {}
    partly: dict[str, list[str]] = {}
    for name, given in values.items():
        for value in given:
            into = members if len(given) == 1 or spanning_is_lost else partly
            into.setdefault(value, []).append(name)
    for value in sorted({*members, *partly}):
        if value in members:
            yield FailureDomain(kind, value, tuple(members[value]), tuple(partly.get(value, ())))
