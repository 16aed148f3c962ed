"""Manifests in little memory: bindings are kept compressed, because a page shows few of many."""

from __future__ import annotations

import zlib
from collections import UserDict
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

import orjson

from karmada_scheduler.api.binding import BindingKey

Manifest = Mapping[str, Any]

_FASTEST: Final = 1
"""The level of zlib: 5.5 kB become 1 kB in 40 microseconds."""


class PackedManifests(UserDict[str | BindingKey, Manifest]):
    """Clusters by name, as they are, and bindings by key, compressed. They must be JSON."""

    data: dict[Any, Any]

    def copy(self) -> Self:
        """Return the same manifests, which later changes of this do not change."""
        return self.only(list(self.data))

    def only(self, keys: Iterable[str | BindingKey]) -> Self:
        """Return the manifests of some keys, as they are kept."""
        made = type(self)()
        made.data = {key: self.data[key] for key in keys}
        return made

    def __getitem__(self, key: str | BindingKey) -> Manifest:
        found = self.data[key]
        manifest: Manifest = found if isinstance(key, str) else orjson.loads(zlib.decompress(found))
        return manifest

    def __setitem__(self, key: str | BindingKey, manifest: Manifest) -> None:
        is_cluster = isinstance(key, str)
        self.data[key] = manifest if is_cluster else zlib.compress(orjson.dumps(manifest), _FASTEST)
