"""Reads the objects of a question: from files, from a capture, or from a live control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from karmada_advisor.fleet import capture
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import as_binding, as_cluster, as_policy, as_workload, read
from karmada_advisor.fleet.fleet import Fleet, NamesPriorityClass, no_priority_class, parsed
from karmada_advisor.fleet.named_binding import named_binding
from karmada_advisor.fleet.source import DEFAULT_NAMESPACE, ControlPlane, FleetSource
from karmada_advisor.state.quota import KIND, read_quota
from karmada_advisor.state.stored import Manifest, binding_key, value_at
from karmada_scheduler.api.binding import KINDS, Binding
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.dryrun.objects import ReadWorkloads

T = TypeVar("T")

_PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")
SYSTEM_PRIORITY_CLASSES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""Those that an API server makes itself, with their values."""
"""Each API server creates them at its start."""


def read_fleet(
    source: FleetSource,
    name: str = "",
    *,
    all_bindings: bool = False,
    others_needed: bool = True,
    may_lack: bool = False,
    names_priority_class: NamesPriorityClass = no_priority_class,
) -> Fleet:
    """Read the objects of a question.

    Args:
        source: Where they are.
        name: The wanted binding, as a person names it; "" if all are.
        all_bindings: Whether a control plane is asked for all bindings; files are always read in full.
        others_needed: Whether there is no answer without the other bindings; else they may be forbidden.
        may_lack: As in ``live.read_live``; it says what is not known then.
        names_priority_class: As in ``live.read_live``.

    Raises:
        NoAnswerError: The source contradicts itself, or nothing can be read.
    """
    if source.replay:
        fleet = capture.fleet_of_capture(source.replay)
    else:
        if _names_files(source):
            fleet = _from_files(source)
        else:
            from karmada_advisor.fleet import live  # the client, which files do not need

            asked = None
            if name:
                default = "" if source.namespace else source.plane.default_namespace()
                asked = named_binding(name, source.namespace, default)
            fleet = live.read_live(
                source.plane,
                asked,
                all_bindings=all_bindings,
                may_lack=may_lack,
                names_priority_class=names_priority_class,
            )
        _add_workloads(source, fleet)
        if not fleet.clusters and fleet.problems and not may_lack:
            end = "No cluster could be read, so nothing is decided."
            raise NoAnswerError("\n".join([*fleet.problems, end]))
    if fleet.unlisted and others_needed and all_bindings and not may_lack:
        raise NoAnswerError("\n".join(fleet.unlisted))
    if name and not fleet.is_live:
        fleet.locate(named_binding(name, source.namespace, DEFAULT_NAMESPACE))
    return fleet


def _names_files(source: FleetSource) -> bool:
    """Return whether a source names files.

    Raises:
        NoAnswerError: The files contradict each other, or a control plane is named, too.
    """
    given = [*source.clusters, *source.bindings]
    if [*given, *source.policies, *source.workloads].count("-") > 1:
        raise NoAnswerError("standard input (-) can be read once only")
    if bool(source.clusters) != bool(source.bindings):
        raise NoAnswerError("--clusters and --bindings are used together, or not at all")
    if given and (source.plane.kubeconfig or source.plane.context):
        text = "--kubeconfig and --context read a control plane, --clusters and --bindings read files"
        raise NoAnswerError(text)
    return bool(given)


def _add_workloads(source: FleetSource, fleet: Fleet) -> None:
    if source.workloads:
        found = read(source.workloads, lambda manifest: (as_workload(manifest), manifest))
        workloads = [workload for workload, _ in found.objects]
        fleet.workloads = [*(fleet.workloads or ()), *workloads]
        fleet.problems += map(str, found.problems)
        unread = {workload.kind for workload in workloads if ".karmada.io/" in workload.api_version}
        fleet.warnings += [f"{kind}: objects of this kind are not read" for kind in sorted(unread)]
        for workload, manifest in found.objects:
            replicas = value_at(manifest, "spec", "replicas")
            if workload.api_version == "apps/v1" and isinstance(replicas, int):
                fleet.template_replicas[f"{workload.kind}/{workload.namespace}/{workload.name}"] = replicas
        if fleet.priority_classes is None:
            fleet.priority_classes = _priority_classes(workloads)


def _from_files(source: FleetSource) -> Fleet:
    fleet = Fleet("files")
    whole = fleet.coverage.whole

    def objects(
        paths: Sequence[str], parse: Callable[[Manifest], T], *kinds: str
    ) -> list[tuple[T, Manifest]]:
        found = read(paths, lambda manifest: (parse(manifest), manifest))
        fleet.problems += map(str, found.problems)
        whole.update(kinds)
        return found.objects

    fleet.add_clusters(objects(source.clusters, as_cluster, CLUSTER))

    def readable(manifest: Manifest) -> Binding:
        try:
            return as_binding(manifest)
        except ManifestError as problem:
            fleet.unreadable[binding_key(manifest)] = str(problem)
            raise

    fleet.add_bindings(objects(source.bindings, readable, *KINDS))
    if source.policies:
        fleet.policies = [policy for _, policy in objects(source.policies, as_policy, *ID_LABELS)]
    if source.quotas:
        fleet.quotas = [quota for _, quota in objects(source.quotas, read_quota, KIND)]
    return fleet


def _priority_classes(given: Iterable[Workload]) -> list[str] | None:
    """Return the names of the PriorityClasses that exist if some objects are such; None if none is one."""
    found = [manifest.name for manifest in given if (manifest.api_version, manifest.kind) == _PRIORITY_CLASS]
    return [*found, *SYSTEM_PRIORITY_CLASSES] if found else None


def add_other_bindings(plane: ControlPlane, objects: Fleet) -> None:
    """Read all bindings of the control plane; if that fails, it is a warning, because one binding is explained."""
    from karmada_advisor.fleet import live

    try:
        found = live.read_bindings(plane)
    except NoAnswerError as error:
        objects.warnings.append(f"bindings: {error}")
        return
    objects.warnings += found.problems
    known = {binding.key for binding in objects.bindings}
    others = [binding for binding in found.bindings if binding.key not in known]
    objects.add_bindings((binding, found.manifests[binding.key]) for binding in others)


def workload_reader(plane: ControlPlane, objects: Fleet) -> ReadWorkloads | None:
    """Return what reads the metadata of the workloads of all bindings from the control plane; None for files."""
    if not objects.is_live or objects.workloads is not None:
        return None

    def read_all() -> tuple[list[Workload], str]:
        from karmada_advisor.fleet import live

        resources = [binding.spec.resource for binding in objects.bindings]
        try:
            found, problems = live.read_workloads(plane, resources)
        except NoAnswerError as error:
            return [], str(error)
        return [workload for workload, _ in parsed(found, as_workload, problems)], "; ".join(problems)

    return read_all
