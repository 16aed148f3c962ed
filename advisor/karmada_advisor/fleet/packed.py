"""Manifests in little memory: bindings are kept compressed, because a page shows few of many."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, Self

import orjson

from karmada_scheduler.api.binding import BindingKey

Manifest = Mapping[str, Any]

_FASTEST: Final = 1
"""The level of zlib: 5.5 kB become 1 kB in 40 microseconds."""


class PackedManifests(MutableMapping[str | BindingKey, Manifest]):
    """Clusters by name, as they are, and bindings by key, compressed. They must be JSON."""

    def __init__(
        self,
        clusters: Mapping[str, Manifest] | None = None,
        bindings: Mapping[BindingKey, bytes] | None = None,
    ) -> None:
        """Start with what another one has; empty without arguments."""
        self._clusters = dict(clusters or {})
        self._bindings = dict(bindings or {})

    def copy(self) -> Self:
        """Return the same manifests, which later changes of this do not change."""
        return type(self)(self._clusters, self._bindings)

    def only(self, keys: Iterable[str | BindingKey]) -> Self:
        """Return the manifests of some keys, as they are kept."""
        chosen = list(keys)
        return type(self)(
            {key: self._clusters[key] for key in chosen if isinstance(key, str)},
            {key: self._bindings[key] for key in chosen if not isinstance(key, str)},
        )

    def __getitem__(self, key: str | BindingKey) -> Manifest:
        if isinstance(key, str):
            return self._clusters[key]
        found: Manifest = orjson.loads(zlib.decompress(self._bindings[key]))
        return found

    def __setitem__(self, key: str | BindingKey, manifest: Manifest) -> None:
        if isinstance(key, str):
            self._clusters[key] = manifest
        else:
            self._bindings[key] = zlib.compress(orjson.dumps(manifest), _FASTEST)

    def __delitem__(self, key: str | BindingKey) -> None:
        if isinstance(key, str):
            del self._clusters[key]
        else:
            del self._bindings[key]

    def __iter__(self) -> Iterator[str | BindingKey]:
        yield from self._clusters
        yield from self._bindings

    def __len__(self) -> int:
        return len(self._clusters) + len(self._bindings)

    def __contains__(self, key: object) -> bool:
        return key in self._clusters or key in self._bindings
