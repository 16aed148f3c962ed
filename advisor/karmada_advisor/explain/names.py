"""The nearest existing name or value for one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, NamedTuple

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import ClusterAffinity, Placement

_LIKE: Final = 0.6
"""How much a value has to be like another one: ``gpu`` and ``gpus`` are, ``eu`` and ``us`` are not."""


def nearest(name: str, existing: Iterable[str], *, cutoff: float = 0.5) -> str:
    """Return the existing name that is most like a name; "" if none is like it.

    Args:
        name: The name.
        existing: The names that exist.
        cutoff: The least likeness, from 0 to 1.
    """
    by_folded = {each.lower(): each for each in sorted(existing, reverse=True)}
    found = get_close_matches(name.lower(), sorted(by_folded), n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else ""


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
    """The labels, regions, zones and providers that clusters have, for those that a placement asks for.

    Attributes:
        labels: Values by key.
        fields: Values of ``region``, ``zone`` and ``provider``.
    """

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        """Read them from all clusters."""
        self.labels: dict[str, set[str]] = {}
        self.fields: dict[str, set[str]] = {"region": set(), "zone": set(), "provider": set()}
        for each in clusters:
            for key, value in each.labels.items():
                self.labels.setdefault(key, set()).add(value)
            self.fields["region"].add(each.region)
            self.fields["provider"].add(each.provider)
            self.fields["zone"].update(each.zones)
        for values in self.fields.values():
            values.discard("")
        self._nearest: dict[tuple[str, str], LabelValue | None] = {}

    def has_label(self, key: str, value: str) -> bool:
        """Return whether some cluster has a label."""
        return value in self.labels.get(key, ())

    def has_label_key(self, key: str) -> bool:
        """Return whether some cluster has a label with a key."""
        return key in self.labels

    def has_field(self, key: str, value: str) -> bool:
        """Return whether some cluster is in a region or zone, or of a provider."""
        return value in self.fields.get(key, ())

    def label(self, key: str, value: str) -> LabelValue | None:
        """Return the nearest label that a cluster has; None if one has this label, or none is like it."""
        if (key, value) not in self._nearest:
            self._nearest[key, value] = self._nearest_label(key, value)
        return self._nearest[key, value]

    def _nearest_label(self, key: str, value: str) -> LabelValue | None:
        if key in self.labels:
            near = nearest_value(value, self.labels[key])
            return LabelValue(key, near) if near else None
        near_key = self.label_key(key)
        values = self.labels.get(near_key, set())
        near = value if value in values else nearest_value(value, values)
        return LabelValue(near_key, near) if near else None

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


def affinities_of(placement: Placement) -> list[ClusterAffinity]:
    """Return the affinities of a placement: the single one, or those of all terms with their overflow."""
    found = [placement.cluster_affinity] if placement.cluster_affinity is not None else []
    for term in placement.cluster_affinities:
        found += [term.affinity, *(each.affinity for each in term.overflow_affinities)]
    return found
