"""The part of a fleet from which answers to a viewer are computed.

It is made of what they may read, and of nothing else, so nothing has to be taken out of an answer. What was not read is not judged.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final

from karmada_advisor.fleet.fleet import Coverage, Fleet
from karmada_advisor.fleet.packed import PackedManifests
from karmada_advisor.state.reading import Facts
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.state.stored import mapping
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.indexed_binding import IndexedBinding, indexed
from karmada_advisor.web.scope import Scope
from karmada_advisor.web.state import PageContents, PageState
from karmada_scheduler.api.binding import RESOURCE_BINDING, BindingKey
from karmada_scheduler.structs import Struct, field, replace

SOURCE: Final = "the Karmada API server"
"""Viewers do not learn its address."""
_KEPT: Final = 2
"""Parts are kept as long as they have together this many times the bindings of the fleet, and some."""
_OTHER_ROWS: Final = 100
"""A part without bindings counts as one with so many."""
_KEPT_ROWS: Final = 20_000
_AT_ONCE: Final = 200
"""Bindings that are indexed before others on the event loop get a turn."""


class _Rows(Struct):
    """Rows of bindings with the same facts besides them: each with the row of the whole fleet that it was made for."""

    number: int
    by_key: dict[BindingKey, tuple[IndexedBinding, IndexedBinding]] = field(default_factory=dict)
    rendered: OrderedDict[tuple[object, ...], str] = field(default_factory=OrderedDict)


class ScopedFleets:
    """Makes the parts of a fleet; for use from the event loop."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: OrderedDict[Scope, tuple[Hashable, PageState]] = OrderedDict()
        self._rows: OrderedDict[Scope | None, _Rows] = OrderedDict()

    async def state(self, whole: PageState, scope: Scope) -> PageState:
        """Return what a viewer may read of the objects."""
        index = whole.contents.index
        names = (*scope.namespaces, "") if scope.cluster_bindings else tuple(scope.namespaces)
        stamp = (whole.number, *map(index.stamp, names))
        stamped, found = self._kept.get(scope, (None, whole))
        most = _most(whole)
        if stamped != stamp:
            found = PageState(
                whole.number, SOURCE, whole.read_at, await self._contents(whole, scope), scope=scope
            )
            self._kept[scope] = stamp, found
            while sum(_OTHER_ROWS + len(kept.contents.index) for _, kept in self._kept.values()) > most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(scope)
        return replace(found, read_at=whole.read_at)

    async def _contents(self, whole: PageState, scope: Scope) -> PageContents:
        contents, index = whole.contents, whole.contents.index
        names = (*sorted(scope.namespaces), "") if scope.cluster_bindings else sorted(scope.namespaces)
        found = [row for name in names for row in index.of_namespace(name)]
        objects = _objects(contents, scope, found)
        facts = Facts(
            contents.facts.schedulers if scope.schedulers else Schedulers(),
            objects.manifests.get if scope.clusters else None,
            objects.policies,
            now=contents.facts.now,
        )
        rows = self._rows_of(whole, scope)
        if not scope.has_all_facts:
            found = await _indexed(found, rows, contents.manifests, facts)
        return PageContents(
            contents.clusters if scope.clusters else (),
            objects.bindings,
            objects,
            facts,
            objects.manifests,
            watched=BindingIndex(found),
            rendered_rows=rows.rendered,
            shown_clusters=contents.shown_clusters if scope.clusters else {},
        )

    def _rows_of(self, whole: PageState, scope: Scope) -> _Rows:
        """Return the rows that were made for the same facts."""
        is_alone = not (scope.clusters or scope.policies or scope.schedulers)  # then only bindings count
        key, number = (None, 0) if is_alone else (scope, whole.number)
        rows = self._rows.get(key)
        if rows is None or rows.number != number or len(rows.by_key) > 2 * len(whole.contents.index):
            rows = self._rows[key] = _Rows(number)
        self._rows.move_to_end(key)
        while sum(_OTHER_ROWS + len(kept.by_key) for kept in self._rows.values()) > _most(whole):
            self._rows.popitem(last=False)
        return rows


def _most(whole: PageState) -> int:
    return _KEPT_ROWS + _KEPT * len(whole.contents.index)


async def _indexed(
    found: Sequence[IndexedBinding],
    rows: _Rows,
    manifests: Mapping[Any, Mapping[str, Any]],
    facts: Facts,
) -> list[IndexedBinding]:
    """Return the rows of bindings as their states are with the facts of a viewer."""
    made, count = [], 0
    for whole in found:
        known, row = rows.by_key.get(whole.key, (None, whole))
        if known is not whole:
            row = indexed(whole.binding, manifests.get(whole.key), facts)
            rows.by_key[whole.key] = whole, row
            count += 1
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)
        made.append(row)
    return made


def _objects(contents: PageContents, scope: Scope, rows: Sequence[IndexedBinding]) -> Fleet:
    """Return what those who decide read of a part. Each field is named here, so a new one is empty."""
    whole: Fleet = contents.objects
    keys = [row.key for row in rows if row.key in contents.manifests]
    names = [cluster.name for cluster in contents.clusters] if scope.clusters else []
    return Fleet(
        SOURCE,
        at=whole.at,
        clusters=list(contents.clusters) if scope.clusters else [],
        bindings=[row.binding for row in rows if row.key in contents.manifests],
        manifests=_part(contents.manifests, (*names, *keys)),
        policies=_policies(whole.policies, scope) if scope.policies else None,
        coverage=Coverage(refused={RESOURCE_BINDING: scope.unlisted} if scope.unlisted else {}),
        leases=whole.leases if scope.schedulers else None,
        no_leases=whole.no_leases if scope.schedulers else "",
        seen=whole.seen if scope.schedulers else (),
    )


def _part(
    manifests: Mapping[Any, Mapping[str, Any]], keys: Iterable[str | BindingKey]
) -> MutableMapping[str | BindingKey, Mapping[str, Any]]:
    if isinstance(manifests, PackedManifests):
        return manifests.only(keys)
    return {key: manifests[key] for key in keys}


def _policies(found: Sequence[Mapping[str, Any]] | None, scope: Scope) -> list[Mapping[str, Any]] | None:
    """Return the policies that may concern bindings of the part; None if none are known."""
    if found is None:
        return None
    if scope.is_trusted:
        return list(found)
    namespaces = {*scope.namespaces, ""}
    return [
        policy
        for policy in found
        if str(mapping(policy.get("metadata")).get("namespace") or "") in namespaces
    ]
