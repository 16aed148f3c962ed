"""The objects as the API server sent them, for extenders; the parsed objects have only the fields that decisions need.

They are stored as JSON documents that go into requests without a change. The event handlers fill this cache, and only
where an extender is configured. Bindings are many and similar, so each is compressed with the first one as dictionary:
1,700 bytes become about 200. Clusters go into requests together and are not compressed. ``metadata.managedFields`` is
omitted.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from karmada_scheduler import json_body
from karmada_scheduler.api import binding as binding_api
from karmada_scheduler.api import cluster as cluster_api
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster

_LEVEL: Final = 1
_DICTIONARY: Final = 32 * 1024  # of a longer one zlib uses the end


class ManifestCache:
    """The newest manifest of every object that a request to an extender may contain.

    Implements ``extenders.http_extender.Manifests``.
    """

    def __init__(self, *, is_needed: Callable[[Binding], bool], clusters: bool) -> None:
        """Start empty.

        Args:
            is_needed: Returns whether a binding can be part of a request.
            clusters: Whether Clusters can be part of a request; False if all extenders have caches of their own.
        """
        self._is_needed = is_needed
        self._wants_clusters = clusters
        self._bindings: dict[BindingKey, bytes] = {}
        self._clusters: dict[str, bytes] = {}
        self._dictionary = b""

    def __len__(self) -> int:
        return len(self._bindings) + len(self._clusters)

    def stored(self, parsed: object, manifest: Mapping[str, Any]) -> None:
        """Store the manifest of an object that was put into its cache; only bindings and Clusters are stored."""
        if isinstance(parsed, Binding):
            if self._is_needed(parsed):
                document = _document(manifest, binding_api.API_VERSION, parsed.key.kind)
                self._bindings[parsed.key] = self._compressed(document)
            else:
                self._bindings.pop(parsed.key, None)
        elif isinstance(parsed, Cluster) and self._wants_clusters:
            self._clusters[parsed.name] = _document(manifest, cluster_api.API_VERSION, cluster_api.KIND)

    def forgotten(self, key: object) -> None:
        """Remove the manifest of an object that was removed from its cache, if it is stored."""
        if isinstance(key, BindingKey):
            self._bindings.pop(key, None)
        elif isinstance(key, str):
            self._clusters.pop(key, None)

    def binding(self, key: BindingKey) -> bytes | None:
        """Return a binding as a JSON document."""
        compressed = self._bindings.get(key)
        if compressed is None:
            return None
        return zlib.decompressobj(zdict=self._dictionary).decompress(compressed)

    def cluster(self, name: str) -> bytes | None:
        """Return a Cluster as a JSON document."""
        return self._clusters.get(name)

    def _compressed(self, document: bytes) -> bytes:
        if not self._dictionary:
            self._dictionary = document[-_DICTIONARY:]
        packer = zlib.compressobj(_LEVEL, zdict=self._dictionary)
        return packer.compress(document) + packer.flush()


def _document(manifest: Mapping[str, Any], api_version: str, kind: str) -> bytes:
    """Return an object as JSON; items of a list have no apiVersion and kind, so they are added."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    document = {**manifest, "apiVersion": api_version, "kind": kind, "metadata": metadata}
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:  # orjson writes 254 levels; the status of a custom resource may be deeper
        return orjson.dumps(json_body.shallow(document))
