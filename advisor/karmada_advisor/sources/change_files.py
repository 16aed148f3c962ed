"""Reads the files of a change: single ones, directories, and standard input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from karmada_advisor.plan.stored import with_namespace
from karmada_advisor.sources.control_plane import DEFAULT_NAMESPACE
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import Contents, read, read_text
from karmada_scheduler.api.manifest import read_mapping, read_required_text

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")


def change_objects(text: str) -> list[Mapping[str, Any]]:
    """Return the objects of a text, such as a policy that somebody pasted: YAML or JSON; none of an empty one.

    Those that name no namespace are in ``default``.

    Raises:
        NoAnswerError: One cannot be read; the problem tells of the text alone.
    """
    if not text.strip():
        return []
    found = read_text("the policy", text, _parse_into(DEFAULT_NAMESPACE))
    if found.problems:
        raise NoAnswerError("; ".join(map(str, found.problems)))
    return found.objects


def read_changes(paths: Iterable[str], namespace: str) -> Contents[Mapping[str, Any]]:
    """Read the objects of files and directories.

    Args:
        paths: Files, directories (read whole, in the order of names), ``-`` for standard input.
        namespace: Of objects that name none.

    Raises:
        NoAnswerError: A directory has no manifests.
    """
    return read(list(manifest_files(paths)), _parse_into(namespace))


def _parse_into(namespace: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    def parse(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        read_required_text(manifest, "kind", "")
        read_required_text(read_mapping(manifest, "metadata", ""), "name", "metadata")
        read_mapping(manifest, "spec", "")
        return with_namespace(manifest, namespace)

    return parse


def manifest_files(paths: Iterable[str]) -> Iterator[str]:
    """Yield files; of directories, all their manifests in the order of names.

    Raises:
        NoAnswerError: A directory has no manifests.
    """
    for path in paths:
        if path.startswith(("http://", "https://")):
            raise NoAnswerError(f"-f {path}: download it first; plan reads files only")
        folder = Path(path)
        if path == "-" or not folder.is_dir():
            yield path
            continue
        found = sorted(
            str(each)
            for each in folder.rglob("*")
            if each.is_file()
            and each.name.endswith(_SUFFIXES)
            and not any(name.startswith(".") for name in each.relative_to(folder).parts)
        )
        if not found:
            raise NoAnswerError(f"-f {path}: the directory has no files {', '.join(_SUFFIXES[:3])}")
        yield from found
