"""The nearest existing name, value or taint for one that does not exist, and sentences about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.matching import NO_EXECUTE, Taint, Toleration

_LIKE: Final = 0.6
"""How much a value has to be like another one: ``gpu`` and ``gpus`` are, ``eu`` and ``us`` are not."""


def nearest(name: str, existing: Iterable[str], *, cutoff: float = 0.5) -> str:
    """Return the existing name that is most like a name; "" if none is like it.

    Args:
        name: The name.
        existing: The names that exist.
        cutoff: The least likeness, from 0 to 1.
    """
    by_folded = {other.lower(): other for other in sorted(existing, reverse=True)}
    found = get_close_matches(name.lower(), sorted(by_folded), n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else ""


def nearest_value(value: str, existing: Iterable[str]) -> str:
    """Return the existing value that is most like a value; "" if it exists, or none is like it."""
    values = set(existing)
    return "" if value in values else nearest(value, values, cutoff=_LIKE)


class LabelValue(NamedTuple):
    """A label."""

    key: str
    value: str

    def __str__(self) -> str:
        """Return ``key=value``."""
        return f"{self.key}={self.value}"


class FleetValues:
    """The names, labels, regions, zones and providers that clusters have, for those that a placement asks for.

    Attributes:
        clusters: The clusters.
        names: The names of the clusters.
        labels: Values by key.
        fields: Values of ``region``, ``zone`` and ``provider``.
        cluster: Returns the cluster whose name is most like a name; "" if none is.
        label: Returns the nearest label that a cluster has to a key and a value; None if one has this label, or none
            is like it.
    """

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        """Read them from all clusters."""
        self.clusters = list(clusters)
        self.names = {cluster.name for cluster in self.clusters}
        self.labels: dict[str, set[str]] = {}
        self.fields: dict[str, set[str]] = {"region": set(), "zone": set(), "provider": set()}
        for cluster in self.clusters:
            for key, value in cluster.labels.items():
                self.labels.setdefault(key, set()).add(value)
            self.fields["region"].add(cluster.region)
            self.fields["provider"].add(cluster.provider)
            self.fields["zone"].update(cluster.zones)
        for values in self.fields.values():
            values.discard("")
        self.cluster: Final = cache(partial(nearest, existing=self.names))
        self.label: Final = cache(partial(_nearest_label, self.labels))

    def label_key(self, key: str) -> str:
        """Return the nearest key of a label; "" if some cluster has the key, or none is like it."""
        return nearest_value(key, self.labels)

    def field(self, key: str, value: str) -> str:
        """Return the nearest region, zone or provider; "" if some cluster has it, or none is like it.

        Args:
            key: ``region``, ``zone`` or ``provider``.
            value: The value that is asked for.
        """
        return nearest_value(value, self.fields.get(key, ()))


def _nearest_label(labels: Mapping[str, set[str]], key: str, value: str) -> LabelValue | None:
    if key in labels:
        near = nearest_value(value, labels[key])
        return LabelValue(key, near) if near else None
    near_key = nearest_value(key, labels)
    values = labels.get(near_key, set())
    near = value if value in values else nearest_value(value, values)
    return LabelValue(near_key, near) if near else None


def near_toleration(taint: Taint, tolerations: Sequence[Toleration]) -> tuple[str, dict[str, Any]]:
    """Return the toleration that is nearly one of a taint, and the parts that differ; empty if none is.

    Args:
        taint: A taint that none of the tolerations tolerates.
        tolerations: Those of the placement.
    """
    for toleration in tolerations:
        if not may_mean(toleration.key, taint):
            continue
        pairs = {
            "key": (toleration.key, taint.key),
            "value": (taint.value if toleration.operator == "Exists" else toleration.value, taint.value),
            "effect": (toleration.effect or taint.effect, taint.effect),
        }
        differing = {name: has for name, (has, wanted) in pairs.items() if has != wanted}
        if differing:
            return shown_toleration(toleration.key, toleration.value, toleration.effect), differing
    return "", {}


def ending(taint: Taint, tolerations: Iterable[Toleration]) -> str:
    """Return that a taint is tolerated for a time only; "" if it is not tolerated, or for ever."""
    times = [
        toleration.toleration_seconds
        for toleration in tolerations
        if toleration.toleration_seconds is not None and toleration.tolerates(taint)
    ]
    if not times or taint.effect != NO_EXECUTE:
        return ""
    return (
        f"{taint} is tolerated for {min(times)} s only: where Karmada evicts, replicas leave again after it"
    )


def may_mean(key: str, taint: Taint) -> bool:
    """Return whether the key of a toleration is that of a taint, or nearly so."""
    return bool(key) and (key == taint.key or bool(nearest_value(key, [taint.key])))


def shown_toleration(key: str, value: str | None, effect: str | None) -> str:
    """Return a toleration as taints are written: ``key=value:Effect``."""
    return key + (f"={value}" if value else "") + (f":{effect}" if effect else "")


def unknown(shown: str, name: str, existing: Iterable[str]) -> str:
    """Return that something does not exist, and the existing name that is most like its own.

    Args:
        shown: What it is, with its name.
        name: Its name.
        existing: The names that exist.
    """
    near = nearest(name, existing)
    return f"{shown} does not exist" + (f". Nearest: {near}" if near else "")


def nearest_hint(name: str, existing: Iterable[str]) -> str:
    """Return the end of a message about a name that does not exist: the one that is most like it; "" if none is."""
    near = nearest(name, existing)
    return f"; nearest: {near}" if near else ""
