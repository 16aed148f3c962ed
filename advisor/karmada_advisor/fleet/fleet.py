"""What a command has gathered: clusters, bindings and policies, and which of the bindings it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.named_binding import NamedBinding, does_not_exist, singular
from karmada_advisor.state.model import SchedulerShown
from karmada_advisor.state.quota import Quota, enforced, read_quota
from karmada_advisor.state.reading import Facts
from karmada_advisor.state.schedulers import Schedulers, schedulers_of
from karmada_advisor.state.stored import Manifest, binding_key, event_time, mapping, text_of
from karmada_scheduler.api.binding import KINDS, RESOURCE_BINDING, Binding, BindingKey, ObjectReference
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.structs import Struct, field

_FIRST_STEPS: Final = ("GetComponentsSucceed", "GetReplicasSucceed")
"""What Karmada's detector reports in each attempt before the step that may fail.

Source: karmada v1.18.2 pkg/detector/detector.go applyReplicaInterpretation.
"""

T = TypeVar("T")
NamesPriorityClass = Callable[[Sequence[Manifest], Manifest], bool]
"""Returns whether the policy that claims a template names a PriorityClass."""


def no_priority_class(_policies: Sequence[Manifest], _template: Manifest) -> bool:
    """Return that none is named."""
    return False


class Coverage(Struct):
    """What was read of a fleet, by kind. A kind that is in neither was not looked at as a whole.

    Attributes:
        whole: All objects of these were read; those that cannot be used are problems.
        refused: Why objects of a kind could not be listed.
    """

    whole: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)


class Fleet(Struct):
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
        quotas: FederatedResourceQuotas, of a control plane those of the namespace of the wanted binding; None if they were
            not read.
        taint_policies: ClusterTaintPolicies of a capture; None if they were not read.
        workloads: None if none were given; of a control plane, the wanted one if it has no binding.
        template_replicas: ``spec.replicas`` of the templates of apps/v1 that files have, by ``KIND/NAMESPACE/NAME``.
        problems: What could not be read, one line each.
        warnings: Problems without which the answer is right all the same: policies that may not be read.
        priority_classes: The names of the PriorityClasses; None if they were not read: the wanted workload has a binding, or no
            policy that claims it names one; or files have none.
        coverage: Of which kinds all objects were read, and which could not be read.
        unreadable: Why bindings cannot be read; there are lines of ``problems`` about them, too.
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
    taint_policies: list[Manifest] | None = None
    priority_classes: Sequence[str] | None = None
    workloads: list[Workload] | None = None
    template_replicas: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    unreadable: dict[BindingKey, str] = field(default_factory=dict)
    leases: Sequence[Manifest] | None = None
    no_leases: str = ""
    seen: Sequence[SchedulerShown] = ()
    events: Sequence[Manifest] = ()

    @property
    def unlisted(self) -> list[str]:
        """Why bindings other than the wanted one could not be listed."""
        return [text for kind, text in self.coverage.refused.items() if kind in KINDS]

    @property
    def unread_notes(self) -> tuple[str, ...]:
        """That an answer is made without what cannot be read; empty if all can be."""
        if not self.problems:
            return ()
        more = f" and {len(self.problems) - 1:,} more" if len(self.problems) > 1 else ""
        return (f"not judged, as it cannot be read: {self.problems[0]}{more}",)

    def schedulers(self, process: Mapping[str, str] | None = None) -> Schedulers:
        """Return which schedulers exist.

        Args:
            process: Names of the profiles of a process that has answered, to its name or address.
        """
        now, problem = self.at or datetime.now(UTC), self.no_leases
        return schedulers_of(self.leases, now=now, process=process, problem=problem).with_seen(self.seen)

    def facts(self, process: Mapping[str, str] | None = None) -> Facts:
        """Return what is stored besides bindings; ``process`` as in ``schedulers``."""
        now = self.at or datetime.now(UTC)
        known = self.schedulers(process)
        return Facts(known, self.manifests.get, self.policies, self.template_replicas, now=now)

    def warning_events(self) -> list[Manifest]:
        """Return for each controller its newest Event, if that is a Warning, the newest first."""
        newest: dict[str, Manifest] = {}
        for each in sorted(self.events, key=_order_of, reverse=True):
            source = str(mapping(each.get("source")).get("component") or each.get("reportingComponent") or "")
            newest.setdefault(source, each)
        return [event for event in newest.values() if event.get("type") == "Warning"]

    def quotas_of(self, namespace: str) -> dict[Quota, bool] | None:
        """Return the quotas of a namespace that Karmada enforces, or may enforce, and whether that is sure.

        None if quotas were not read; what has no namespace has none. One that the API server cannot have stored counts for
        nothing.
        """
        if self.quotas is None:
            return None if namespace else {}
        mine = (quota for quota in self.quotas if text_of(quota, "metadata", "namespace") == namespace)
        has_all = RESOURCE_BINDING in self.coverage.whole
        quotas = [quota for quota, _ in parsed(mine, read_quota, [])]
        return enforced(quotas, self.bindings, has_all=has_all)

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
        for workload in self.workloads or ():
            if reference_of(workload) == reference_of(resource):
                return workload.labels
        return None

    def unclaimed_template(self) -> Workload | None:
        """Return the wanted workload if it has no binding; None if it has one, or was not read.

        Raises:
            NoAnswerError: The policies cannot be read.
        """
        if self.asked is None:
            return None
        keys, namespaces = self.asked.keys, {self.asked.namespace, ""}
        found = next((each for each in self._templates(self.asked) if each.namespace in namespaces), None)
        group = self.asked.group
        bound = (each for each in self.bindings if group in {"", reference_of(each.spec.resource)[0]})
        if found is None or any(binding.key in keys for binding in bound):
            return None
        if self.is_live and self.policies is None:
            raise NoAnswerError(f"{self.asked.name} has no binding, and the policies cannot be read")
        return found

    def find(self) -> Binding:
        """Return the wanted binding.

        Raises:
            NoAnswerError: There is none; the text names the nearest.
        """
        assert self.asked is not None
        by_key = {binding.key: binding for binding in self.bindings}
        keys = self.asked.keys
        for key in keys:
            if key in by_key:
                group, kind, *_ = reference_of(by_key[key].spec.resource)
                if self.asked.group not in {"", group}:
                    raise NoAnswerError(
                        f"{self.asked.name} has no binding: {key.display} is of {kind}.{group}"
                    )
                return by_key[key]
            if key in self.unreadable:
                raise NoAnswerError(f"{key.display} cannot be read: {self.unreadable[key]}")
        raise NoAnswerError(does_not_exist(keys[0], by_key))

    def locate(self, asked: NamedBinding) -> None:
        """Set ``asked``: with the only namespace that has the name, if none was given.

        Raises:
            NoAnswerError: The name means bindings of several namespaces, or workloads of several kinds.
        """
        known = [*(binding.key for binding in self.bindings), *self.unreadable]
        is_there = any(key in known for key in asked.keys)
        other = asked.other_reading
        if other is not None and other in known:
            if is_there:
                raise NoAnswerError(asked.ambiguity)
            self.asked = asked.chosen(other)
            return
        self.asked = asked
        if not is_there and (key := asked.of_workload(known)) is not None:
            self.asked = NamedBinding(key.name, key.namespace or asked.namespace)
            return
        if is_there or asked.is_namespace_given:
            return
        named = {key.name for key in asked.keys if key.kind == RESOURCE_BINDING}
        found = {key.namespace for key in known if key.kind == RESOURCE_BINDING and key.name in named}
        found |= {template.namespace for template in self._templates(asked)}
        if len(found) > 1 and asked.namespace not in found:
            raise NoAnswerError(f"{asked.name} is in {', '.join(sorted(found))}: name the namespace with -n")
        if len(found) == 1:
            self.asked = NamedBinding(asked.name, found.pop() or asked.namespace)

    def _templates(self, asked: NamedBinding) -> list[Workload]:
        """Return the workloads ``KIND/NAME`` of all namespaces."""
        kind, _, name = asked.name.rpartition("/")
        wanted = (singular(kind), name)
        named = [each for each in self.workloads or () if (each.kind.lower(), each.name) == wanted]
        return [workload for workload in named if asked.group in {"", reference_of(workload)[0]}]


def parsed(
    manifests: Iterable[Manifest],
    parse: Callable[[Manifest], T],
    problems: list[str],
    bindings: dict[BindingKey, str] | None = None,
) -> Iterator[tuple[T, Manifest]]:
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


def reference_of(template: Workload | ObjectReference) -> tuple[str, str, str, str]:
    """Return API group, kind, namespace and name of a template: its versions are one."""
    return template.api_version.rpartition("/")[0], template.kind, template.namespace, template.name


def _order_of(event: Manifest) -> tuple[str, bool, bool]:
    # Times are whole seconds: the first step of an attempt has the time of the failure that it precedes, and the detector
    # tries again within a second after a conflict.
    reason = event.get("reason")
    return event_time(event), reason not in _FIRST_STEPS, reason == "ApplyPolicySucceed"
