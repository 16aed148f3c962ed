"""The state of a binding as data: a closed list of names, the stored clusters, the reason, and what runs there."""

from __future__ import annotations

from enum import Enum
from typing import Final, Self

from karmada_scheduler.structs import Struct, field

API_VERSION: Final = "explain.pyscheduler.karmada.io/v1alpha1"


class WordedEnum(Enum):
    """A closed list whose members have words for people besides their values: ``NAME = value, words``."""

    _value_: str
    words: str

    def __new__(cls, value: str, words: str = "") -> Self:
        """Make a member."""
        made = object.__new__(cls)
        made._value_, made.words = value, words
        return made


class Target(Struct, frozen=True):
    """A cluster with its replicas; 0 for a workload without replicas."""

    name: str
    replicas: int

    def __str__(self) -> str:
        """Return the name with the replicas, as it stands in lists."""
        return f"{self.name} {self.replicas}" if self.replicas else self.name


class BindingEntry(Struct, frozen=True):
    """A binding in a document, by its name; documents add what they say about it."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``namespace/name``, and the name alone without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class StateName(Enum):
    """The states; docs/explain.md has them in a table. The value is what lists, JSON and filters show."""

    UNKNOWN = "unknown"
    """The object cannot be read."""
    NOT_PLACED = "not placed"
    """No cluster is stored, and the last decision failed."""
    NOBODY_DECIDES = "nobody decides"
    """No scheduler has the name of its ``schedulerName``, or the Lease of that scheduler has run out."""
    STUCK = "stuck"
    """Clusters are stored, and the last decision failed."""
    NOT_RUNNING = "not running"
    """It is placed, but on one of its clusters it is not applied, not healthy, has failed, or runs another number of
    replicas than is assigned, or the cluster is not ready."""
    HELD = "held"
    """Scheduling is suspended, or a quota, a Guard plugin or a PreEnqueue plugin holds it; see ``HeldBy``."""
    NOT_CLAIMED = "not claimed"
    """No policy claims the template."""
    OUT_OF_DATE = "out of date"
    """It has changed since the last decision."""
    NOT_DECIDED_YET = "not decided yet"
    MOVING = "moving"
    """It has graceful eviction tasks: an old copy runs until the new one is healthy."""
    NO_PLACEMENT = "no placement"
    """It follows other bindings that have no cluster, is left over, or nobody filled its placement in."""
    BEING_DELETED = "being deleted"
    NOTHING_TO_PLACE = "nothing to place"
    """It has 0 replicas and no cluster."""
    PLACED = "placed"

    @property
    def is_good(self) -> bool:
        """Whether nothing is left to do."""
        return self in _GOOD

    @property
    def colour(self) -> str:
        """``green``, ``yellow`` or ``red``."""
        return "green" if self in _GOOD else "yellow" if self in _PASSING else "red"


_GOOD: Final = frozenset({StateName.PLACED, StateName.NOTHING_TO_PLACE})
_UNDER_WAY: Final = ("being deleted", "moving", "no placement", "not decided yet", "out of date")
_PASSING: Final = frozenset(map(StateName, _UNDER_WAY))
WORST_FIRST: Final = {name: number for number, name in enumerate(StateName)}
"""The order of lists."""


class Placed(Enum):
    """How many of the wanted replicas are stored with clusters."""

    NONE = "none"
    PART = "part"
    ALL = "all"


class HeldBy(Enum):
    """What holds a binding back."""

    SUSPENSION = "suspension"
    QUOTA = "quota"
    GUARD = "guard"
    GATE = "gate"


class Applied(Enum):
    """Whether the Work of a cluster is applied there, as the binding's ``status.aggregatedStatus`` says."""

    YES = "yes"
    NO = "no"
    NOT_REPORTED = "not reported"


class ClusterStatus(Struct, frozen=True):
    """What the binding's status, and the Cluster, say about one cluster of a binding.

    Attributes:
        name: The cluster.
        wanted: Replicas that are stored for it; None if the binding leaves it.
        applied: Whether its Work is applied.
        ready: Replicas that are ready there; None if the workload reports none.
        health: ``Healthy``, ``Unhealthy``, ``Unknown``; "" without a report.
        reason: A code for what is wrong there: ``ClusterMissing``, ``ClusterNotReady``, ``DispatchingSuspended``,
            ``NotApplied``, ``NotOurs`` (no report), ``WorkloadFailed``, ``Unhealthy``, ``NotStarted`` (fewer are ready),
            ``RollingOut`` and ``OtherNumber`` (of replicas); "" if nothing is known to be.
        problem: The same for people.
        message: The text that the member cluster, or a controller, left; "" without one.
        running: Replicas that exist there; None if the workload reports none.
        required_by: The bindings that require it there; empty for a cluster of its own placement.
    """

    name: str
    wanted: int | None
    applied: Applied = Applied.NOT_REPORTED
    ready: int | None = None
    health: str = ""
    reason: str = ""
    problem: str = ""
    message: str = ""
    running: int | None = None
    required_by: tuple[str, ...] = ()

    @property
    def is_conflict(self) -> bool:
        """Whether the member has an object of this name that is not Karmada's.

        Source: karmada v1.18.2 pkg/util/objectwatcher/objectwatcher.go.
        """
        return self.applied is Applied.NO and "already exist" in self.message


class SchedulerStatus(Enum):
    """What is known about a scheduler."""

    RUNNING = "running"
    """Its Lease is renewed, or its process has answered."""
    SEEN = "seen"
    """It has no Lease here, but it has left Events or conditions."""
    DOWN = "down"
    """Its Lease has run out."""
    MISSING = "missing"
    """No Lease, Event or condition is that of a scheduler with this name."""
    NOT_KNOWN = "not known"
    """The Leases cannot be read, or were not."""


class SchedulerShown(Struct, frozen=True):
    """The scheduler that a binding names.

    Attributes:
        name: ``spec.schedulerName``, or ``default-scheduler``.
        source: Where that is known from, for people: a Lease, an Event, the process; "" if it is not known.
        since: Since when it is down, or when it was seen last, in the format of the API; "" if that is not known.
        nearest: The most similar name of a scheduler that exists, for a missing one; "" without one.
    """

    name: str
    status: SchedulerStatus = SchedulerStatus.NOT_KNOWN
    source: str = ""
    since: str = ""
    nearest: str = ""

    @property
    def decides(self) -> bool:
        """Whether it may decide: it is not known to be down or missing."""
        return self.status not in {SchedulerStatus.DOWN, SchedulerStatus.MISSING}

    def __str__(self) -> str:
        match self.status:
            case SchedulerStatus.MISSING:
                end = f"; did you mean {self.nearest}?" if self.nearest else ""
                return f"no scheduler is named {self.name}{end}"
            case SchedulerStatus.DOWN:
                return f"{self.name} is down since {self.since} ({self.source})"
            case SchedulerStatus.SEEN:
                return f"{self.name} (seen at {self.since}: {self.source})"
        return f"{self.name} ({self.source})" if self.source else self.name


class ReplicaCounts(Struct, frozen=True):
    """How many replicas bindings want, have, and run.

    Attributes:
        wanted: Of the workloads; of one that is duplicated, those of all its clusters.
        placed: Stored with clusters.
        running: Ready on their clusters, as these have reported; no more of a cluster than it has.
        unknown: Placed on clusters of which no number is known; on one that is not ready or gone, none is.
    """

    wanted: int = 0
    placed: int = 0
    running: int = 0
    unknown: int = 0

    def plus(self, other: ReplicaCounts, times: int = 1) -> ReplicaCounts:
        """Return the sums with others, or with so many times these."""
        names = self.__struct_fields__
        return ReplicaCounts(*(getattr(self, name) + times * getattr(other, name) for name in names))

    def __add__(self, other: ReplicaCounts) -> ReplicaCounts:
        """Return the sums."""
        return self.plus(other)

    def __str__(self) -> str:
        """Return the numbers with their words."""
        text = f"{self.wanted:,} wanted, {self.placed:,} placed, {self.running:,} running"
        return f"{text}, {self.unknown:,} not reported" if self.unknown else text


class BindingState(Struct, frozen=True):
    """What is stored about a binding.

    Attributes:
        name: The state.
        placed: How many of the wanted replicas are stored.
        clusters: The stored clusters, in the order of names; those on which other bindings require it, too.
        wanted: Replicas that the workload has; 0 for one without replicas.
        text: What to know besides the clusters, one sentence without a full stop; "" if there is nothing.
        reason: The reason of the condition, or a code of the same form: ``SchedulerMissing``, ``DispatchingSuspended``.
        message: The stored text that ``text`` is made of, unchanged; "" without one.
        held_by: None unless the state is HELD.
        since: When the state began, in the format of the API; "" if that is not stored.
        scheduler: Who decides.
        rows: What runs on the clusters, those that are being left included.
    """

    name: StateName
    placed: Placed = Placed.NONE
    clusters: tuple[Target, ...] = ()
    wanted: int = 0
    text: str = ""
    reason: str = ""
    message: str = ""
    held_by: HeldBy | None = None
    since: str = ""
    scheduler: SchedulerShown = field(default_factory=lambda: SchedulerShown(""))
    rows: tuple[ClusterStatus, ...] = ()

    @property
    def replicas(self) -> ReplicaCounts:
        """What it wants, has and runs; another binding's requirements are not counted."""
        placed = sum(target.replicas for target in self.clusters)
        if not self.wanted and not placed:
            return ReplicaCounts()
        rows = [row for row in self.rows if row.wanted and not row.required_by]
        wanted = placed if self.placed is Placed.ALL else max(self.wanted, placed)
        reports = [row for row in rows if row.ready is not None and row.reason not in _OLD_REPORTS]
        running = sum(min(row.wanted or 0, row.ready or 0) for row in reports)
        known = sum(row.wanted or 0 for row in reports)
        return ReplicaCounts(wanted, placed, running, max(0, placed - known))

    @property
    def is_good(self) -> bool:
        """Whether nothing is left to do: the exit status is 0."""
        return self.name.is_good and self.placed is not Placed.PART

    @property
    def colour(self) -> str:
        """``green``, ``yellow`` or ``red``."""
        return "yellow" if self.name.is_good and not self.is_good else self.name.colour

    @property
    def words(self) -> str:
        """The words in capitals, with which a headline begins."""
        if self.name in _OWN_WORDS:
            return self.name.value.upper()
        words = _PLACED_WORDS[self.placed]
        return words if self.name is StateName.PLACED else f"{words}, {self.name.value}"


_OLD_REPORTS: Final = frozenset({"ClusterMissing", "ClusterNotReady"})
"""The reasons of rows whose numbers were reported before; what runs there now is not known."""
_WITHOUT_CLUSTERS: Final = ("not placed", "not claimed", "no placement", "nothing to place")
_OWN_WORDS: Final = frozenset(map(StateName, ("unknown", "being deleted", *_WITHOUT_CLUSTERS)))
_PLACED_WORDS: Final = {Placed.NONE: "NOT PLACED", Placed.PART: "PLACED IN PART", Placed.ALL: "PLACED"}
