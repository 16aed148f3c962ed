"""The manifests that a file of placement tests has in place or in short, and those of the files that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os.path import normpath
from pathlib import Path
from typing import Any, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import CLUSTER_API_VERSION, manifest_files, read_changes
from karmada_advisor.fleet.source import DEFAULT_NAMESPACE
from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile, identity_of, place_in_file
from karmada_advisor.whatif.placement_tests.model import Manifest
from karmada_advisor.whatif.placement_tests.report_model import FileProblem
from karmada_advisor.whatif.placement_tests.schema import keys_of
from karmada_advisor.whatif.plan.cluster_edits import NOT_READY, TAINT_FORM, taint_of
from karmada_scheduler.api import quantity
from karmada_scheduler.api.cluster import KIND
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.config.yaml_places import YamlPath

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

    def listed(self, path: YamlPath, value: Any) -> Iterator[Manifest]:
        """Yield manifests of files and directories, and those in place; each name once."""
        for at, each in self._in.items(path, value):
            if isinstance(each, dict):
                yield from self._once(at, [self.in_place(at, each)], f"{_IN_PLACE}{self._in.place(at).line}")
            elif self._in.typed(at, each, str, "a file or a manifest"):
                yield from self.of_files(at, each)

    def in_place(self, path: YamlPath, value: dict[str, Any]) -> Manifest:
        for field in ("apiVersion", "kind", "metadata"):
            if not value.get(field):
                self._in.problem(path, f"a manifest needs {field}")
        kind = value.get("kind") or ""
        self._in.typed((*path, "kind"), kind, str)
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and not isinstance(metadata.get("name"), str):
            self._in.problem((*path, "metadata"), "a manifest needs metadata.name")
        return {**value, "kind": str(kind), "metadata": metadata if isinstance(metadata, dict) else {}}

    def of_files(self, path: YamlPath, written: str) -> Iterator[Manifest]:
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
        for each in files:
            contents = read_changes([each], DEFAULT_NAMESPACE, with_repeated=False)
            self._in.problems += [FileProblem(found.place, 0, 0, found.text) for found in contents.problems]
            yield from self._once(path, contents.objects, each)

    def resolved(self, path: YamlPath, written: str) -> Path | None:
        target = Path(normpath(self._in.folder / written))
        if target.exists():
            return target
        self._in.problem(path, f"{written} does not exist ({target.resolve()})")
        return None

    def _once(self, path: YamlPath, manifests: Iterable[Manifest], origin: str) -> Iterator[Manifest]:
        for each in manifests:
            identity = identity_of(each)
            first = self._origins.setdefault(identity, origin)
            if first != origin:
                shown = f"{identity[0]} {'/'.join(filter(None, identity[1:]))}"
                self._in.problem(path, f"{shown} is in {first} and in {origin}")
                continue
            yield each


AMPLE: Final = {"cpu": "100k", "memory": "100Ti", "ephemeral-storage": "1Pi", "pods": "1M"}
"""What a cluster has free of what its ``room`` does not name."""


def cluster_of(
    located: LocatedFile, path: YamlPath, name: str, value: Any, served: Iterable[tuple[str, str]]
) -> Manifest | None:
    """Return a Cluster; None if something is wrong with its description.

    Args:
        located: The file.
        path: Where the description is.
        name: The name of the cluster.
        value: The description; empty for a cluster without properties.
        served: apiVersion and kind of what it serves unless it says otherwise.
    """
    before = len(located.problems)
    found = {} if value is None else located.mapping(path, value, keys_of("FleetCluster"))
    spec: dict[str, Any] = {"syncMode": "Push"}
    for field in ("region", "provider"):
        if field in found and located.typed((*path, field), found[field], str):
            spec[field] = found[field]
    if "zones" in found:
        spec["zones"] = [text for _, text in located.texts((*path, "zones"), found["zones"])]
    labels = located.mapping((*path, "labels"), found.get("labels", {}))
    for key, text in labels.items():
        located.typed((*path, "labels", key), text, str)
    taints = []
    for at, text in located.texts((*path, "taints"), found.get("taints")):
        taints.append(taint_of(text) or {})
        if not taints[-1]:
            located.problem(at, f"taints: expected {TAINT_FORM}, got {text}")
    is_ready = found.get("ready", True)
    located.typed((*path, "ready"), is_ready, bool)
    if not is_ready:
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})
    spec["taints"] = taints
    status = {
        "apiEnablements": _apis(located, (*path, "apis"), found.get("apis"), served),
        "conditions": [
            {"type": "Ready", "status": "True" if is_ready else "False"},
            {"type": "CompleteAPIEnablements", "status": "True"},
        ],
        "resourceSummary": {
            "allocatable": {**AMPLE, **_free_amounts(located, (*path, "room"), found.get("room"))}
        },
    }
    metadata = {"name": name, "uid": name, "generation": 1, "labels": labels}
    manifest = {
        "apiVersion": CLUSTER_API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }
    return None if len(located.problems) > before else manifest


def _free_amounts(located: LocatedFile, path: YamlPath, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    found = {}
    for resource, amount in located.mapping(path, value).items():
        if type(amount) not in {str, int, float}:
            located.problem((*path, resource), f"{resource}: expected an amount such as 40 or 100Gi")
            continue
        try:
            quantity.read(str(amount), resource)
        except ManifestError as problem:
            located.problem((*path, resource), f"room: {problem}")
        found[resource] = str(amount)
    return found


def _apis(
    located: LocatedFile, path: YamlPath, value: Any, served: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    kinds: dict[str, list[str]] = {}
    if value is None:
        for version, kind in served:
            kinds.setdefault(version, []).append(kind)
    for at, text in located.texts(path, value):
        version, _, kind = text.rpartition("/")
        if not version or not kind:
            located.problem(at, f"apis: expected one such as apps/v1/Deployment or v1/ConfigMap, got {text}")
        kinds.setdefault(version, []).append(kind)
    return [
        {
            "groupVersion": version,
            "resources": [{"name": f"{kind.lower()}s", "kind": kind} for kind in sorted(set(each))],
        }
        for version, each in kinds.items()
    ]
