"""The manifests that a file of placement tests has in place, and those of the files that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os.path import normpath
from pathlib import Path
from typing import Any, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import manifest_files, read_changes
from karmada_advisor.fleet.source import DEFAULT_NAMESPACE
from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile, identity_of, place_in_file
from karmada_advisor.whatif.placement_tests.model import Manifest
from karmada_advisor.whatif.placement_tests.report_model import FileProblem
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
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and not isinstance(metadata.get("name"), str):
            self._in.problem((*path, "metadata"), "a manifest needs metadata.name")
        return {**value, "metadata": metadata if isinstance(metadata, dict) else {}}

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
            contents = read_changes([each], DEFAULT_NAMESPACE)
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
