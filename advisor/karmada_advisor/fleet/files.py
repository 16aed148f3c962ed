"""Reads files as ``kubectl get`` writes them; one invalid object does not hide the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import orjson

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.source import DEFAULT_NAMESPACE
from karmada_advisor.state.stored import with_namespace
from karmada_scheduler.api import binding as binding_api
from karmada_scheduler.api.binding import KINDS, Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError, read_mapping, read_required_text, read_text_map
from karmada_scheduler.api.matching import LabelSelector
from karmada_scheduler.api.object_fields import read_object, read_objects
from karmada_scheduler.api.placement import ClusterAffinity, Placement
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, MANAGED_BY_LABEL, POLICY_ID_LABEL
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.config.file_content import FileContentError, read_text_file
from karmada_scheduler.config.yaml_document import YamlError, read_document
from karmada_scheduler.config.yaml_values import YamlPlaces, plain
from karmada_scheduler.structs import Struct

_DOCUMENT_START: Final = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_JSON_START: Final = re.compile(r'\s*\{\s*"')


def documents(text: str) -> Iterator[tuple[int, str]]:
    """Split YAML at its document markers, so that one broken document does not hide the others.

    Yields the line before each document, and its text. A document without any content is none.
    """
    markers = [(match.start(), match.end()) for match in _DOCUMENT_START.finditer(text)]
    starts = [0, *(end for _, end in markers)]
    ends = [*(start for start, _ in markers), len(text)]
    line = counted = 0
    for start, end in zip(starts, ends, strict=True):
        line += text.count("\n", counted, start)
        counted = start
        document = text[start:end]
        if any(each.strip() and not each.lstrip().startswith("#") for each in document.splitlines()):
            yield line, document


class SourceDocument:
    """The text of a document, and its values without quotes, which are read if an object in it is unusable."""

    def __init__(self, text: str = "") -> None:
        """Take the text."""
        self._text = text

    @cached_property
    def unquoted(self) -> Mapping[str, str]:
        """The values without quotes as they are written, by paths such as ``.items[0].spec.replicas``."""
        places = YamlPlaces()
        if not _JSON_START.match(self._text):
            read_document(self._text, places=places)
        return {
            "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path): place.text
            for path, place in places.values.items()
            if place.text and not place.style
        }


def unquoted_value(source: Source, field: str) -> str:
    """Return what a value of a field is that has no quotes in its document; "" for another value."""
    document, path = source
    written = document.unquoted.get(f"{path}.{field}", "")
    value = plain(written) if written else None
    if value is None or isinstance(value, str):
        return ""
    what = f"the number {value}" if type(value) in {int, float} else str(value).lower()
    return f': {written} is {what}, "{written}" is text'


Source = tuple[SourceDocument, str]
"""A document, and the path of an object in it."""


def decoded(document: str, line: int) -> Any:
    """Return what a document holds.

    Args:
        document: Its text.
        line: The lines before it.

    Raises:
        YamlError: It is neither JSON nor YAML.
    """
    if document.lstrip().startswith("{"):
        try:
            return orjson.loads(document)
        except ValueError:
            pass  # a YAML flow mapping begins like JSON, and YAML's errors have a line
    return read_document(document, lines_before=line).value


def json_problem(document: str, line: int) -> str:
    """Return the error of a document that looks like JSON; "" for any other document."""
    if not _JSON_START.match(document):
        return ""
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError as problem:
        return f"line {line + problem.lineno}, column {problem.colno}: not JSON: {problem.msg}"
    return ""


def yaml_problem(problem: YamlError) -> str:
    """Return the error of a document that is no YAML, with its place."""
    place = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    return f"{place}not YAML: {problem.what}"


CLUSTER_API_VERSION: Final = "cluster.karmada.io/v1alpha1"

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_CLAIMED_BY: Final = (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL, MANAGED_BY_LABEL)

T = TypeVar("T")


class Problem(Struct, frozen=True):
    """An unusable file or object.

    Attributes:
        place: The file, the document in it, and the object if its name is known.
        text: What is wrong; it names the field.
    """

    place: str
    text: str

    def __str__(self) -> str:
        """Write it as one line for people."""
        return f"{self.place}: {self.text}"


class Contents(Struct, Generic[T], frozen=True):
    """The content of a file: its objects, and the problems of unusable ones."""

    objects: list[T]
    problems: list[Problem]


def read(
    paths: Sequence[str], parse: Callable[[Mapping[str, Any]], T], *, with_repeated: bool = False
) -> Contents[T]:
    """Read all objects of some files; unusable ones become problems.

    Args:
        paths: The files, ``-`` for standard input; each may be compressed with gzip.
        parse: Makes an object of a manifest; raises ManifestError.
        with_repeated: Whether an object that is there twice counts twice; otherwise the second is a problem.
    """
    contents: Contents[T] = Contents([], [])
    seen: set[tuple[str, str]] | None = None if with_repeated else set()
    for path in paths:
        try:
            text = read_text_file(path)
        except FileContentError as problem:
            contents.problems.append(Problem(path, str(problem)))
        else:
            _read_into(contents, seen, path, text, parse)
    return contents


def _read_into(
    contents: Contents[T],
    seen: set[tuple[str, str]] | None,
    path: str,
    text: str,
    parse: Callable[[Mapping[str, Any]], T],
) -> None:
    for place, manifest, source in _manifests(path, text):
        if isinstance(manifest, Problem):
            contents.problems.append(manifest)
            continue
        shown = _name_of(manifest)
        try:
            parsed = parse(manifest)
        except ManifestError as problem:
            text_ = f"{problem}{unquoted_value(source, problem.path)}"
            contents.problems.append(Problem(f"{place}{shown and f' ({shown})'}", text_))
            continue
        if seen is not None:
            key = str(manifest.get("apiVersion")).rpartition("/")[0], shown
            if key in seen:
                text_ = "metadata.name: is there twice; the first counts"
                contents.problems.append(Problem(f"{place} ({shown})", text_))
                continue
            seen.add(key)
        contents.objects.append(parsed)


def _manifests(path: str, text: str) -> Iterator[tuple[str, Any, Source]]:
    """Yield each object of each document with its place, or the problem that a document is; and its source."""
    found, nowhere = list(documents(text)), (SourceDocument(), "")
    if not found:
        yield path, Problem(path, "holds no objects"), nowhere
    for number, (line, document) in enumerate(found, 1):
        place, whole = f"{path}: document {number}", SourceDocument(document)
        try:
            content = decoded(document, line)
        except YamlError as problem:
            text_ = json_problem(document, line) or yaml_problem(problem)
            yield place, Problem(place, text_), nowhere
            continue
        if content is None:
            continue
        if not isinstance(content, dict):
            yield place, Problem(place, f"expected an object, got {type(content).__name__}"), nowhere
        elif str(content.get("kind", "")).endswith("List") and isinstance(content.get("items"), list):
            for index, item in enumerate(content["items"], 1):
                if isinstance(item, dict):
                    source = whole, f".items[{index - 1}]"
                    yield f"{place}, item {index}", {**_item_type(content), **item}, source
                else:
                    text_ = f"expected an object, got {type(item).__name__}"
                    yield place, Problem(f"{place}, item {index}", text_), nowhere
        else:
            yield place, content, (whole, "")


def _item_type(content: Mapping[str, Any]) -> dict[str, str]:
    """Return kind and apiVersion of the items of a list, which the API server leaves out of them."""
    kind = str(content["kind"]).removesuffix("List")
    return {"kind": kind, "apiVersion": str(content.get("apiVersion"))} if kind else {}


def _name_of(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or "name" not in metadata:
        return ""
    namespace = metadata.get("namespace")
    name = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
    return f"{manifest.get('kind', 'object')} {name}"


def as_cluster(manifest: Mapping[str, Any]) -> Cluster:
    """Parse a Cluster."""
    _check_type(manifest, {"Cluster"}, CLUSTER_API_VERSION)
    return Cluster.from_manifest(manifest)


def as_binding(manifest: Mapping[str, Any]) -> Binding:
    """Parse a binding of either kind; one that belongs to a policy has a placement."""
    _check_type(manifest, KINDS, binding_api.API_VERSION)
    binding = Binding.from_manifest(manifest)
    # A binding that follows another one has no placement and belongs to no policy.
    if binding.spec.placement is None and any(binding.labels.get(label) for label in _CLAIMED_BY):
        raise ManifestError("spec.placement", "is missing")
    return binding


def as_policy(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check a policy, and return it as it is."""
    check_types(of_kind(manifest, ID_LABELS))
    return manifest


def as_workload(manifest: Mapping[str, Any]) -> Workload:
    """Read the metadata of an object of any kind."""
    kind = read_required_text(manifest, "kind", "")
    version = read_required_text(manifest, "apiVersion", "")
    return Workload.from_manifest(manifest, api_version=version, kind=kind)


def of_kind(manifest: Mapping[str, Any], kinds: Iterable[str]) -> Mapping[str, Any]:
    """Return an object of one of these kinds as it is."""
    if read_required_text(manifest, "kind", "") not in kinds:
        raise ManifestError("kind", f"expected {' or '.join(kinds)}, got {manifest['kind']!r}")
    return manifest


def _check_type(manifest: Mapping[str, Any], kinds: Iterable[str], api_version: str) -> None:
    of_kind(manifest, sorted(kinds))
    if read_required_text(manifest, "apiVersion", "") != api_version:
        raise ManifestError("apiVersion", f"expected {api_version!r}, got {manifest['apiVersion']!r}")


def change_objects(text: str) -> list[Mapping[str, Any]]:
    """Return the objects of a text, such as a policy that somebody pasted: YAML or JSON; none of an empty one.

    Those that name no namespace are in ``default``.

    Raises:
        NoAnswerError: One cannot be read; the problem tells of the text alone.
    """
    if not text.strip():
        return []
    found: Contents[Mapping[str, Any]] = Contents([], [])
    _read_into(found, set(), "the policy", text, _parse_into(DEFAULT_NAMESPACE))
    if found.problems:
        raise NoAnswerError("; ".join(map(str, found.problems)))
    return found.objects


def read_changes(
    paths: Iterable[str], namespace: str, *, with_repeated: bool = True
) -> Contents[Mapping[str, Any]]:
    """Read the objects of files and directories, in the order in which ``kubectl apply`` would write them.

    Args:
        paths: Files, directories (read whole, in the order of names), ``-`` for standard input.
        namespace: Of objects that name none.
        with_repeated: As in ``read``.

    Raises:
        NoAnswerError: A directory has no manifests.
    """
    return read(list(manifest_files(paths)), _parse_into(namespace), with_repeated=with_repeated)


def _parse_into(namespace: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    def parse(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        read_required_text(manifest, "kind", "")
        read_required_text(read_mapping(manifest, "metadata", ""), "name", "metadata")
        check_types(manifest)
        return with_namespace(manifest, namespace)

    return parse


OVERRIDES: Final = ("OverridePolicy", "ClusterOverridePolicy")


class _Selected(Struct, frozen=True):
    """A resource selector of a policy, or a rule of an override policy."""

    api_version: str
    kind: str
    namespace: str
    name: str
    label_selector: LabelSelector | None
    target_cluster: ClusterAffinity | None


def check_types(manifest: Mapping[str, Any]) -> None:
    """Check that an object has text where the API server takes text only, in its labels and as a policy.

    Raises:
        ManifestError: A field has another type.
    """
    read_text_map(read_mapping(manifest, "metadata", ""), "labels", "metadata")
    spec = read_mapping(manifest, "spec", "")
    if manifest.get("kind") in {*ID_LABELS, *OVERRIDES}:
        read_objects(_Selected, spec, "resourceSelectors", "spec")
        read_objects(_Selected, spec, "overrideRules", "spec")
        read_object(Placement, read_mapping(spec, "placement", "spec"), "spec.placement")


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
        files = (file for file in folder.rglob("*") if file.is_file() and file.name.endswith(_SUFFIXES))
        parts = ((str(file), file.relative_to(folder).parts) for file in files)
        found = sorted(file for file, names in parts if not any(name.startswith(".") for name in names))
        if not found:
            raise NoAnswerError(f"-f {path}: the directory has no files {', '.join(_SUFFIXES[:3])}")
        yield from found
