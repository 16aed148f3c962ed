"""The workloads of bindings, from files."""

from __future__ import annotations

from collections.abc import Iterable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.workload import Workload, WorkloadAnswer

NONE_GIVEN = WorkloadAnswer(problem="no --workloads were given")


class Workloads:
    """What plugins with ``needs_workload`` are told; versions of a group do not count, as ``kubectl`` writes any of them."""

    def __init__(self, found: Iterable[Workload] | None) -> None:
        """Take the workloads of the files; None if there are no files."""
        self._found = None if found is None else {_place(each): each for each in found}

    def of(self, binding: Binding) -> WorkloadAnswer:
        """Return what is known of the workload of a binding."""
        if self._found is None:
            return NONE_GIVEN
        resource = binding.spec.resource
        named = Workload(resource.api_version, resource.kind, resource.namespace, resource.name)
        shown = (
            f"{named.kind} {named.namespace}/{named.name}"
            if named.namespace
            else f"{named.kind} {named.name}"
        )
        found = self._found.get(_place(named))
        if found is None:
            return WorkloadAnswer(problem=f"{shown} is not in the files of --workloads")
        if found.uid and resource.uid and found.uid != resource.uid:
            return WorkloadAnswer(
                problem=f"{shown} has the uid {found.uid}, the binding names {resource.uid}: it was created again"
            )
        return WorkloadAnswer(found)


def _place(workload: Workload) -> tuple[str, str, str, str]:
    group = workload.api_version.partition("/")[0] if "/" in workload.api_version else ""
    return group, workload.kind, workload.namespace, workload.name
