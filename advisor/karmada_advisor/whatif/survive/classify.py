"""The class of one binding in one loss, and what runs before and after it. Pure: everything is given."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from karmada_advisor.state.model import WordedEnum
from karmada_advisor.state.propagation import Suspended, rows_of
from karmada_advisor.state.stored import Manifest
from karmada_advisor.whatif.plan.capacity_model import Demand
from karmada_advisor.whatif.plan.effects import NOT_READY, differences, same
from karmada_scheduler.api.binding import Binding, BindingSpec, TargetCluster
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION
from karmada_scheduler.core.cluster_groups import last_constraint
from karmada_scheduler.core.select_clusters import ignores_spread
from karmada_scheduler.structs import Struct, field

Targets = Sequence[TargetCluster]


class LossClass(WordedEnum):
    """What a loss does to a binding; each pair of both has exactly one, the first that applies."""

    UNTOUCHED = "untouched", "untouched"
    """It was not there, and stays as it is."""
    SWEPT = "swept", "moves although it was not there: the loss lets other regions win"
    """It was not there, and moves all the same: the loss changes which region is the best."""
    NOT_EVICTED = (
        "not-evicted",
        "not evicted: eviction is off, it tolerates the taint, or no placement was applied",
    )
    """It was there, and nothing takes it away."""
    FROZEN = (
        "frozen",
        "evicted, and nobody decides: its scheduling is suspended, or its scheduler is not there",
    )
    """It is evicted, and nobody decides where its lost replicas go."""
    NOT_JUDGED = "not-judged", "not judged"
    """It is evicted, and the rules by which its scheduler decides are not known."""
    HELD = "held", "evicted, and held"
    """It is evicted, and a Guard plugin, a quota or a plugin keeps it from moving."""
    CLEARED = "cleared", "cleared: healthy replicas elsewhere are removed, too"
    """No cluster fits, so that its healthy replicas elsewhere are removed, too."""
    UNPLACED = "unplaced", "unplaced: no cluster takes it"
    """Nothing of it was elsewhere, and no cluster takes it."""
    BLOCKED = "blocked", "blocked: its purge mode lets the new replicas wait for the lost cluster"
    """It is placed elsewhere, and its purge mode lets the new replicas wait for the lost cluster, or the end of a timeout."""
    STUCK = "stuck", "stuck: every decision fails, and what is elsewhere stays"
    """A spread constraint or a plugin lets every decision fail; what is elsewhere stays."""
    SHORT = "short", "short: there is not enough capacity"
    """There is not enough capacity for the lost replicas."""
    HOLDS = "holds", "holds"
    """Enough runs elsewhere already; nothing has to start."""
    MOVES = "moves", "moves"
    """Its lost replicas start elsewhere."""


class FailedBy(Enum):
    """Why a decision failed."""

    NOTHING = ""
    FIT = "fit"
    """No cluster passes the filters."""
    CAPACITY = "capacity"
    RULE = "rule"
    """A spread constraint, or another rule of the placement."""
    PLUGIN = "plugin"


class Present(NamedTuple):
    """What is known of a binding on one cluster: replicas, or copies (see ``counts_copies``).

    Attributes:
        running: How many run now.
        assigned: How many are stored for the cluster.
        starts: Whether more start when more are assigned.
    """

    running: int = 0
    assigned: int = 0
    starts: bool = False

    def of(self, assigned: int) -> int:
        """Return how many run when so many are assigned."""
        return min(assigned, self.running + max(0, assigned - self.assigned) * self.starts)


PresentOn = Mapping[str, Present]
"""By cluster; on those that are left out, all runs that is assigned."""

ALL_STARTS: Final = Present(starts=True)
NO_EXCEPTIONS: Final[PresentOn] = {}


class Evicted(NamedTuple):
    """A binding after a loss, and the decision about it.

    Attributes:
        before: Its clusters before the loss.
        after: Its clusters after the decision; those that are left without one.
        failed_by: Why the decision failed.
        message: Of the failure, or why it is not judged; "" without one.
        is_held: Whether a Guard plugin, a quota or a plugin keeps what is left of it.
        is_evicted: Whether it leaves lost clusters on which it has been.
        is_decided: Whether a decision follows.
        is_purged_directly: Whether the new replicas wait until the old ones are removed, which a lost cluster cannot do, or the
            eviction times out.
        is_judged: Whether the rules of its scheduler are known.
        present: What is known to run of it without the loss.
    """

    before: Targets
    after: Targets
    failed_by: FailedBy = FailedBy.NOTHING
    message: str = ""
    is_held: bool = False
    is_evicted: bool = False
    is_decided: bool = False
    is_purged_directly: bool = False
    is_judged: bool = True
    present: PresentOn = NO_EXCEPTIONS


class Classified(NamedTuple):
    """The class, and the numbers with it.

    Attributes:
        dark: Whether replicas are wanted, and none runs afterwards.
        interrupted: Whether nothing runs until a new copy does.
        missing: Wanted replicas (or copies, see ``wanted``) that do not run afterwards.
        starts: Replicas that start, by cluster; those that lost clusters get are not there.
    """

    effect: LossClass
    dark: bool
    interrupted: bool
    missing: int
    starts: tuple[TargetCluster, ...] = ()


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


def counts_copies(spec: BindingSpec) -> bool:
    """Return whether clusters have copies of it instead of a number of replicas."""
    has_replicas = spec.replicas > 0 or spec.replica_requirements is not None
    return not has_replicas or len(spec.components) > 1


def wanted(spec: BindingSpec) -> int:
    """Return the replicas that have to run: of a Duplicated binding those of as many copies as its constraints demand.

    What has no numbers of replicas wants one copy, and a workload that is scaled to 0 wants none.
    """
    if counts_copies(spec):
        return 1
    placement = spec.placement
    if placement is None or not placement.is_duplicated:
        return spec.replicas
    fields = () if ignores_spread(placement) else (SPREAD_BY_CLUSTER, SPREAD_BY_REGION)
    constraints = [last_constraint(placement, field) for field in fields]
    return spec.replicas * max([1, *(each.min_groups for each in constraints if each is not None)])


def running(spec: BindingSpec, targets: Targets, present: PresentOn) -> int:
    """Return the replicas, or copies, of some targets that run."""
    are_copies = counts_copies(spec)
    return sum(present.get(each.name, ALL_STARTS).of(1 if are_copies else each.replicas) for each in targets)


def classified(spec: BindingSpec, lost: Container[str], found: Evicted) -> Classified:
    """Return the class of a binding in a loss.

    Args:
        spec: Of the binding; only what it wants is read.
        lost: The names of the lost clusters.
        found: What became of it.
    """
    survivors = [target for target in found.before if target.name not in lost]
    after = [target for target in found.after if target.name not in lost]
    is_there = len(survivors) < len(found.before)
    if not is_there and same(found.after, found.before):
        return _UNTOUCHED
    wants, present = wanted(spec), found.present
    started = [each for each in starts(spec, survivors, after) if present.get(each.name, ALL_STARTS).starts]
    effect = _effect(spec, found, survivors, after) if is_there else LossClass.SWEPT
    if effect is LossClass.NOT_JUDGED:
        return _NOT_JUDGED
    runs = running(spec, survivors if effect in _KEEPING else after, present)
    if effect is LossClass.MOVES and not started and runs >= wants:
        effect = LossClass.HOLDS
    return Classified(
        effect,
        wants > 0 and not runs,
        wants > 0 and not running(spec, survivors, present),
        max(0, wants - runs),
        tuple(started) if effect in _STARTING else (),
    )


_UNTOUCHED: Final = Classified(LossClass.UNTOUCHED, dark=False, interrupted=False, missing=0)
_NOT_JUDGED: Final = _UNTOUCHED._replace(effect=LossClass.NOT_JUDGED)

# Members of an enumeration are compared faster than hashed.
_KEEPING: Final = (LossClass.FROZEN, LossClass.HELD, LossClass.BLOCKED, LossClass.STUCK)
"""What survives runs, and nothing else."""

_STARTING: Final = (LossClass.MOVES, LossClass.SWEPT)


def _effect(spec: BindingSpec, found: Evicted, survivors: Targets, after: Targets) -> LossClass:
    """Return the class of a binding that is on a lost cluster; MOVES also if nothing has to start."""
    stays = same(after, survivors)
    if not found.is_evicted and {target.name for target in found.before} <= {
        *(target.name for target in found.after),
        *(survivor.name for survivor in survivors),
    }:
        return LossClass.NOT_EVICTED
    if not found.is_judged:
        return LossClass.NOT_JUDGED
    if found.is_held:
        return LossClass.HELD
    if not found.is_decided and starts(spec, survivors, found.before):
        return LossClass.FROZEN
    if survivors and not found.after and found.failed_by is FailedBy.FIT:
        return LossClass.CLEARED
    if not survivors and not after:
        return LossClass.UNPLACED
    if not stays and found.is_purged_directly:
        return LossClass.BLOCKED
    if stays and found.failed_by in {FailedBy.RULE, FailedBy.PLUGIN}:
        return LossClass.STUCK
    if stays and found.failed_by is FailedBy.CAPACITY:
        return LossClass.SHORT
    return LossClass.MOVES


def starts(spec: BindingSpec, survivors: Targets, after: Targets) -> tuple[TargetCluster, ...]:
    """Return the replicas, or copies, that start, by cluster."""
    if counts_copies(spec):
        had = {survivor.name for survivor in survivors}
        return tuple(TargetCluster(target.name, 1) for target in after if target.name not in had)
    more = differences(survivors, after)
    return tuple(TargetCluster(name, count) for name, count in more.items() if count > 0)


def present_on(
    binding: Binding, manifest: Manifest, clusters: Mapping[str, Manifest], out_of_service: Mapping[str, str]
) -> PresentOn:
    """Return what is known to run of a binding.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        clusters: All Clusters as they were read, by name.
        out_of_service: The clusters that are not ready or cordoned, and which of both.
    """
    suspended = Suspended.of(manifest)
    closed = {*out_of_service, *suspended.listed}
    if suspended.everywhere:
        closed = {*clusters}
    found = dict.fromkeys(closed, Present())
    for row in rows_of(binding, manifest, clusters.get, Suspended()):
        if row.wanted is None or row.required_by:
            continue
        assigned = running = 1 if counts_copies(binding.spec) else row.wanted
        if row.ready is not None or row.reason not in {"", "OtherNumber", "RollingOut"}:
            running = min(assigned, row.ready or 0)
        if out_of_service.get(row.name) == NOT_READY:
            running = 0
        if row.name in found or running < assigned:
            found[row.name] = Present(running, assigned, row.name not in found)
    return found
