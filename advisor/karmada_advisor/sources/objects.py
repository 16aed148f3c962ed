"""The objects of a command that explains: clusters, bindings and policies, from files or from a live control plane."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from karmada_advisor.explain.names import nearest
from karmada_advisor.explain.policies import TemplateHead
from karmada_advisor.plan.objects import binding_key
from karmada_advisor.sources import capture
from karmada_advisor.sources.bindings import NamedBinding, named_binding, singular
from karmada_advisor.sources.control_plane import DEFAULT_NAMESPACE, context_namespace, control_plane
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import Contents, as_binding, as_cluster, as_workload, read
from karmada_advisor.state.model import SchedulerShown
from karmada_advisor.state.reading import Facts
from karmada_advisor.state.schedulers import Schedulers, schedulers_of
from karmada_advisor.state.stored import event_time, mapping, mappings
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding, BindingKey, ObjectReference
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError, read_required_text
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.dryrun.objects import ReadWorkloads
from karmada_scheduler.structs import Struct, field

__all__ = [
    "NoAnswerError",
    "Objects",
    "add_other_bindings",
    "captured",
    "gather",
]

Manifest = Mapping[str, Any]
T = TypeVar("T")

_QUOTA: Final = "FederatedResourceQuota"
_WARNINGS: Final = ("federatedresourcequotas:", "priorityclasses:")
_POLICIES: Final = ("propagationpolicies:", "clusterpropagationpolicies:")
_PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")
_SYSTEM_PRIORITY_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
"""Each API server creates them at its start."""
_FIRST_STEPS: Final = ("GetComponentsSucceed", "GetReplicasSucceed")
"""What Karmada's detector reports in each attempt before the step that may fail.

Source: karmada v1.18.2 pkg/detector/detector.go applyReplicaInterpretation.
"""


class Objects(Struct):
    """What was read.

    Attributes:
        source: For people: "files", or the URL of the API server.
        asked: What names the wanted binding, with its namespace; None if none is wanted.
        is_live: Whether they come from a control plane.
        at: When they were captured, or when the Leases were read from a control plane: whether a Lease is renewed is
            judged by that time, also later. None for files, which are of now.
        bindings: In the order of the files.
        manifests: Clusters by name, and bindings by key, as they were read.
        policies: None if they were not read.
        quotas: FederatedResourceQuotas; None if they were not read: no quota has refused a wanted binding, or they may not
            be read.
        workloads: None if none were given.
        problems: What could not be read, one line each.
        warnings: Problems without which the answer is right all the same: policies that may not be read.
        priority_classes: The names of the PriorityClasses; None if they were not read, or files have none.
        unlisted: Why bindings other than the wanted one could not be listed.
        unreadable: Of the bindings that cannot be read, the lines of ``problems``.
        leases: Of Karmada's system namespace; None if they were not read.
        no_leases: Why they could not be read; "" if they were, or nobody has asked.
        seen: The schedulers without a Lease that have left something.
        events: Of the wanted binding and its template.
    """

    source: str
    asked: NamedBinding | None = None
    is_live: bool = False
    at: datetime | None = None
    clusters: list[Cluster] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    manifests: MutableMapping[str | BindingKey, Manifest] = field(default_factory=dict)
    policies: list[Manifest] | None = None
    quotas: list[Manifest] | None = None
    priority_classes: Sequence[str] | None = None
    workloads: list[Workload] | None = None
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    unreadable: dict[BindingKey, str] = field(default_factory=dict)
    leases: Sequence[Manifest] | None = None
    no_leases: str = ""
    seen: Sequence[SchedulerShown] = ()
    events: Sequence[Manifest] = ()

    def schedulers(self, process: Mapping[str, str] | None = None) -> Schedulers:
        """Return which schedulers exist.

        Args:
            process: Names of the profiles of a process that has answered, to its name or address.
        """
        known = schedulers_of(
            self.leases, now=self.at or datetime.now(UTC), process=process, problem=self.no_leases
        )
        return known.with_seen(self.seen)

    def facts(self, process: Mapping[str, str] | None = None) -> Facts:
        """Return what is stored besides bindings; ``process`` as in ``schedulers``."""
        now = self.at or datetime.now(UTC)
        return Facts(self.schedulers(process), self.manifests.get, self.policies, now=now)

    def warning_events(self) -> list[Manifest]:
        """Return for each controller its newest Event, if that is a Warning, the newest first."""
        newest: dict[str, Manifest] = {}
        for each in sorted(self.events, key=_order_of, reverse=True):
            source = str(mapping(each.get("source")).get("component") or each.get("reportingComponent") or "")
            newest.setdefault(source, each)
        return [each for each in newest.values() if each.get("type") == "Warning"]

    def add_clusters(self, found: Iterable[tuple[Cluster, Manifest]]) -> None:
        """Add clusters with their manifests."""
        for cluster, manifest in found:
            self.clusters.append(cluster)
            self.manifests[cluster.name] = manifest

    def add_bindings(self, found: Iterable[tuple[Binding, Manifest]]) -> None:
        """Add bindings with their manifests."""
        for binding, manifest in found:
            self.bindings.append(binding)
            self.manifests[binding.key] = manifest

    def template_labels(self, resource: ObjectReference) -> Mapping[str, str] | None:
        """Return the labels of a resource template, None if it was not read."""
        for each in self.workloads or ():
            if (each.kind, each.namespace, each.name) == (resource.kind, resource.namespace, resource.name):
                return each.labels
        return None

    def unclaimed_template(self) -> TemplateHead | None:
        """Return the wanted workload if it has no binding; None if it has one, or was not read.

        Raises:
            NoAnswerError: The policies cannot be read.
        """
        if self.asked is None:
            return None
        keys, namespaces = self.asked.keys, {self.asked.namespace, ""}
        found = next((each for each in self._templates(self.asked) if each.namespace in namespaces), None)
        if found is None or any(each.key in keys for each in self.bindings):
            return None
        if self.is_live and self.policies is None:
            raise NoAnswerError(f"{self.asked.name} has no binding, and the policies cannot be read")
        return TemplateHead(found.api_version, found.kind, found.namespace, found.name, found.labels)

    def find(self) -> Binding:
        """Return the wanted binding.

        Raises:
            NoAnswerError: There is none; the text names the nearest.
        """
        assert self.asked is not None
        by_key = {each.key: each for each in self.bindings}
        keys = self.asked.keys
        for key in keys:
            if key in by_key:
                return by_key[key]
        raise NoAnswerError(_unknown(keys[0], list(by_key)))

    def locate(self, asked: NamedBinding) -> None:
        """Set ``asked``: with the only namespace that has the name, if none was given.

        Raises:
            NoAnswerError: The name means bindings of several namespaces.
        """
        known = [*(each.key for each in self.bindings), *self.unreadable]
        is_there = any(key in known for key in asked.keys)
        other = asked.other_reading
        if other is not None and other in known:
            if is_there:
                raise NoAnswerError(asked.ambiguity)
            self.asked = asked.chosen(other)
            return
        self.asked = asked
        if is_there or asked.is_namespace_given:
            return
        named = {key.name for key in asked.keys if key.kind == RESOURCE_BINDING}
        found = {key.namespace for key in known if key.kind == RESOURCE_BINDING and key.name in named}
        found |= {each.namespace for each in self._templates(asked)}
        if len(found) > 1 and asked.namespace not in found:
            raise NoAnswerError(f"{asked.name} is in {', '.join(sorted(found))}: name the namespace with -n")
        if len(found) == 1:
            self.asked = NamedBinding(asked.name, found.pop() or asked.namespace)

    def _templates(self, asked: NamedBinding) -> list[Workload]:
        """Return the workloads ``KIND/NAME`` of all namespaces."""
        kind, _, name = asked.name.rpartition("/")
        wanted = (singular(kind), name)
        return [each for each in self.workloads or () if (each.kind.lower(), each.name) == wanted]


def _order_of(event: Manifest) -> tuple[str, bool]:
    # Times are whole seconds: the first step of an attempt has the time of the failure that it precedes.
    return event_time(event), event.get("reason") not in _FIRST_STEPS


def _unknown(wanted: BindingKey, known: Sequence[BindingKey]) -> str:
    text = f"{wanted.display} does not exist"
    elsewhere = sorted({key.namespace for key in known if key.name == wanted.name and key.namespace})
    if elsewhere:
        return f"{text}. There is one in namespace {', '.join(elsewhere)}"
    near = nearest(wanted.name, {key.name for key in known if key.namespace in {wanted.namespace, ""}})
    if near:
        return f"{text}. Nearest: {near}"
    near = nearest(str(wanted), {str(key) for key in known})
    return f"{text}. Nearest: {near}" if near else text


def gather(
    arguments: argparse.Namespace,
    name: str = "",
    *,
    all_bindings: bool = False,
    others_needed: bool = True,
) -> Objects:
    """Read the objects that the flags name.

    Args:
        arguments: With the flags of ``cli.flags.shared.add_objects``.
        name: The wanted binding, as a person names it; "" if all are.
        all_bindings: Whether a control plane is asked for all bindings; files are always read in full.
        others_needed: Whether there is no answer without the other bindings; else they may be forbidden.

    Raises:
        NoAnswerError: The flags contradict each other, or nothing can be read.
    """
    if arguments.replay:
        objects = _from_capture(arguments)
    else:
        objects = _gathered(arguments, name, all_bindings=all_bindings, others_needed=others_needed)
    if name and not objects.is_live:
        objects.locate(named_binding(name, arguments.namespace, DEFAULT_NAMESPACE))
    return objects


def _gathered(
    arguments: argparse.Namespace, name: str, *, all_bindings: bool, others_needed: bool
) -> Objects:
    """Read objects from files or from a control plane; see ``gather``."""
    given = [*(arguments.clusters or ()), *(arguments.bindings or ())]
    others = [*(arguments.policies or ()), *(arguments.workloads or ())]
    if [*given, *others].count("-") > 1:
        raise NoAnswerError("standard input (-) can be read once only")
    if bool(arguments.clusters) != bool(arguments.bindings):
        raise NoAnswerError("--clusters and --bindings are used together, or not at all")
    if given:
        objects = _from_files(arguments)
    else:
        asked = None
        if name:
            default = "" if arguments.namespace else context_namespace(arguments)
            asked = named_binding(name, arguments.namespace, default)
        objects = _from_plane(arguments, asked, all_bindings=all_bindings)
    if objects.unlisted and others_needed:
        raise NoAnswerError("\n".join(objects.unlisted))
    if arguments.workloads:
        workloads = read(arguments.workloads, as_workload)
        objects.workloads = [*(objects.workloads or ()), *workloads.objects]
        objects.problems += map(str, workloads.problems)
        if objects.priority_classes is None:
            objects.priority_classes = _priority_classes(workloads.objects)
    if not objects.clusters and objects.problems:
        raise NoAnswerError(
            "\n".join([*objects.problems, "No cluster could be read, so nothing is decided."])
        )
    return objects


def captured(objects: Objects) -> dict[str, Any]:
    """Return the objects as a capture has them."""
    clusters, bindings = ([each.name for each in objects.clusters], [each.key for each in objects.bindings])
    return {
        "source": objects.source,
        "clusters": [capture.reduced(objects.manifests[name]) for name in clusters],
        "bindings": [capture.reduced(objects.manifests[key]) for key in bindings],
        "policies": None
        if objects.policies is None
        else [capture.reduced(each) for each in objects.policies],
        "quotas": None if objects.quotas is None else [capture.reduced(each) for each in objects.quotas],
        "priorityClasses": objects.priority_classes,
        "leases": None if objects.leases is None else [capture.reduced(each) for each in objects.leases],
        "noLeases": objects.no_leases,
        "events": [capture.reduced(each) for each in objects.events],
        "workloads": None
        if objects.workloads is None
        else [capture.metadata_of(each) for each in objects.workloads],
    }


def _from_capture(arguments: argparse.Namespace) -> Objects:
    others = ("clusters", "bindings", "policies", "quotas", "workloads", "kubeconfig", "context", "process")
    if named := [
        f"--{'from' if each == 'process' else each}" for each in others if getattr(arguments, each, "")
    ]:
        raise NoAnswerError(f"--replay has the objects already: leave out {', '.join(named)}")
    fields = capture.read(arguments.replay)
    at = capture.captured_at(fields)
    source = f"a capture of {at.strftime('%Y-%m-%dT%H:%M:%SZ')}"
    objects = Objects(
        source,
        at=at,
        policies=fields.get("policies"),
        quotas=fields.get("quotas"),
        priority_classes=fields["priorityClasses"],
        leases=fields.get("leases"),
        no_leases=str(fields.get("noLeases") or ""),
        events=mappings(fields.get("events")),
    )
    objects.add_clusters(_parsed(fields["clusters"], as_cluster, objects.problems))
    objects.add_bindings(_parsed(fields["bindings"], as_binding, objects.problems))
    if fields.get("workloads") is not None:
        parsed = _parsed(fields["workloads"], as_workload, objects.problems)
        objects.workloads = [each for each, _ in parsed]
    return objects


def _from_files(arguments: argparse.Namespace) -> Objects:
    if arguments.kubeconfig or arguments.context:
        raise NoAnswerError(
            "--kubeconfig and --context read a control plane, --clusters and --bindings read files"
        )
    objects = Objects("files")
    clusters: Contents[tuple[Cluster, Manifest]] = read(arguments.clusters, _with_manifest(as_cluster))
    bindings: Contents[tuple[Binding, Manifest]] = read(arguments.bindings, _with_manifest(as_binding))
    objects.add_clusters(clusters.objects)
    objects.add_bindings(bindings.objects)
    objects.problems += map(str, [*clusters.problems, *bindings.problems])
    if arguments.policies:
        policies: Contents[Manifest] = read(arguments.policies, _as_policy)
        objects.policies = policies.objects
        objects.problems += map(str, policies.problems)
    if getattr(arguments, "quotas", None):
        quotas: Contents[Manifest] = read(arguments.quotas, _as_quota)
        objects.quotas = quotas.objects
        objects.problems += map(str, quotas.problems)
    return objects


def _from_plane(arguments: argparse.Namespace, asked: NamedBinding | None, *, all_bindings: bool) -> Objects:
    from karmada_advisor.sources import live  # the client, which files do not need

    found = live.read_live(
        control_plane(arguments), asked, all_bindings=all_bindings, timeout=arguments.request_timeout
    )
    objects = Objects(
        found.server,
        found.asked or asked,
        unlisted=found.unlisted,
        is_live=True,
        at=found.at,
        leases=found.leases,
        no_leases=found.no_leases,
        seen=found.seen,
        events=found.events,
    )
    if found.no_leases:
        objects.warnings.append(f"leases: which schedulers exist is not known: {found.no_leases}")
    if found.no_events:
        objects.warnings.append(f"events: what controllers have reported is not known: {found.no_events}")
    for each in found.problems:
        (objects.warnings if each.startswith((*_POLICIES, *_WARNINGS)) else objects.problems).append(each)
    if not any(each.startswith(_POLICIES) for each in objects.warnings):
        objects.policies = list(found.policies)
    objects.quotas = None if found.quotas is None else list(found.quotas)
    objects.priority_classes = found.priority_classes
    objects.add_clusters(_parsed(found.clusters, as_cluster, objects.problems))
    objects.add_bindings(_parsed(found.bindings, as_binding, objects.problems, objects.unreadable))
    if found.templates:
        objects.workloads = [each for each, _ in _parsed(found.templates, as_workload, objects.problems)]
    return objects


def _priority_classes(given: Iterable[Workload]) -> list[str] | None:
    """Return the names of the PriorityClasses that exist if some objects are such; None if none is one."""
    found = [each.name for each in given if (each.api_version, each.kind) == _PRIORITY_CLASS]
    return [*found, *_SYSTEM_PRIORITY_CLASSES] if found else None


def add_other_bindings(arguments: argparse.Namespace, objects: Objects) -> None:
    """Read all bindings of the control plane; if that fails, it is a warning, because one binding is explained."""
    from karmada_advisor.sources import live

    try:
        found = live.read_bindings(control_plane(arguments), timeout=arguments.request_timeout)
    except NoAnswerError as error:
        objects.warnings.append(f"bindings: {error}")
        return
    objects.warnings += found.problems
    known = {each.key for each in objects.bindings}
    parsed = _parsed(found.bindings, as_binding, objects.warnings)
    objects.add_bindings((each, manifest) for each, manifest in parsed if each.key not in known)


def workload_reader(arguments: argparse.Namespace, objects: Objects) -> ReadWorkloads | None:
    """Return what reads the metadata of the workloads of all bindings from the control plane; None for files."""
    if not objects.is_live or objects.workloads is not None:
        return None

    def read_all() -> tuple[list[Workload], str]:
        from karmada_advisor.sources import live

        plane = control_plane(arguments)
        resources = [each.spec.resource for each in objects.bindings]
        try:
            found, problems = live.read_workloads(plane, resources, timeout=arguments.request_timeout)
        except NoAnswerError as error:
            return [], str(error)
        return [each for each, _ in _parsed(found, as_workload, problems)], "; ".join(problems)

    return read_all


def _parsed(
    manifests: Iterable[Manifest],
    parse: Callable[[Manifest], T],
    problems: list[str],
    bindings: dict[BindingKey, str] | None = None,
) -> Iterable[tuple[T, Manifest]]:
    """Yield the objects that can be read; add a problem for each other one, to ``bindings`` by its key."""
    for manifest in manifests:
        try:
            yield parse(manifest), manifest
        except ManifestError as problem:
            metadata = manifest.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
            problems.append(f"{manifest.get('kind')} {name}: {problem}")
            if bindings is not None:
                bindings[binding_key(manifest)] = problems[-1]


def _with_manifest(parse: Callable[[Manifest], T]) -> Callable[[Manifest], tuple[T, Manifest]]:
    return lambda manifest: (parse(manifest), manifest)


def _as_policy(manifest: Manifest) -> Manifest:
    if read_required_text(manifest, "kind", "") not in ID_LABELS:
        raise ManifestError("kind", f"expected {' or '.join(ID_LABELS)}, got {manifest['kind']!r}")
    return manifest


def _as_quota(manifest: Manifest) -> Manifest:
    if read_required_text(manifest, "kind", "") != _QUOTA:
        raise ManifestError("kind", f"expected {_QUOTA}, got {manifest['kind']!r}")
    return manifest
