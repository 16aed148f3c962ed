"""Manifests in little memory: bindings are kept compressed, because a page shows few of many.

Their managed fields, which few answers read and which take most of the time, are compressed apart.
"""

from __future__ import annotations

import zlib
from collections import UserDict
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

import orjson

from karmada_advisor.state.stored import part
from karmada_scheduler.api.binding import BindingKey

Manifest = Mapping[str, Any]

_MANAGERS: Final = "managedFields"
_SHARED: Final = {
    "metadata": frozenset({"labels", "annotations"}),
    "spec": frozenset({"placement", "replicaRequirements"}),
}
_FASTEST: Final = 1
"""The level of zlib."""


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
        if isinstance(key, str):
            cluster: Manifest = self.data[key]
            return cluster
        manifest, managers = _unpacked(self.data[key])
        if managers:
            manifest["metadata"][_MANAGERS] = orjson.loads(zlib.decompress(managers))
        return manifest

    def __setitem__(self, key: str | BindingKey, manifest: Manifest) -> None:
        self.data[key] = manifest if isinstance(key, str) else _packed(manifest)

    def lean(self, keys: Iterable[BindingKey]) -> dict[BindingKey, Manifest]:
        """Return bindings without their managed fields; what is equal in many of them is one object."""
        known: dict[bytes, Any] = {}
        found: dict[BindingKey, Manifest] = {}
        for key in keys:
            found[key] = manifest = _unpacked(self.data[key])[0]
            for parent, names in _SHARED.items():
                fields = manifest.get(parent) or {}
                for name in names & fields.keys():
                    fields[name] = known.setdefault(orjson.dumps(fields[name]), fields[name])
        return found


def without_managers(manifest: Manifest) -> dict[str, Any]:
    """Return an object without its managed fields."""
    metadata = {name: value for name, value in part(manifest, "metadata").items() if name != _MANAGERS}
    return {**manifest, "metadata": metadata}


def _packed(manifest: Manifest) -> bytes:
    parts = [without_managers(manifest), *filter(None, [part(manifest, "metadata").get(_MANAGERS)])]
    return b"".join(zlib.compress(orjson.dumps(content), _FASTEST) for content in parts)


def _unpacked(packed: bytes) -> tuple[dict[str, Any], bytes]:
    """Return a manifest without its managed fields, and these, still compressed."""
    stream = zlib.decompressobj()
    return orjson.loads(stream.decompress(packed)), stream.unused_data
