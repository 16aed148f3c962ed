"""The interface of extenders: programs that take part in decisions.

``karmada_scheduler.extenders`` implements it with kube-scheduler's protocol over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.result import Result
from karmada_scheduler.structs import Struct, field


class ExtenderError(Exception):
    """A request to an extender failed, or its response cannot be used; the text has its URL."""


class ExtenderFilterResult(Struct, frozen=True):
    """The result of filter; each cluster of the request is in one of the two.

    Attributes:
        kept: The names of the clusters that can take the binding.
        refused: The refusals of the others, by name.
    """

    kept: frozenset[str]
    refused: Mapping[str, Result] = field(default_factory=dict)


class Extender(Protocol):
    """An extender of the configuration.

    Attributes:
        name: Its URL, for error texts.
        ignorable: Whether a decision continues without it when it fails.
        filters, prioritizes, binds: The operations that it has.
    """

    name: str
    ignorable: bool
    filters: bool
    prioritizes: bool
    binds: bool

    def is_interested(self, binding: Binding) -> bool:
        """Return whether the extender is called for a binding."""
        ...

    async def filter(self, cycle: Cycle, clusters: Sequence[Cluster]) -> ExtenderFilterResult:
        """Return which clusters can take the binding; ExtenderError if that fails."""
        ...

    async def prioritize(self, cycle: Cycle, clusters: Sequence[Cluster]) -> Mapping[str, int]:
        """Return scores by cluster name, weight included; ExtenderError if that fails."""
        ...

    async def bind(self, cycle: Cycle, targets: Sequence[TargetCluster]) -> None:
        """Let the extender write the decision; ExtenderError if that fails."""
        ...
