"""The objects that a page shows, as they were read at one time, all or those that a viewer may read; bindings as rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, Final

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.state.model import Applied, BindingEntry, BindingState, ClusterStatus, Target
from karmada_advisor.state.reading import Facts, state_of
from karmada_advisor.state.stored import condition_of
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.indexed_binding import IndexedBinding, indexed
from karmada_advisor.whynot.clusters import values_of
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.structs import Struct, field

NOT_READ: Final = "they were not read"
_NO_FACTS: Final = Facts()
_FIELDS: Final = frozenset({"region", "zone", "provider"})
_PLACES: Final = 300
"""Of them, what a box completes."""


class Share(Struct, frozen=True):
    """A part of a whole; more than the whole while a placement shrinks."""

    part: int
    whole: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.part >= self.whole


class BindingRow(BindingEntry, frozen=True):
    """One binding.

    Attributes:
        workload: Kind and name of the workload.
        replicas: What it wants in all; 0 for a workload without replicas.
        state: What is stored, and who decides.
        reason: The reason of the condition Scheduled; "" without one.
        message: The message of that condition.
        is_due: Whether its generation was not scheduled yet.
        last_scheduled: In the format of the API; "" if it never was.
    """

    workload: str
    replicas: int
    state: BindingState
    reason: str
    message: str
    is_due: bool
    policy: PolicyRef | None
    scheduler: str
    last_scheduled: str

    @property
    def placement(self) -> tuple[Target, ...]:
        """The stored clusters."""
        return self.state.clusters

    @property
    def key(self) -> BindingKey:
        """Its key."""
        return BindingKey(self.kind, self.namespace, self.name)

    @property
    def running(self) -> Share | None:
        """Clusters on which it is applied, of all that it has; None if no cluster has reported."""
        rows = [row for row in self.state.rows if row.wanted is not None]
        if all(row.applied is Applied.NOT_REPORTED for row in rows):
            return None
        return Share(sum(row.applied is Applied.YES for row in rows), len(rows))

    @property
    def ready(self) -> Share | None:
        """Replicas that are ready, of all that its clusters should run; None if no cluster has reported any."""
        rows = [row for row in self.state.rows if row.wanted is not None]
        if all(row.ready is None for row in rows):
            return None
        return Share(sum(row.ready or 0 for row in rows), sum(row.wanted or 0 for row in rows))

    def on(self, cluster: str) -> ClusterStatus | None:
        """Return what is stored about it on a cluster; None if it is not there."""
        return next((row for row in self.state.rows if row.name == cluster), None)


def row_of(
    binding: Binding, manifest: Mapping[str, Any] | None = None, facts: Facts = _NO_FACTS
) -> BindingRow:
    """Return the row of a binding.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        facts: What is stored besides it.
    """
    stored = state_of(binding, manifest or {}, facts)
    condition = condition_of(binding)
    spec, status = binding.spec, binding.status
    last = status.last_scheduled_time
    return BindingRow(
        kind=binding.key.kind,
        namespace=binding.key.namespace,
        name=binding.key.name,
        workload=f"{spec.resource.kind} {spec.resource.name}".strip(),
        replicas=spec.replicas,
        state=stored,
        reason=condition.reason,
        message=condition.message,
        is_due=status.scheduler_observed_generation != binding.generation,
        policy=policy_of(binding.annotations),
        scheduler=spec.responsible_scheduler,
        last_scheduled="" if last is None else format_time(last),
    )


class PageContents(Struct, frozen=True, eq=False, dict=True):
    """Clusters and bindings; a reading without a difference keeps them, with all that was computed from them.

    Attributes:
        objects: The same as the commands read, for those who compute answers.
        facts: What is stored besides the bindings.
        taint_policies: ClusterTaintPolicies; None if they are not known.
        templates: Those that run Pods and had no binding when they were read.
        unread_templates: Why there may be others; "" if all were read.
        watched: The index that watches update; None for one of these bindings.
        rendered_rows: Rows of lists as HTML, which later contents may have, too; ``Pages.binding_rows`` puts them there.
        shown_clusters: Clusters by name without what is on them, which parts of a fleet have, too; ``fleet.clusters_of`` puts them
            there.
    """

    objects: Fleet
    facts: Facts = field(default_factory=Facts)
    taint_policies: Sequence[Mapping[str, Any]] | None = None
    templates: Sequence[Workload] = ()
    unread_templates: str = NOT_READ
    watched: BindingIndex | None = None
    rendered_rows: OrderedDict[tuple[object, ...], str] = field(default_factory=OrderedDict)
    shown_clusters: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def cluster_by_name(self) -> Mapping[str, Cluster]:
        """The clusters by name."""
        return {cluster.name: cluster for cluster in self.objects.clusters}

    @cached_property
    def places(self) -> Sequence[str]:
        """What clusters have in common, as ``region=VALUE``: regions, zones and providers, then labels; some of them."""
        found = sorted(values_of(self.objects.clusters))
        return sorted(found, key=lambda each: each.partition("=")[0] not in _FIELDS)[:_PLACES]

    @cached_property
    def index(self) -> BindingIndex:
        """The bindings in lists, counted."""
        if self.watched is not None:
            return self.watched
        return BindingIndex(
            indexed(binding, self.objects.manifests.get(binding.key), self.facts)
            for binding in {binding.key: binding for binding in self.objects.bindings}.values()
        )

    def row(self, found: IndexedBinding) -> BindingRow:
        """Return what is shown of a binding; made for each page, because it takes more memory than the object."""
        return row_of(found.binding, self.objects.manifests.get(found.key), self.facts)


class Reveal(Enum):
    """What answers to viewers are computed from, besides the bindings that they may list."""

    OWN = "own"
    """The clusters, policies and Leases that they may list as well."""
    FLEET = "fleet"
    """All clusters, policies and Leases, and the records of the scheduler: for tenants who are trusted with them."""


class Scope(Struct, frozen=True):
    """What a viewer may read of a fleet.

    Attributes:
        namespaces: Those whose bindings are read; "" is that of ClusterResourceBindings.
        clusters: Whether Clusters are read; without them, nothing is decided.
        policies: Whether the policies of these namespaces and ClusterPropagationPolicies are read: of a part of them it would
            not be known which one claims a workload.
        schedulers: Whether the Leases of schedulers are read.
        is_trusted: Whether clusters, policies, Leases and records are read because the operator of the page allows it.
        unlisted: Why there are bindings that are not read; "" if all are.
        not_judged: What is not read, and why, one line each.
    """

    namespaces: frozenset[str]
    clusters: bool
    policies: bool
    schedulers: bool
    is_trusted: bool = False
    unlisted: str = ""
    not_judged: tuple[str, ...] = ()

    @property
    def has_all_facts(self) -> bool:
        """Whether states of bindings are the same as with the whole fleet."""
        return self.clusters and self.policies and self.schedulers


class PageState(Struct, frozen=True, eq=False):
    """What was read last.

    Attributes:
        number: Grows with every reading that differs from the one before.
        source: For people: "files", or the URL of the API server.
        read_at: When.
        contents: The objects.
        problems: What could not be read, one line each.
        failure: Why the reading after it has failed, so that the objects are those of before; "" if it has not.
        scope: What of the fleet it has; None for all.
    """

    number: int
    source: str
    read_at: datetime
    contents: PageContents
    problems: Sequence[str] = ()
    failure: str = ""
    scope: Scope | None = None

    @property
    def quotas(self) -> str:
        """The quotas that were read, as a text that two states with the same ones have."""
        return repr(self.contents.objects.quotas)

    @property
    def has_clusters(self) -> bool:
        """Whether the clusters were read, so that something can be decided."""
        return self.scope is None or self.scope.clusters

    @property
    def not_judged(self) -> tuple[str, ...]:
        """What was not read, and why, one line each."""
        unreadable = self.contents.objects.unreadable.values()  # of the whole fleet they are problems
        return () if self.scope is None else (*unreadable, *self.scope.not_judged)
