"""The objects that a page shows, as they were read at one time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.web.bindings import BindingRow, row_of


@dataclass(frozen=True)
class State:
    """Clusters and bindings at one time; a newer reading is another object.

    Attributes:
        number: Grows with every reading that differs from the one before.
        source: For people: "files", or the URL of the API server.
        read_at: When the objects were read last; a later reading without a difference moves it.
        problems: What could not be read, one line each.
        objects: What the commands read, for those who compute answers.
    """

    number: int
    source: str
    read_at: datetime
    clusters: Sequence[Cluster]
    bindings: Sequence[Binding]
    problems: Sequence[str] = ()
    objects: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def cluster_by_name(self) -> Mapping[str, Cluster]:
        """The clusters by name."""
        return {each.name: each for each in self.clusters}

    @cached_property
    def binding_by_key(self) -> Mapping[BindingKey, Binding]:
        """The bindings by key."""
        return {each.key: each for each in self.bindings}

    @cached_property
    def rows(self) -> Sequence[BindingRow]:
        """The bindings as rows."""
        return [row_of(each) for each in self.bindings]

    @cached_property
    def on_cluster(self) -> Mapping[str, Sequence[Binding]]:
        """The bindings that are on each cluster, in the order in which they were read."""
        found: dict[str, list[Binding]] = {}
        for binding in self.bindings:
            for target in binding.spec.clusters:
                found.setdefault(target.name, []).append(binding)
        return found
