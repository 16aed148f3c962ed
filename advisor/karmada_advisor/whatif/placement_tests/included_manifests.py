"""The manifests that a file of placement tests has in place or in short, and those of the files that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import normpath
from pathlib import Path
from typing import Any, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import CLUSTER_API_VERSION, manifest_files, read_changes
from karmada_advisor.fleet.source import DEFAULT_NAMESPACE
from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile, identity_of, place_in_file
from karmada_advisor.whatif.placement_tests.model import FileProblem, Manifest
from karmada_advisor.whatif.plan.cluster_edits import NOT_READY, TAINT_FORM, taint_of
from karmada_scheduler.api import quantity
from karmada_scheduler.api.cluster import KIND
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.config.yaml_values import YamlPath

_IN_PLACE: Final = "line "


class IncludedManifests:
    """Reads manifests; each object may be in one place only."""

    def __init__(self, located: LocatedFile) -> None:
        """Read what this file names; what is wrong is noted in it."""
        self._in = located
        self._origins: dict[tuple[str, ...], str] = {}

    def problem_of(self, manifest: Manifest, field: str, text: str) -> FileProblem:
        """Return a problem of a manifest with the place of the field in the file that has it."""
        origin = self._origins[identity_of(manifest)]
        if origin.startswith(_IN_PLACE):
            return FileProblem(self._in.path, int(origin.removeprefix(_IN_PLACE)), 0, text)
        return FileProblem(origin, *place_in_file(origin, manifest, field), text)

    def of_items(
        self, path: YamlPath, value: Any, *, once: bool = False
    ) -> Iterator[tuple[YamlPath, Manifest]]:
        """Yield the manifests of a list of files, directories and manifests in place, each with the path of its item.

        Args:
            path: Of the list.
            value: The list; None for none.
            once: Whether each name may be there once only.
        """
        is_list = value is not None and self._in.typed(path, value, list)
        for index, entry in enumerate(value if is_list else ()):
            at = (*path, index)
            if isinstance(entry, dict):
                origin = f"{_IN_PLACE}{self._in.place(at).line}"
                found = [(self._in_place(at, entry), origin)]
            else:
                is_name = self._in.typed(at, entry, str, "a file or a manifest")
                found = [*self._of_files(at, entry)] if is_name else []
            for manifest, origin in found:
                if not once or self._is_first(at, manifest, origin):
                    yield at, manifest

    def _in_place(self, path: YamlPath, value: dict[str, Any]) -> Manifest:
        for field in ("apiVersion", "kind", "metadata"):
            if not value.get(field):
                self._in.problem(path, f"a manifest needs {field}")
        kind = value.get("kind") or ""
        self._in.typed((*path, "kind"), kind, str)
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and not isinstance(metadata.get("name"), str):
            self._in.problem((*path, "metadata"), "a manifest needs metadata.name")
        return {**value, "kind": str(kind), "metadata": metadata if isinstance(metadata, dict) else {}}

    def _of_files(self, path: YamlPath, written: str) -> Iterator[tuple[Manifest, str]]:
        """Yield the manifests of a file or a directory, each with the name of its file."""
        target = self.resolved(path, written)
        if target is None:
            return
        if target.is_dir() and not any(target.iterdir()):
            self._in.problem(path, f"{written} ({target.resolve()}) is empty")
            return
        try:
            files = list(manifest_files([str(target)]))
        except NoAnswerError as problem:
            self._in.problem(path, str(problem).removeprefix("-f "))
            return
        for file in files:
            contents = read_changes([file], DEFAULT_NAMESPACE, with_repeated=False)
            self._in.problems += [FileProblem(found.place, 0, 0, found.text) for found in contents.problems]
            yield from ((manifest, file) for manifest in contents.objects)

    def resolved(self, path: YamlPath, written: str) -> Path | None:
        target = Path(normpath(self._in.folder / written))
        if target.exists():
            return target
        self._in.problem(path, f"{written} does not exist ({target.resolve()})")
        return None

    def _is_first(self, path: YamlPath, manifest: Manifest, origin: str) -> bool:
        """Return whether no other file has an object of this name; else that is a problem."""
        identity = identity_of(manifest)
        first = self._origins.setdefault(identity, origin)
        if first != origin:
            shown = f"{identity[0]} {'/'.join(filter(None, identity[1:]))}"
            self._in.problem(path, f"{shown} is in {first} and in {origin}")
        return first == origin


AMPLE: Final = {"cpu": "100k", "memory": "100Ti", "ephemeral-storage": "1Pi", "pods": "1M"}
"""What a cluster has free of what its ``room`` does not name."""


def cluster_of(
    located: LocatedFile,
    path: YamlPath,
    name: str,
    found: Mapping[str, Any],
    served: Iterable[tuple[str, str]],
) -> Manifest | None:
    """Return a Cluster; None if something is wrong with its description.

    Args:
        located: The file.
        path: Where the description is.
        name: The name of the cluster.
        found: The description; empty for a cluster without properties.
        served: apiVersion and kind of what it serves unless it says otherwise.
    """
    before = len(located.problems)
    spec: dict[str, Any] = {"syncMode": "Push"}
    spec |= {field: found[field] for field in ("region", "provider", "zones") if field in found}
    taints = [taint_of(text) for text in found.get("taints", ())]
    for index, taint in enumerate(taints):
        if taint is None:
            text = f"taints: expected {TAINT_FORM}, got {found['taints'][index]}"
            located.problem((*path, "taints", index), text)
    is_ready = found.get("ready", True)
    if not is_ready:
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})
    spec["taints"] = taints
    free = {resource: str(amount) for resource, amount in found.get("room", {}).items()}
    for resource, amount in free.items():
        try:
            quantity.read(amount, resource)
        except ManifestError as problem:
            located.problem((*path, "room", resource), f"room: {problem}")
    status = {
        "apiEnablements": _apis(located, (*path, "apis"), found.get("apis"), served),
        "conditions": [
            {"type": "Ready", "status": "True" if is_ready else "False"},
            {"type": "CompleteAPIEnablements", "status": "True"},
        ],
        "resourceSummary": {"allocatable": {**AMPLE, **free}},
    }
    metadata = {"name": name, "uid": name, "generation": 1, "labels": found.get("labels", {})}
    manifest = {
        "apiVersion": CLUSTER_API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }
    return None if len(located.problems) > before else manifest


def _apis(
    located: LocatedFile, path: YamlPath, written: Sequence[str] | None, served: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    kinds: dict[str, list[str]] = {}
    if written is None:
        for version, kind in served:
            kinds.setdefault(version, []).append(kind)
    for index, text in enumerate(written or ()):
        version, _, kind = text.rpartition("/")
        if not version or not kind:
            at = (*path, index)
            located.problem(at, f"apis: expected one such as apps/v1/Deployment or v1/ConfigMap, got {text}")
        kinds.setdefault(version, []).append(kind)
    return [
        {
            "groupVersion": version,
            "resources": [{"name": f"{kind.lower()}s", "kind": kind} for kind in sorted(set(api))],
        }
        for version, api in kinds.items()
    ]
