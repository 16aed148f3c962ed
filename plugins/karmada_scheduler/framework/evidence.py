"""What a plugin says about its refusals: why, as data, and which event may end them, as kube-scheduler's EventsToRegister.

Explanations call ``evidence`` after a decision; no decision reads it.

Source: kubernetes v1.35 pkg/scheduler/framework EnqueueExtensions, for the idea.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.workload import WorkloadAccess
from karmada_scheduler.structs import Struct, field


class EventKind(Enum):
    """What changes; the value is for people.

    What is not here enqueues unplaced bindings whichever plugin refused them: the labels, the spec and the APIs of
    clusters, and the workload (``core.requeue_rules``). The in-tree filters wait for nothing else.
    """

    CLUSTER_CONDITIONS = "the conditions of a cluster"
    CLUSTER_SUMMARY = "the resource summary of a cluster"
    BINDING = "another binding"
    """Its spec, labels or annotations; also that it is new, or was deleted."""

    __hash__ = object.__hash__  # a member is one object


class RequeueEvent(Struct, frozen=True):
    """A change after which a plugin may accept a cluster that it has refused.

    Attributes:
        kind: What changes.
        name: The type of the condition, or the name of the resource; "" for any, and for a binding.
    """

    kind: EventKind
    name: str = ""

    def __str__(self) -> str:
        """Return what has changed, for people."""
        return f"{self.name} in {self.kind.value}" if self.name else self.kind.value


@runtime_checkable
class EventsPlugin(Plugin, Protocol):
    """A Filter plugin, or one with PreFilter, that knows what may end its refusals."""

    def events(self) -> Iterable[RequeueEvent]:
        """Return the changes after which a binding is scheduled again that this plugin has refused.

        It is called once, when the plugin comes into use. A binding that is unplaced, and for which the plugin refused a
        cluster in the last attempt, is enqueued by each of these changes; without ``events``, by those only that enqueue
        every unplaced binding. Changes of a cluster count if an affinity of the binding matches the cluster.
        """


class Evidence(Struct, frozen=True):
    """What a Filter plugin compared when it refused a cluster.

    Attributes:
        code: The code of the cause, one of the plugin's ``codes``; "" if it has no code of its own.
        short: The refusal in a few words, for tables; "" for the reason of the result.
        fields: What was compared, as JSON values. Refusals with an equal ``clause`` are counted together (without one,
            those with an equal ``short``). A ``value`` is that of this cluster only: the reason of the result then stands
            for several clusters.
        text: The sentence that follows "NAME is refused: "; "" for ``short``.
        kind: The refusal in two words, where clusters are counted; "" for ``clause``.
        by_placement: Whether the placement leaves the cluster out, so that no repair of the cluster helps. Such a cause
            comes first.
    """

    code: str = ""
    short: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    kind: str = ""
    by_placement: bool = False


class EvidenceContext(Struct, WorkloadAccess, frozen=True):
    """A cluster that a plugin has refused.

    Attributes:
        cycle: The attempt.
        result: The refusal.
        binding_manifest: The binding as it was read, for fields that ``cycle.binding`` does not have; empty if unknown.
        cluster_manifest: The cluster as it was read; empty if unknown.
    """

    cycle: Cycle
    cluster: Cluster
    result: Result
    binding_manifest: Manifest = field(default_factory=dict)
    cluster_manifest: Manifest = field(default_factory=dict)


@runtime_checkable
class EvidencePlugin(Plugin, Protocol):
    """A Filter plugin, or one with PreFilter, that says what it compared.

    Attributes:
        codes: The codes of its causes in upper camel case, each with a clause that is true of every refusal with it.
    """

    codes: Mapping[str, str]

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        """Return what the plugin compared when it refused a cluster.

        It is called by explanations only, also for clusters about which ``filter`` may not be called again. If it
        raises, the explanation has the reason of the result alone.
        """
