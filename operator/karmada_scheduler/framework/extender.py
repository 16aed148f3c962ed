"""What the framework asks of an extender: a program elsewhere that takes part in a decision.

``karmada_scheduler.extenders`` speaks kube-scheduler's protocol to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.result import Result


class ExtenderError(Exception):
    """An extender could not be asked, or answered nonsense; the text names it."""


@dataclass(frozen=True, slots=True)
class ExtenderFilterResult:
    """What an extender said of clusters.

    Attributes:
        kept: Names of those that may take the binding.
        refused: Why each of the others may not; every cluster asked about is in one of the two.
    """

    kept: frozenset[str]
    refused: Mapping[str, Result] = field(default_factory=dict)


class Extender(Protocol):
    """One extender of the configuration.

    Attributes:
        name: Its URL, for texts.
        ignorable: Whether a decision goes on without it when it fails.
        filters, prioritizes, binds: What it offers.
    """

    name: str
    ignorable: bool
    filters: bool
    prioritizes: bool
    binds: bool

    def is_interested(self, binding: Binding) -> bool:
        """Tell whether it wants to be asked about a binding."""
        ...

    async def filter(self, cycle: Cycle, clusters: Sequence[Cluster]) -> ExtenderFilterResult:
        """Ask which clusters may take the binding, all in one call; ExtenderError if it does not say."""
        ...

    async def prioritize(self, cycle: Cycle, clusters: Sequence[Cluster]) -> Mapping[str, int]:
        """Ask for scores by cluster name, weight included; ExtenderError if it does not say."""
        ...

    async def bind(self, cycle: Cycle, targets: Sequence[TargetCluster]) -> None:
        """Let it write the decision; ExtenderError if it did not."""
        ...
