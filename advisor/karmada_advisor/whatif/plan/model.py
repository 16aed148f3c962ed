"""A plan as data: what ``plan`` prints, in every format.

Units are those of the objects: replicas, and amounts of resources in cores of cpu and whole units of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from karmada_advisor.explain.model import Cause, PolicyRef, Provenance
from karmada_advisor.state.model import BindingEntry, Target
from karmada_advisor.whatif.plan.capacity_model import Capacity, ClusterLoad
from karmada_advisor.whatif.plan.objects import ChangeShown
from karmada_scheduler.structs import Struct


class Effect(Enum):
    """What a change does to a binding; each binding has exactly one."""

    UNCHANGED = "unchanged"
    MOVED = "moved"
    """Its clusters or their replicas change."""
    PLACED = "placed"
    """It had no cluster and gets some."""
    UNPLACED = "unplaced"
    """It loses all clusters, or is new and gets none."""
    STUCK = "stuck"
    """It keeps its placement, and the decision that the change causes fails."""
    HELD = "held"
    """It stays as it is for now: a Guard plugin lets it move later, or a quota, a plugin or a suspension holds it."""
    UNDECIDED = "undecided"
    """It stays as it is: its scheduler does not exist, or is down, so nobody decides."""
    NOT_JUDGED = "not-judged"
    """The change concerns it, and the rules by which its scheduler decides, or its replicas, are not known."""
    LATENT = "latent"
    """Nothing happens at once; a rebalance would place it differently than before the change."""
    DEFERRED = "deferred"
    """Its policy is Lazy: the change takes effect when the template changes."""
    DELETED = "deleted"
    """The binding does not exist afterwards."""


class ClaimChange(Enum):
    """What a change does to the policy of a binding."""

    KEPT = "kept"
    ADOPTED = "adopted"
    """Another policy claims it afterwards, or a first one."""
    RELEASED = "released"
    """No policy claims it afterwards; it keeps its placement."""


CANNOT_START = "cannot-start"
"""Replicas are assigned to a cluster that is not ready or cordoned; a binding has this besides its effect."""

PENDING = "pending"
"""It is unchanged, and so stays without a cluster; a binding has this besides its effect."""

CLASSES = (
    *(effect.value for effect in Effect),
    ClaimChange.ADOPTED.value,
    ClaimChange.RELEASED.value,
    CANNOT_START,
    PENDING,
)


class Later(Struct, frozen=True):
    """The decision at the next rebalance, after the change.

    Attributes:
        targets: The clusters that the binding would have.
        error: Why the decision would fail; "" if it would not.
    """

    targets: tuple[Target, ...] = ()
    error: str = ""


class PlanHeldBy(Enum):
    """What lets a binding stay as it is, although a decision would change it."""

    GUARD = "guard"
    QUOTA = "quota"
    PLUGIN = "plugin"
    """A plugin of the running scheduler that the plan does not have."""
    SUSPENSION = "suspension"
    DETECTOR = "detector"
    """The template wanted other replicas than the binding had before the change, or a PriorityClass is missing."""
    SCHEDULER = "scheduler"
    """Its scheduler does not exist, or is down."""
    RULES = "rules"
    """The rules of its scheduler are not known."""
    REPLICAS = "replicas"
    """Its replicas after the change are not known."""


class Held(Struct, frozen=True):
    """A decision that does not take effect, or not yet.

    Attributes:
        plugin: The Guard plugin that does not let it through yet; "" if something else holds the binding.
        reason: Its reason, or a sentence that says what holds the binding.
        targets: The clusters that the binding would have.
        retry_after: Seconds until it is decided again at the earliest; 0 for the backoff of the queue, or if that is not
            known.
        by: What holds it.
    """

    plugin: str
    reason: str
    targets: tuple[Target, ...]
    retry_after: float
    by: PlanHeldBy = PlanHeldBy.GUARD


class PlanWarning(Struct, frozen=True):
    """Something in the change that is probably a mistake.

    Attributes:
        code: Stable and documented in docs/plan.md.
        object: Kind and name of the policy, or of the binding.
        field: The field: ``spec.placement.clusterAffinity.clusterNames``.
        text: One sentence without a full stop.
        nearest: The existing name or value that is most like the given one; "" without one.
    """

    code: str
    object: str
    field: str
    text: str
    nearest: str = ""

    def __str__(self) -> str:
        """Write it as one line for people."""
        return f"{self.code}: {self.object}: {self.field}: {self.text}"


class Blocker(BindingEntry, frozen=True):
    """A binding that keeps a deleted cluster from going.

    Attributes:
        effect: Its class.
        text: Why it stays, one sentence without a full stop.
    """

    effect: Effect
    text: str


class BlockedDeletion(Struct, frozen=True):
    """A deleted object that stays Terminating.

    Attributes:
        object: Kind and name.
        text: What it waits for, one sentence without a full stop.
        bindings: What it waits for, in the order of the plan.
    """

    object: str
    text: str
    bindings: tuple[Blocker, ...]


class BindingPlan(BindingEntry, frozen=True):
    """What a change does to one binding.

    Attributes:
        effect: The class.
        claim: Whether its policy changes.
        policy: The policy afterwards; None if no policy claims it, or it is not known.
        replicas: Of the workload, afterwards.
        before: Its clusters, as they are stored.
        after: Its clusters after the decision that the change causes.
        schedule_type: Of that decision: ``First``, ``Reconcile``, ``Scale``, ``Failover``; ``Avoid`` if there is none.
        when: When it takes effect: ``at once``, ``at the next retry``, ``after eviction``, ``at the next rebalance``,
            ``when the template changes``; "" if nothing does.
        stops: Replicas that stop on a cluster.
        starts: Replicas that start on a cluster.
        entirely: Whether no cluster keeps replicas.
        error: Why the decision fails; "" if it does not.
        later: The next rebalance; None unless the effect is ``latent``.
        held: What holds it; None unless the effect is ``held``, ``undecided`` or ``not-judged``.
        graceful: The clusters that it leaves with a graceful eviction task.
        policy_before: The policy before the change; None if no policy claimed it, or it is not known.
        cannot_start: What is assigned besides ``starts`` to clusters that are not ready or cordoned.
    """

    effect: Effect
    claim: ClaimChange
    policy: PolicyRef | None
    replicas: int
    before: tuple[Target, ...]
    after: tuple[Target, ...]
    schedule_type: str = "Avoid"
    when: str = ""
    stops: int = 0
    starts: int = 0
    entirely: bool = False
    error: str = ""
    later: Later | None = None
    held: Held | None = None
    graceful: tuple[str, ...] = ()
    policy_before: PolicyRef | None = None
    cannot_start: tuple[Target, ...] = ()


class FailureGroup(Struct, frozen=True):
    """Bindings for which decisions fail, or do not take effect, for the same reason.

    Attributes:
        effect: ``stuck``, ``unplaced``, ``latent`` if the next rebalance fails, ``held`` or ``undecided``.
        policy: Their policy; None without one, or if that does not matter.
        reason: The reason of the condition ``Scheduled``.
        message: Its message, or what holds them.
        causes: Why it fails, by one of the bindings; the primary one comes first.
        count: How many bindings.
        bindings: Their names.
        disallowed: Replicas that stay on clusters which the affinity of the policy does not match.
    """

    effect: Effect
    policy: PolicyRef | None
    reason: str
    message: str
    causes: tuple[Cause, ...]
    count: int
    bindings: tuple[str, ...]
    disallowed: tuple[Target, ...] = ()


class Totals(Struct, frozen=True):
    """Sums over all bindings that move at once.

    Attributes:
        stops: Replicas that stop on a cluster.
        starts: Replicas that start on a cluster.
        entirely: Bindings of which no cluster keeps replicas.
        without_replicas: Bindings that move and have no replicas.
    """

    stops: int = 0
    starts: int = 0
    entirely: int = 0
    without_replicas: int = 0


class Drift(BindingEntry, frozen=True):
    """A binding that would change even without the change, at the next event.

    Attributes:
        before: Its clusters, as they are stored.
        after: Its clusters after the decision.
        error: Why that fails; "" if it does not.
    """

    before: tuple[Target, ...]
    after: tuple[Target, ...]
    error: str = ""


class Plan(Struct, frozen=True):
    """What a change would do.

    Attributes:
        provenance: Where the objects come from; ``fleet`` is the start of the fingerprint.
        fingerprint: A hash over all that the decisions before the change read.
        changes: The parts of the change.
        clusters: How many clusters there are before it.
        total: How many bindings there are before or after it.
        counts: Bindings by class, ``adopted`` and ``released`` included; every class is there.
        not_derived: The unchanged bindings that follow from no changed object; None if clusters or the configuration
            change, so that any binding may be concerned.
        after_rebalance: As ``counts``, for ``unchanged``, ``moved`` and ``stuck``, once everything was rebalanced;
            ``not-judged`` is there if there was no time for some.
        totals: Replicas that stop and start at once.
        latent: The same at the next rebalance.
        bindings: Every binding that does not stay as it is, in the order in which they were read.
        failures: Failing decisions by policy and reason, the most frequent first.
        capacity: What the plan asks of clusters; the configured mode first. Empty if no replica starts.
        latent_load: The clusters whose replicas change at the next rebalance.
        blocked: Deleted clusters that stay Terminating.
        warnings: What is probably a mistake in the change.
        drift: What would change without the change; None if it was not computed.
        notes: Sentences for people: what the plan does not know, and what stays although it may surprise.
    """

    provenance: Provenance
    fingerprint: str
    changes: tuple[ChangeShown, ...]
    clusters: int
    total: int
    counts: Mapping[str, int]
    not_derived: int | None
    after_rebalance: Mapping[str, int]
    totals: Totals
    latent: Totals
    bindings: tuple[BindingPlan, ...]
    failures: tuple[FailureGroup, ...]
    capacity: tuple[Capacity, ...]
    latent_load: tuple[ClusterLoad, ...]
    blocked: tuple[BlockedDeletion, ...]
    warnings: tuple[PlanWarning, ...]
    drift: tuple[Drift, ...] | None
    notes: tuple[str, ...] = ()

    def of(self, effect: Effect) -> list[BindingPlan]:
        """Return the bindings of a class."""
        return [binding for binding in self.bindings if binding.effect is effect]

    @property
    def overcommitted(self) -> tuple[str, ...]:
        """The clusters that are overcommitted in the configured mode."""
        return self.capacity[0].overcommitted if self.capacity else ()

    def violates(self, classes: frozenset[str]) -> bool:
        """Return whether there is any of some classes, or of ``overcommit``, ``blocked``, ``warnings`` and ``drift``."""
        found = {
            "overcommit": self.overcommitted,
            "blocked": self.blocked,
            "warnings": self.warnings,
            "drift": self.drift,
        }
        return any(self.counts.get(name, 0) or found.get(name) for name in classes)
