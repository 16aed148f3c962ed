"""The clusters that pass a set of filters, in columns, and their available replicas as votes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.structs import Struct

TierScore = tuple[int, int]
"""Tier and score of a cluster: its place depends on them and on its available replicas."""


class FeasibleClusters(Struct, frozen=True):
    """The clusters that pass a set of filters, in the order of names, with tier and score.

    Attributes:
        rows: Cluster name to row.
        tier_scores: One per row.
        ranks: The rank of each row's tier and score, from 0, the best; None if all are the same.
        region_names: The names of the regions; the empty name means no region.
        regions: Per row the index of its region in ``region_names``.
    """

    clusters: Sequence[Cluster]
    rows: Mapping[str, int]
    tier_scores: Sequence[TierScore]
    ranks: Column | None
    region_names: Sequence[str]
    regions: Column


class Votes(Sequence[tuple[int, str]]):
    """Minus the available replicas and the name of each cluster, sorted."""

    def __init__(self, clusters: Sequence[Cluster], available: Column, order: Column) -> None:
        self._clusters, self._available, self._order = clusters, available, order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> tuple[int, str]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, str]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, str] | Sequence[tuple[int, str]]:
        if not isinstance(index, slice):
            row = self._order.item(index)
            return -self._available.item(row), self._clusters[row].name
        order = self._order[index]
        return [
            (-available, self._clusters[row].name)
            for row, available in zip(order.tolist(), self._available[order].tolist(), strict=True)
        ]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self[:])
