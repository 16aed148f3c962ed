"""Reads the objects of a command: from files, from a capture, or from a live control plane."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from karmada_advisor.sources import capture
from karmada_advisor.sources.bindings import named_binding
from karmada_advisor.sources.control_plane import DEFAULT_NAMESPACE, context_namespace, control_plane
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import Contents, as_binding, as_cluster, as_workload, of_kind, read
from karmada_advisor.sources.gathered import Objects, parsed
from karmada_advisor.state.stored import Manifest, mappings
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.dryrun.objects import ReadWorkloads

T = TypeVar("T")

_QUOTA: Final = "FederatedResourceQuota"
_PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")
_SYSTEM_PRIORITY_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
"""Each API server creates them at its start."""


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
    given = [*arguments.clusters, *arguments.bindings]
    if [*given, *arguments.policies, *arguments.workloads].count("-") > 1:
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
        from karmada_advisor.sources import live  # the client, which files do not need

        objects = live.read_live(control_plane(arguments), asked, all_bindings=all_bindings)
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
    return {
        "source": objects.source,
        "clusters": [capture.reduced(objects.manifests[each.name]) for each in objects.clusters],
        "bindings": [capture.reduced(objects.manifests[each.key]) for each in objects.bindings],
        "policies": capture.all_reduced(objects.policies),
        "quotas": capture.all_reduced(objects.quotas),
        "priorityClasses": objects.priority_classes,
        "leases": capture.all_reduced(objects.leases),
        "noLeases": objects.no_leases,
        "events": capture.all_reduced(objects.events),
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
    objects.add_clusters(parsed(fields["clusters"], as_cluster, objects.problems))
    objects.add_bindings(parsed(fields["bindings"], as_binding, objects.problems))
    if fields.get("workloads") is not None:
        found = parsed(fields["workloads"], as_workload, objects.problems)
        objects.workloads = [each for each, _ in found]
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
        policies: Contents[Manifest] = read(arguments.policies, lambda each: of_kind(each, ID_LABELS))
        objects.policies = policies.objects
        objects.problems += map(str, policies.problems)
    if getattr(arguments, "quotas", None):
        quotas: Contents[Manifest] = read(arguments.quotas, lambda each: of_kind(each, [_QUOTA]))
        objects.quotas = quotas.objects
        objects.problems += map(str, quotas.problems)
    return objects


def _priority_classes(given: Iterable[Workload]) -> list[str] | None:
    """Return the names of the PriorityClasses that exist if some objects are such; None if none is one."""
    found = [each.name for each in given if (each.api_version, each.kind) == _PRIORITY_CLASS]
    return [*found, *_SYSTEM_PRIORITY_CLASSES] if found else None


def add_other_bindings(arguments: argparse.Namespace, objects: Objects) -> None:
    """Read all bindings of the control plane; if that fails, it is a warning, because one binding is explained."""
    from karmada_advisor.sources import live

    try:
        found = live.read_bindings(control_plane(arguments))
    except NoAnswerError as error:
        objects.warnings.append(f"bindings: {error}")
        return
    objects.warnings += found.problems
    known = {each.key for each in objects.bindings}
    others = [each for each in found.bindings if each.key not in known]
    objects.add_bindings((each, found.manifests[each.key]) for each in others)


def workload_reader(arguments: argparse.Namespace, objects: Objects) -> ReadWorkloads | None:
    """Return what reads the metadata of the workloads of all bindings from the control plane; None for files."""
    if not objects.is_live or objects.workloads is not None:
        return None

    def read_all() -> tuple[list[Workload], str]:
        from karmada_advisor.sources import live

        resources = [each.spec.resource for each in objects.bindings]
        try:
            found, problems = live.read_workloads(control_plane(arguments), resources)
        except NoAnswerError as error:
            return [], str(error)
        return [each for each, _ in parsed(found, as_workload, problems)], "; ".join(problems)

    return read_all


def _with_manifest(parse: Callable[[Manifest], T]) -> Callable[[Manifest], tuple[T, Manifest]]:
    return lambda manifest: (parse(manifest), manifest)
