"""The decision core over files: what would the scheduler do, without a control plane.

Reads what ``kubectl get -o yaml`` (or ``-o json``) writes and prints where each binding would settle. The
bindings are decided in the order of the file, each on the clusters as they are in theirs; where a feature
gate makes bindings depend on each other, a later one sees what was decided for the earlier ones.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Generic, TypeVar

import orjson
import yaml

from karmada_scheduler.api import binding as binding_api
from karmada_scheduler.api import meta
from karmada_scheduler.api.binding import KINDS, Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.meta import (
    CLUSTER_POLICY_ID_LABEL,
    MANAGED_BY_LABEL,
    POLICY_ID_LABEL,
    SCHEDULED_CONDITION,
    Condition,
    ManifestError,
)
from karmada_scheduler.config import features
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.available_replicas import Assumed, with_footprint
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.outcome import condition_for
from karmada_scheduler.core.schedule import decide
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Framework, Snapshot
from karmada_scheduler_plugins.registry import in_tree

CLUSTER_API_VERSION: Final = "cluster.karmada.io/v1alpha1"

ALL_PLACED: Final = 0
SOME_NOT_PLACED: Final = 1
BAD_INPUT: Final = 2

_DOCUMENT_START: Final = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_CLAIMED_BY: Final = (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL, MANAGED_BY_LABEL)

T = TypeVar("T")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads YAML as the API server does: a time is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that cannot be used.

    Attributes:
        place: The file, the document in it, and the object if its name is known.
        text: What is wrong; it names the field.
    """

    place: str
    text: str

    def __str__(self) -> str:
        """Write it as one line for people."""
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Contents(Generic[T]):
    """What a file holds: the objects that can be used, and what cannot."""

    objects: list[T]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a binding would settle.

    Attributes:
        condition: None for a binding that would be left alone and has none.
    """

    binding: Binding
    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    condition: Condition | None
    affinity_name: str

    def as_fields(self) -> dict[str, Any]:
        """Return it as it is written for programs."""
        key, condition = self.binding.key, self.condition
        return {
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
            "scheduleType": self.type.value,
            "clusters": [{"name": target.name, "replicas": target.replicas} for target in self.targets],
            "affinityName": self.affinity_name,
            "condition": None
            if condition is None
            else {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            },
        }


# --- the command ---


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "simulate",
        help="decide over files: no control plane needed",
        description="Decide where the bindings of a file would go on the clusters of another.",
        epilog="Exit status: 0 every binding has its place; 1 some have none; 2 some input cannot be used "
        "(the rest was still decided).",
    )
    files = "YAML or JSON as kubectl writes it, - for standard input"
    parser.add_argument("--clusters", required=True, metavar="FILE", help=f"Clusters: {files}")
    parser.add_argument("--bindings", required=True, metavar="FILE", help=f"bindings of both kinds: {files}")
    parser.add_argument(
        "-o", "--output", choices=sorted(_WRITERS), default="table", help="what to print (default table)"
    )
    parser.add_argument(
        "--plugins",
        action="append",
        metavar="LIST",
        help="plugins to enable: *, *,-Name, Name,Other (default *)",
    )
    parser.add_argument(
        "--feature-gates", action="append", default=[], metavar="LIST", help="gates, as A=true,B=false"
    )
    parser.add_argument(
        "--enable-empty-workload-propagation",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false"),
        help="keep selected clusters with 0 replicas in the result",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    try:
        gates = features.parse(arguments.feature_gates)
    except ValueError as mistake:
        _tell(f"--feature-gates: {mistake}")
        return BAD_INPUT
    selection = in_tree(gates).select(_tokens(arguments.plugins))
    for message in selection.messages:
        if message.warning:
            _tell(message.text)
    clusters = read(arguments.clusters, _cluster)
    bindings = read(arguments.bindings, _binding)
    for problem in (*clusters.problems, *bindings.problems):
        _tell(str(problem))
    settled = list(
        _with_progress(
            simulate(
                bindings.objects,
                clusters.objects,
                framework=Framework.build(selection.registry),
                gates=gates,
                empty_workload_propagation=arguments.enable_empty_workload_propagation == "true",
            ),
            total=len(bindings.objects),
        )
    )
    _WRITERS[arguments.output](settled, sys.stdout)
    homeless = sum(1 for each in settled if each.condition is not None and each.condition.status != "True")
    problems = len(clusters.problems) + len(bindings.problems)
    _tell(
        f"{len(settled)} bindings on {len(clusters.objects)} clusters: "
        f"{len(settled) - homeless} placed, {homeless} not, {problems} problems in the input"
    )
    if problems:
        return BAD_INPUT
    return SOME_NOT_PLACED if homeless else ALL_PLACED


def _tokens(lists: Sequence[str] | None) -> list[str]:
    return ["*"] if lists is None else [token for each in lists for token in each.split(",")]


def _tell(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 (a command for people and jobs, not a server)


# --- deciding ---


def simulate(
    bindings: Iterable[Binding],
    clusters: Iterable[Cluster],
    *,
    framework: Framework,
    gates: FeatureGates,
    empty_workload_propagation: bool = False,
) -> Iterator[Placed]:
    """Decide about one binding after the other.

    Args:
        bindings: In the order in which they are decided.
        clusters: As they are; what is decided does not change their status.
        framework: The plugins.
        gates: Feature gates.
        empty_workload_propagation: Whether selected clusters without replicas become targets, too.
    """
    snapshot = Snapshot.of(clusters)
    terminating = frozenset(cluster.name for cluster in snapshot if cluster.deleting)
    estimators = [GeneralEstimator(gates)]
    waiting = list(bindings)
    peers = _Peers(waiting)
    assumed: Assumed = {}
    for binding in waiting:
        verdict = ScheduleType.AVOID
        if (
            binding.spec.placement is not None
            and not binding.deleting
            and not binding.spec.scheduling_suspended
        ):
            verdict = classify(binding, terminating=terminating, gates=gates).type
        if verdict is ScheduleType.AVOID:
            yield _left_alone(binding)
            continue
        decision = decide(
            binding,
            snapshot,
            framework=framework,
            estimators=estimators,
            gates=gates,
            empty_workload_propagation=empty_workload_propagation,
            assumed=assumed,
            peers=peers if gates.enabled("WorkloadAffinity") else None,
        )
        if decision.targets is not None:
            if decision.targets and gates.enabled("SchedulingOvercommitProtection"):
                assumed = with_footprint(assumed, binding, decision.targets)
            peers.place(binding, decision.targets)
        yield _settled(binding, verdict, decision)


class _Peers:
    """The bindings of the file by group, each where it was last decided to be."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self._bindings: dict[BindingKey, Binding] = {}
        self._keys: dict[tuple[int, str], list[BindingKey]] = {}
        for binding in bindings:
            self._bindings[binding.key] = binding
            for kind, group in enumerate(binding.spec.workload_affinity_groups or ()):
                self._keys.setdefault((kind, group), []).append(binding.key)

    def place(self, binding: Binding, targets: tuple[TargetCluster, ...]) -> None:
        """Remember where a binding was decided to be."""
        self._bindings[binding.key] = replace(binding, spec=replace(binding.spec, clusters=targets))

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Look an affinity group up."""
        return [self._bindings[key] for key in self._keys.get((0, group), ())]

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Look an anti-affinity group up."""
        return [self._bindings[key] for key in self._keys.get((1, group), ())]

    def assigning(self, key: BindingKey) -> Binding | None:  # noqa: ARG002
        """Return None: what was decided is remembered at once."""
        return None


def _left_alone(binding: Binding) -> Placed:
    found = binding.status.condition(SCHEDULED_CONDITION)
    condition = (
        None
        if found is None
        else Condition(
            SCHEDULED_CONDITION, *(str(found.get(name) or "") for name in ("status", "reason", "message"))
        )
    )
    name = binding.status.scheduler_observing_affinity_name
    return Placed(binding, ScheduleType.AVOID, binding.spec.clusters, condition, name)


def _settled(binding: Binding, type_: ScheduleType, decision: Decision) -> Placed:
    condition = condition_for(decision.error)
    name = decision.affinity_name
    return Placed(
        binding,
        type_,
        binding.spec.clusters if decision.targets is None else decision.targets,
        Condition(SCHEDULED_CONDITION, condition.status, condition.reason, condition.message),
        binding.status.scheduler_observing_affinity_name if name is None else name,
    )


# --- reading ---


def read(path: str, parse: Callable[[Mapping[str, Any]], T]) -> Contents[T]:
    """Read all objects of a file; what cannot be used becomes a problem and the rest goes on."""
    contents: Contents[T] = Contents([], [])
    seen: set[str] = set()
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        contents.problems.append(Problem(path, f"cannot be read: {reason}"))
        return contents
    for place, manifest in _manifests(path, text):
        if isinstance(manifest, Problem):
            contents.problems.append(manifest)
            continue
        shown = _name_of(manifest)
        try:
            parsed = parse(manifest)
        except ManifestError as problem:
            contents.problems.append(Problem(f"{place}{shown and f' ({shown})'}", str(problem)))
            continue
        if shown in seen:
            contents.problems.append(
                Problem(f"{place} ({shown})", "metadata.name: is there twice; the first counts")
            )
            continue
        seen.add(shown)
        contents.objects.append(parsed)
    return contents


def _manifests(path: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield each object of each document with its place, or the problem that a document is."""
    documents = list(_documents(text))
    if not documents:
        yield path, Problem(path, "holds no objects")
    for number, (line, document) in enumerate(documents, 1):
        place = f"{path}: document {number}"
        try:
            content = _decoded(document)
        except yaml.YAMLError as problem:
            yield place, Problem(place, _yaml_problem(problem, line))
            continue
        if content is None:
            continue
        if not isinstance(content, dict):
            yield place, Problem(place, f"expected an object, got {type(content).__name__}")
        elif str(content.get("kind", "")).endswith("List") and isinstance(content.get("items"), list):
            for index, item in enumerate(content["items"], 1):
                if isinstance(item, dict):
                    yield f"{place}, item {index}", item
                else:
                    text_ = f"expected an object, got {type(item).__name__}"
                    yield place, Problem(f"{place}, item {index}", text_)
        else:
            yield place, content


def _documents(text: str) -> Iterator[tuple[int, str]]:
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


def _decoded(document: str) -> Any:
    if document.lstrip().startswith("{"):
        try:
            return orjson.loads(document)
        except ValueError:
            pass  # a YAML flow mapping looks like this, too, and YAML's errors have a line
    return yaml.load(document, Loader=_Loader)  # noqa: S506 (derived from the safe loader)


def _yaml_problem(problem: yaml.YAMLError, line: int) -> str:
    if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark is not None:
        mark = problem.problem_mark
        return f"line {line + mark.line + 1}, column {mark.column + 1}: not YAML: {problem.problem}"
    return f"not YAML: {problem}"


def _name_of(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or "name" not in metadata:
        return ""
    namespace = metadata.get("namespace")
    name = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
    return f"{manifest.get('kind', 'object')} {name}"


def _cluster(manifest: Mapping[str, Any]) -> Cluster:
    _check_type(manifest, {"Cluster"}, CLUSTER_API_VERSION)
    return Cluster.from_manifest(manifest)


def _binding(manifest: Mapping[str, Any]) -> Binding:
    _check_type(manifest, KINDS, binding_api.API_VERSION)
    binding = Binding.from_manifest(manifest)
    # A binding that follows another one has no placement and belongs to no policy.
    if binding.spec.placement is None and any(binding.labels.get(label) for label in _CLAIMED_BY):
        raise ManifestError("spec.placement", "is missing")
    return binding


def _check_type(manifest: Mapping[str, Any], kinds: Iterable[str], api_version: str) -> None:
    if meta.required_text(manifest, "kind", "") not in kinds:
        raise ManifestError("kind", f"expected {' or '.join(sorted(kinds))}, got {manifest['kind']!r}")
    if meta.required_text(manifest, "apiVersion", "") != api_version:
        raise ManifestError("apiVersion", f"expected {api_version!r}, got {manifest['apiVersion']!r}")


# --- writing ---


def _write_table(settled: Sequence[Placed], out: IO[str]) -> None:
    rows = [("BINDING", "TYPE", "SCHEDULED", "CLUSTERS", "MESSAGE")]
    for each in settled:
        condition = each.condition
        clusters = ", ".join(f"{target.name}:{target.replicas}" for target in each.targets)
        failed = condition is not None and condition.status != "True"
        rows.append(
            (
                each.binding.key.display,
                each.type.value,
                "-" if condition is None else condition.reason if failed else condition.status,
                clusters or "-",
                condition.message if condition is not None and failed else "",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        out.write(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n"
        )


def _write_json(settled: Sequence[Placed], out: IO[str]) -> None:
    json.dump([each.as_fields() for each in settled], out, indent=2, ensure_ascii=False)
    out.write("\n")


def _write_yaml(settled: Sequence[Placed], out: IO[str]) -> None:
    fields = [each.as_fields() for each in settled]
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yaml.dump(fields, out, Dumper=dumper, sort_keys=False, allow_unicode=True)


_WRITERS: Final = {"table": _write_table, "json": _write_json, "yaml": _write_yaml}


def _with_progress(settled: Iterable[Placed], *, total: int) -> Iterator[Placed]:
    """Draw a bar on a terminal while bindings are decided."""
    if not sys.stderr.isatty():
        yield from settled
        return
    step = max(1, total // 200)
    for number, each in enumerate(settled, 1):
        if number % step == 0 or number == total:
            bar = "#" * (40 * number // total)
            sys.stderr.write(f"\r[{bar:<40}] {number}/{total} bindings")
        yield each
    sys.stderr.write("\n")
