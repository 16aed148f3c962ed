"""What one loss does in one world: the bindings that it concerns, and the clusters of which too much is asked."""

from __future__ import annotations

from typing import NamedTuple

from karmada_advisor.plan.capacity_model import Demand
from karmada_advisor.survive.classify import Classified, Evicted
from karmada_scheduler.structs import Struct, field


class Pair(NamedTuple):
    """A binding in a loss that does something to it.

    Attributes:
        position: Of the binding, in the order of the queue.
        found: What becomes of it.
        classified: Its class, and the numbers with it.
        alone: The same if no other binding asked for capacity: differs only if it is short because its replicas do not fit
            where the decision puts them; None if it is the same.
    """

    position: int
    found: Evicted
    classified: Classified
    alone: Classified | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it is short because its replicas do not fit where the decision puts them."""
        return self.alone is not None


class LossTally(Struct):
    """What one loss does in one world.

    Attributes:
        pairs: The bindings to which it does something.
        overcommitted: Clusters of which more is asked than they have free, with these resources.
    """

    pairs: list[Pair] = field(default_factory=list)
    overcommitted: dict[str, tuple[Demand, ...]] = field(default_factory=dict)
