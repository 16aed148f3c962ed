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
from karmada_advisor.web.state import PageContents, PageState, Scope
from karmada_scheduler.api.binding import RESOURCE_BINDING, BindingKey
from karmada_scheduler.structs import IdentityStruct, Struct, field, replace

SOURCE: Final = "the Karmada API server"
"""Viewers do not learn its address."""
_KEPT: Final = 2
"""Parts are kept as long as they have together this many times the bindings of the fleet, and some."""
_OTHER_ROWS: Final = 100
"""A part without bindings counts as one with so many."""
_KEPT_ROWS: Final = 20_000
_AT_ONCE: Final = 200
"""Bindings that are indexed before others on the event loop get a turn."""


class _Part(Struct, frozen=True):
    """What a viewer may read.

    Attributes:
        stamp: Differs after each change of it.
        rows: Its rows by key, each with the row of the whole fleet that it was made for; none if they are the same.
    """

    stamp: Hashable
    state: PageState
    rows: dict[BindingKey, tuple[IndexedBinding, IndexedBinding]]


class ScopedFleets(IdentityStruct):
    """Makes the parts of a fleet; for use from the event loop."""

    _kept: OrderedDict[Scope, _Part] = field(default_factory=OrderedDict)

    async def state(self, whole: PageState, scope: Scope) -> PageState:
        """Return what a viewer may read of the objects."""
        index = whole.contents.index
        stamp = (whole.number, *map(index.stamp, sorted(scope.namespaces)))
        found = self._kept.get(scope)
        if found is None or found.stamp != stamp:
            found = self._kept[scope] = await _part_of(whole, scope, stamp, found)
            most = _KEPT_ROWS + _KEPT * len(index)
            while sum(_OTHER_ROWS + len(kept.state.contents.index) for kept in self._kept.values()) > most:
                self._kept.popitem(last=False)
        if scope in self._kept:
            self._kept.move_to_end(scope)
        return replace(found.state, read_at=whole.read_at)


async def _part_of(whole: PageState, scope: Scope, stamp: Hashable, before: _Part | None) -> _Part:
    contents, index = whole.contents, whole.contents.index
    found = [row for name in sorted(scope.namespaces) for row in index.of_namespace(name)]
    objects = _objects(contents, scope, found)
    facts = Facts(
        contents.facts.schedulers if scope.schedulers else Schedulers(),
        objects.manifests.get if scope.clusters else None,
        objects.policies,
        now=contents.facts.now,
    )
    is_alone = not (scope.clusters or scope.policies or scope.schedulers)  # then only bindings count
    if before is not None and not is_alone and before.state.number != whole.number:
        before = None
    rows: dict[BindingKey, tuple[IndexedBinding, IndexedBinding]] = {}
    if not scope.has_all_facts:
        known = {} if before is None else before.rows
        rows = await _indexed(found, known, contents.objects.manifests, facts)
        found = [row for _, row in rows.values()]
    part = PageContents(
        objects,
        facts,
        watched=BindingIndex(found),
        rendered_rows=OrderedDict() if before is None else before.state.contents.rendered_rows,
        shown_clusters=contents.shown_clusters if scope.clusters else {},
    )
    return _Part(stamp, PageState(whole.number, SOURCE, whole.read_at, part, scope=scope), rows)


async def _indexed(
    found: Sequence[IndexedBinding],
    known: Mapping[BindingKey, tuple[IndexedBinding, IndexedBinding]],
    manifests: Mapping[Any, Mapping[str, Any]],
    facts: Facts,
) -> dict[BindingKey, tuple[IndexedBinding, IndexedBinding]]:
    """Return rows by key with those of bindings as their states are with the facts of a viewer."""
    rows, count = {}, 0
    for whole in found:
        key = whole.key
        before, row = known.get(key, (None, whole))
        if before is not whole:
            row = indexed(whole.binding, manifests.get(key), facts)
            count += 1
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)
        rows[key] = whole, row
    return rows


def _objects(contents: PageContents, scope: Scope, rows: Sequence[IndexedBinding]) -> Fleet:
    """Return what those who decide read of a part. Each field is named here, so a new one is empty."""
    whole = contents.objects
    keys = [row.key for row in rows if row.key in whole.manifests]
    clusters = list(whole.clusters) if scope.clusters else []
    return Fleet(
        SOURCE,
        at=whole.at,
        clusters=clusters,
        bindings=[row.binding for row in rows if row.key in whole.manifests],
        manifests=_part(whole.manifests, (*(cluster.name for cluster in clusters), *keys)),
        policies=_policies(whole.policies, scope) if scope.policies else None,
        coverage=Coverage(refused={RESOURCE_BINDING: scope.unlisted} if scope.unlisted else {}),
        unreadable={key: text for key, text in whole.unreadable.items() if key.namespace in scope.namespaces},
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
    return [
        policy
        for policy in found
        if str(mapping(policy.get("metadata")).get("namespace") or "") in {*scope.namespaces, ""}
    ]
