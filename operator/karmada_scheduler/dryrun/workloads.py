"""The workloads of bindings, from files or from a control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.workload import UndeclaredWorkloadError

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


class StoredWorkloads:
    """The workloads of other bindings, as plugins get them from ``Handle.workload`` and ``PeerContext.workload``.

    Attributes:
        framework_of: Returns the plugins of a binding's profile; set when the plugins are built.
        declaring: Whether a profile declares that it needs workloads, by name; set when the plugins are built.
    """

    def __init__(self, workloads: Workloads, binding_of: Callable[[BindingKey], Binding | None]) -> None:
        """``binding_of`` returns a binding by its key, None if the files do not have it."""
        self.framework_of: Callable[[Binding], Framework | None] = lambda _: None
        self.declaring: Mapping[str, bool] = {}
        self._workloads = workloads
        self._binding_of = binding_of

    def of(self, key: BindingKey) -> Workload | None:
        """Return the workload of a binding whose profile needs it; None if the files do not have it."""
        binding = self._binding_of(key)
        if binding is None or binding.spec.placement is None:
            return None
        framework = self.framework_of(binding)
        if framework is None or not framework.needs_workload:
            return None
        return self._workloads.of(binding).workload

    def for_profile(self, profile: str, key: BindingKey) -> Workload | None:
        """Return the workload of a binding for the plugins of a profile.

        Raises:
            UndeclaredWorkloadError: The profile does not declare that it needs workloads.
        """
        if not self.declaring.get(profile, True):
            raise UndeclaredWorkloadError
        return self.of(key)


def _identity(workload: Workload) -> tuple[str, str, str, str]:
    group = workload.api_version.partition("/")[0] if "/" in workload.api_version else ""
    return group, workload.kind, workload.namespace, workload.name
