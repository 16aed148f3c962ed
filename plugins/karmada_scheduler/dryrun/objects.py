"""The frameworks of a dry run, and the objects that their plugins see, with the decisions so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.result import as_written
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.handle import BindingFollower, PluginHandle, WaitingBinding
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.waiting_bindings import PendingPermit, WaitingBindingView
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.framework.workload import UndeclaredWorkloadError
from karmada_scheduler.structs import Struct, field, replace


class Frameworks(Struct, frozen=True):
    """The plugins of each profile.

    Attributes:
        of: Returns the plugins of a binding's profile; None if another scheduler is responsible.
        names: The names of the profiles; None if every binding is decided.
        declaring: Whether a profile declares that it needs workloads, by name.
        any: The plugins of the first profile.
    """

    of: Callable[[Binding], Framework | None]
    names: frozenset[str] | None
    declaring: Mapping[str, bool]
    any: Framework
    has_own_plugins: bool = False
    """Whether a profile has plugins of the user's own, which may read other bindings."""
    has_guards: bool = False
    """Whether a profile has Guard plugins, which may count the moves of other bindings."""
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By profile, the plugins of the process that decides whose code is not here."""

    @classmethod
    def only(cls, framework: Framework) -> Frameworks:
        """Return one profile that decides about every binding."""
        return cls(lambda _: framework, None, {}, framework)

    @property
    def all_missing(self) -> tuple[str, ...]:
        """The missing plugins of all profiles."""
        return tuple(sorted({name for names in self.missing.values() for name in names}))


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
        self._found = None if found is None else {_identity(workload): workload for workload in found}
        self._read = read
        self._unread = ""

    def of(self, binding: Binding) -> WorkloadAnswer:
        """Return the metadata of the workload of a binding, or why there is none."""
        if self._found is None and self._read is not None:
            workloads, self._unread = self._read()
            self._found = {_identity(workload): workload for workload in workloads}
        if self._found is None:
            return NONE_GIVEN
        resource = binding.spec.resource
        named = Workload(resource.api_version, resource.kind, resource.namespace, resource.name)
        shown = f"{named.kind} {'/'.join(part for part in (named.namespace, named.name) if part)}"
        found = self._found.get(_identity(named))
        if found is None:
            where = "cannot be read" if self._read is not None else "is not in the files of --workloads"
            return WorkloadAnswer(
                problem=": ".join(part for part in (f"{shown} {where}", self._unread) if part)
            )
        if found.uid and resource.uid and found.uid != resource.uid:
            return WorkloadAnswer(
                problem=f"{shown} has the uid {found.uid}, the binding names {resource.uid}: it was created again"
            )
        return WorkloadAnswer(found)


def _identity(workload: Workload) -> tuple[str, str, str, str]:
    group = workload.api_version.partition("/")[0] if "/" in workload.api_version else ""
    return group, workload.kind, workload.namespace, workload.name


class WaitingDecision(Struct, frozen=True):
    """A decision that waits at Permit, without a timeout.

    Attributes:
        context: The context that the plugins got.
        permit: Until all plugins have allowed it, or one has rejected it.
    """

    context: BindContext
    decision: Decision
    permit: PendingPermit

    @property
    def view(self) -> WaitingBinding:
        """It for plugins."""
        return WaitingBindingView(self.permit, lambda _: self.context.workload)


class SimulatedBindings:
    """The bindings of the files, with the decisions so far; implements ``framework.cycle.Peers``."""

    def __init__(self, bindings: Iterable[Binding], clock: Callable[[], float] = time.time) -> None:
        """Start with the bindings of the files; ``clock`` has the time of decisions, in seconds since 1970."""
        self._clock = clock
        self._followers: list[BindingFollower] = []
        self.replace(bindings)

    def follow(self, follower: BindingFollower) -> None:
        """Call a function after every change."""
        self._followers.append(follower)

    def replace(self, bindings: Iterable[Binding]) -> None:
        """Start again with other bindings."""
        self.waiting: dict[BindingKey, WaitingDecision] = {}
        self._bindings: dict[BindingKey, Binding] = {}
        self._keys: dict[tuple[int, str], list[BindingKey]] = {}
        for binding in bindings:
            self._bindings[binding.key] = binding
            for kind, group in enumerate(binding.spec.workload_affinity_groups or ()):
                self._keys.setdefault((kind, group), []).append(binding.key)
        for follower in self._followers:
            follower(None, None)

    def __iter__(self) -> Iterator[Binding]:
        return iter(self._bindings.values())

    def values(self) -> Iterable[Binding]:
        """Return all bindings."""
        return self._bindings.values()

    def get(self, key: BindingKey) -> Binding | None:
        """Return a binding, None if the files do not have it."""
        return self._bindings.get(key)

    def at_permit(self) -> Iterable[WaitingBinding]:
        """Return the bindings that wait at Permit."""
        return [wait.view for wait in self.waiting.values()]

    def place(self, binding: Binding, decision: Decision) -> None:
        """Store a decision as the scheduler would write it."""
        at = datetime.fromtimestamp(self._clock(), UTC)
        old, new = self._bindings.get(binding.key), as_written(binding, decision, at)
        self._bindings[binding.key] = new
        for follower in self._followers:
            follower(old, new)

    @property
    def in_flight(self) -> list[Binding]:
        """The bindings that wait at Permit, with the clusters that they would get."""
        return [
            _with_targets(wait.permit.binding, tuple(wait.context.targets)) for wait in self.waiting.values()
        ]

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return the bindings of an affinity group."""
        return [self._bindings[key] for key in self._keys.get((0, group), ())]

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return the bindings of an anti-affinity group."""
        return [self._bindings[key] for key in self._keys.get((1, group), ())]


def _with_targets(binding: Binding, targets: tuple[TargetCluster, ...]) -> Binding:
    return replace(binding, spec=replace(binding.spec, clusters=targets))


class ShownObjects:
    """The objects that plugins see through their handles, until others are shown.

    Attributes:
        snapshot: The clusters.
        bindings: The bindings, with the decisions so far.
        workloads: The workloads of all bindings.
    """

    def __init__(self, workloads: Workloads, *, clock: Callable[[], float] = time.time) -> None:
        """Show no clusters and no bindings; ``clock`` is that of the handles, in seconds since 1970."""
        self.snapshot = Snapshot()
        self.bindings = SimulatedBindings((), clock)
        self.workloads = workloads
        self._clock = clock
        self._frameworks: Frameworks | None = None

    def show(self, snapshot: Snapshot, bindings: Iterable[Binding]) -> None:
        """Show other clusters and bindings; no binding waits at Permit."""
        self.snapshot = snapshot
        self.bindings.replace(bindings)

    def handle_for(self, profile: str) -> PluginHandle:
        """Return the handle of the plugins of a profile."""
        return PluginHandle(
            profile,
            lambda: self.snapshot,
            self.bindings,
            self._clock,
            self._workload_for,
            self.bindings.at_permit,
            self.bindings.follow,
        )

    def show_workloads_to(self, frameworks: Frameworks) -> None:
        """Show the workloads of bindings to the plugins that need them; before, as these are built, there are none."""
        self._frameworks = frameworks

    def stored_workload(self, key: BindingKey) -> Workload | None:
        """Return the workload of a binding whose profile needs it; None if the files do not have it."""
        binding = self.bindings.get(key)
        if binding is None or binding.spec.placement is None or self._frameworks is None:
            return None
        framework = self._frameworks.of(binding)
        if framework is None or not framework.needs_workload:
            return None
        return self.workloads.of(binding).workload

    def _workload_for(self, profile: str, key: BindingKey) -> Workload | None:
        """Return the workload of a binding for the plugins of a profile.

        Raises:
            UndeclaredWorkloadError: The profile does not declare that it needs workloads.
        """
        if self._frameworks is not None and not self._frameworks.declaring.get(profile, True):
            raise UndeclaredWorkloadError
        return self.stored_workload(key)
