"""The workloads of bindings, from files or from a control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.workload import Workload, WorkloadAnswer

ReadWorkloads = Callable[[], tuple[Iterable[Workload], str]]
"""Returns workloads, and why others could not be read; "" if all were."""

NONE_GIVEN = WorkloadAnswer(problem="no --workloads were given")


class Workloads:
    """The metadata for plugins with ``needs_workload``; versions of an API group are ignored, as kubectl may write any."""

    def __init__(self, found: Iterable[Workload] | None, *, read: ReadWorkloads | None = None) -> None:
        """Use workloads.

        Args:
            found: Those of the files; None without files.
            read: Reads those of a control plane, when the first one is needed; None without one.
        """
        self._found = None if found is None else {_identity(each): each for each in found}
        self._read = read
        self._unread = ""

    def of(self, binding: Binding) -> WorkloadAnswer:
        """Return the metadata of the workload of a binding, or why there is none."""
        if self._found is None and self._read is not None:
            workloads, self._unread = self._read()
            self._found = {_identity(each): each for each in workloads}
        if self._found is None:
            return NONE_GIVEN
        resource = binding.spec.resource
        named = Workload(resource.api_version, resource.kind, resource.namespace, resource.name)
        shown = (
            f"{named.kind} {named.namespace}/{named.name}"
            if named.namespace
            else f"{named.kind} {named.name}"
        )
        found = self._found.get(_identity(named))
        if found is None:
            where = "cannot be read" if self._read is not None else "is not in the files of --workloads"
            return WorkloadAnswer(
                problem=": ".join(each for each in (f"{shown} {where}", self._unread) if each)
            )
        if found.uid and resource.uid and found.uid != resource.uid:
            return WorkloadAnswer(
                problem=f"{shown} has the uid {found.uid}, the binding names {resource.uid}: it was created again"
            )
        return WorkloadAnswer(found)


def _identity(workload: Workload) -> tuple[str, str, str, str]:
    group = workload.api_version.partition("/")[0] if "/" in workload.api_version else ""
    return group, workload.kind, workload.namespace, workload.name
