"""Templates of workloads that have no binding: no policy claims them, so they run nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada_advisor.claims.template import is_skipped_namespace
from karmada_advisor.fleet.fleet import Fleet, reference_of
from karmada_scheduler.api.workload import Workload

_RUNNING: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "Pod"),
)
"""The built-in kinds that run Pods; without a binding, others such as a ConfigMap are no workload that runs nowhere."""


def running_kinds(fleet: Fleet) -> list[tuple[str, str]]:
    """Return apiVersion and kind of templates that run Pods: the built-in ones, and those of bindings with replicas."""
    references = (each.spec.resource for each in fleet.bindings if each.spec.is_workload)
    others = {(each.api_version, each.kind) for each in references if "." in reference_of(each)[0]}
    return [*_RUNNING, *sorted(others)]


def without_binding(fleet: Fleet, templates: Iterable[Workload]) -> list[Workload]:
    """Return the templates that run Pods and have no binding, in the order of names.

    Those that belong to another object, are being deleted, or are in a namespace that is never propagated are left out.
    """
    bound = {reference_of(each.spec.resource) for each in fleet.bindings}
    unreadable = {(key.namespace, key.name) for key in fleet.unreadable}
    kinds = {(version.rpartition("/")[0], kind) for version, kind in running_kinds(fleet)}
    found = (
        each
        for each in templates
        if reference_of(each)[:2] in kinds
        and reference_of(each) not in bound
        and (each.namespace, f"{each.name}-{each.kind}".lower()) not in unreadable
        and not (each.deleting or each.owner_references or is_skipped_namespace(each.namespace))
    )
    return sorted(found, key=lambda each: (each.kind, each.namespace, each.name))
