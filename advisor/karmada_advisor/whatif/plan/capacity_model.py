"""What a plan asks of the clusters, as data.

Units are those of the objects: replicas, and amounts of resources in cores of cpu and whole units of the others.
"""

from __future__ import annotations

from karmada_scheduler.structs import Struct


class Demand(Struct, frozen=True):
    """What starting replicas ask of a cluster, for one resource.

    Attributes:
        resource: ``cpu`` in cores, ``memory`` and others in whole units.
        asked: The sum of the requests of all replicas that start there.
        free: What the cluster has free, by its resource summary; None if it has not reported that resource.
    """

    resource: str
    asked: float
    free: float | None

    @property
    def is_over(self) -> bool:
        """Whether more is asked than the cluster has free."""
        return self.free is not None and self.asked > self.free


class ClusterLoad(Struct, frozen=True):
    """The replicas of one cluster before and after the whole plan.

    Attributes:
        starts: Replicas that start there; requests of replicas that stop are not subtracted.
        over: The resources of which more is asked than is free.
    """

    name: str
    before: int
    after: int
    starts: int
    demands: tuple[Demand, ...] = ()
    over: tuple[str, ...] = ()


class Capacity(Struct, frozen=True):
    """What the plan asks of the clusters, in one capacity mode.

    Attributes:
        mode: ``burst``: decisions do not see each other (gate SchedulingOvercommitProtection off). ``accounted``: each
            sees the ones before it (gate on).
        is_configured: Whether it is the mode of the scheduler after the change.
        clusters: The clusters whose replicas change, the most overcommitted first.
        overcommitted: The names of those of which more is asked than they have free.
        fitting: Bindings that are placed in this mode, of those that move or are placed.
        failing: Those that are not.
    """

    mode: str
    is_configured: bool
    clusters: tuple[ClusterLoad, ...]
    overcommitted: tuple[str, ...]
    fitting: int
    failing: int
