"""A fake API server for the binding cycle."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api_error import ApiError

CONFLICT = ApiError("the object has been modified", code=409, reason="Conflict")


class FakeApiServer:
    """Bindings by name; patches of outdated resourceVersions are refused.

    ``failures`` has the errors of the next requests by their kind: ``get``, ``spec`` or ``status``. ``torn`` has those
    of the next patches of the spec that are accepted. ``requests`` has the kind, name and body of each patch that was
    accepted. ``event`` gets each new version. ``before_request`` is called before a patch is sent. ``unserved`` has the
    fields of targets that are dropped.
    """

    def __init__(self, *manifests: dict[str, Any]) -> None:
        self.stored = {each["metadata"]["name"]: each for each in manifests}
        self.failures: dict[str, list[ApiError]] = {}
        self.torn: list[ApiError] = []
        self.requests: list[tuple[str, str, Any]] = []
        self.reads = 0
        self.unserved: frozenset[str] = frozenset()
        self.event: Callable[[dict[str, Any]], None] = lambda _: None
        self.before_request: Callable[[], None] = lambda: None

    @property
    def writes(self) -> list[tuple[str, str]]:
        """The kind and name of each patch that was accepted."""
        return [(kind, name) for kind, name, _ in self.requests]

    def change(
        self,
        name: str,
        *,
        status: bool = False,
        annotations: Mapping[str, str | None] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Store the next version of a binding, with other fields of its spec or its status."""
        manifest = copy.deepcopy(self.stored[name])
        metadata = manifest["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        if annotations is not None:
            kept = {**metadata.get("annotations", {}), **annotations}
            metadata["annotations"] = {key: text for key, text in kept.items() if text is not None}
        if status:
            manifest.setdefault("status", {}).update(fields)
        elif fields:
            manifest["spec"].update(fields)
            metadata["generation"] += 1
        self.stored[name] = manifest
        self.event(manifest)
        return manifest

    async def get_binding(self, key: BindingKey) -> dict[str, Any]:
        self._check("get", key)
        self.reads += 1
        return self.stored[key.name]

    async def patch_result(
        self,
        key: BindingKey,
        *,
        resource_version: str,
        annotations: dict[str, str | None],
        clusters: Any,
        tasks: Any = None,
        before_send: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        self.before_request()
        before_send()
        self._check("spec", key, resource_version)
        added = {} if tasks is None else {"gracefulEvictionTasks": tasks}
        self.requests.append(("spec", key.name, {"annotations": annotations, "clusters": clusters, **added}))
        spec = added if clusters is None else {"clusters": self._served(clusters), **added}
        stored = self.change(key.name, annotations=annotations, **spec)
        if self.torn:
            raise self.torn.pop(0)
        return stored

    async def patch_spec(
        self,
        key: BindingKey,
        *,
        resource_version: str,
        spec: dict[str, Any],
        before_send: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        before_send()
        self._check("spec", key, resource_version)
        self.requests.append(("spec", key.name, spec))
        stored = self.change(key.name, **spec)
        for name in [name for name, value in spec.items() if value is None]:
            del stored["spec"][name]
        return stored

    async def patch_status(
        self,
        key: BindingKey,
        *,
        resource_version: str,
        status: Any,
        before_send: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        self.before_request()
        before_send()
        self._check("status", key, resource_version)
        self.requests.append(("status", key.name, status))
        return self.change(key.name, status=True, **status)

    def _served(self, clusters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return targets without the fields that are not served."""
        return [
            {name: value for name, value in each.items() if name not in self.unserved} for each in clusters
        ]

    def _check(self, kind: str, key: BindingKey, version: str | None = None) -> None:
        if self.failures.get(kind):
            raise self.failures[kind].pop(0)
        if version is not None and version != self.stored[key.name]["metadata"]["resourceVersion"]:
            raise CONFLICT
