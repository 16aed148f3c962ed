"""What the reader of a plan should know besides, also of copies that its decisions do not name.

Source: karmada v1.18.2 pkg/dependenciesdistributor/dependencies_distributor.go;
pkg/controllers/execution/execution_controller.go (preserveResourcesOnDeletion).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.state.model import BindingEntry
from karmada_advisor.state.propagation import cluster_problem
from karmada_advisor.state.quota import Quota, grows, not_sure
from karmada_advisor.state.stored import PRESERVED, evicting_from, part, requirers
from karmada_advisor.whatif.plan import deletions
from karmada_advisor.whatif.plan.capacity_model import Capacity, ClusterLoad
from karmada_advisor.whatif.plan.cluster_edits import NOT_READY
from karmada_advisor.whatif.plan.decide import HeldMove, chooses_regions
from karmada_advisor.whatif.plan.deletions import deleted_clusters
from karmada_advisor.whatif.plan.effects import Comparison, left, targets
from karmada_advisor.whatif.plan.lint_upgrade import upgrade_notes
from karmada_advisor.whatif.plan.model import Effect, PlanHeldBy
from karmada_advisor.whatif.plan.what_if import WhatIf, is_from_detector
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, BindingKey


def _when_lost(what_if: WhatIf) -> Iterator[str]:
    """Yield when the bindings of a deleted cluster move, and whether they would if it only were not ready.

    A cluster that is not ready gets a NoSchedule taint. That evicts nothing, but it is a change of the cluster, and bindings
    that are decided upon each such change choose their regions again, also those that are not on it.
    """
    names = deletions.deleted_clusters(what_if.changed_clusters)
    if not names:
        return
    text = "when: at once, because the scheduler reschedules the bindings of a deleted cluster"
    choosing = sum(map(chooses_regions, what_if.before.bindings.values()))
    if choosing:
        count = counted(choosing, "binding")
        yield (
            f"{text}; {names[0]} being not ready evicts nothing by itself, but {count} with a region constraint may move "
            f"(plan --taint {names[0]}={NOT_READY}:NoSchedule)"
        )
    else:
        yield f"{text}; {names[0]} being not ready moves nothing by itself"


_STARTING: Final = frozenset({Effect.MOVED, Effect.PLACED})


def _may_be_refused(each: Comparison) -> bool:
    """Return whether a quota has refused a binding, or might refuse what it gets, with the change or without it."""
    if each.hold_before is not None and each.hold_before.by is PlanHeldBy.QUOTA:
        return True
    drift, old, new = each.unchanged_side, each.old, each.new
    grows_anyway = old is not None and drift is not None and grows(old.spec, each.before, drift.targets)
    if grows_anyway and each.would_drift:
        return True
    return each.effect in _STARTING and new is not None and grows(new.spec, new.spec.clusters, each.wanted)


def _limits(what_if: WhatIf, quotas: Mapping[Quota, bool], capacity: Sequence[Capacity]) -> Iterator[str]:
    """Yield the limits of plans that matter to this one."""
    inputs, every = what_if.inputs, what_if.comparisons.values()
    growing = {key.namespace for key, each in what_if.comparisons.items() if _may_be_refused(each)} - {""}
    if inputs.no_quotas and growing:
        yield f"whether a FederatedResourceQuota refuses what is placed is not known: {inputs.no_quotas}"
    unreported = [
        str(each) for each in inputs.quotas or () if not each.is_reported and each.namespace in growing
    ]
    if unreported:
        yield f"whether the quota {', '.join(unreported)} refuses what is placed is not known: it has no status"
    starting = {key.namespace for key, each in what_if.comparisons.items() if each.effect in _STARTING}
    started = (each.new for each in every if each.effect in _STARTING and each.new is not None)
    if sets := [str(each.key) for each in started if each.spec.components]:
        yield f"not judged: whether there is capacity for the components of {', '.join(sets[:3])}{' and others' * (len(sets) > 3)}"
    if static := [str(each) for each in inputs.quotas or () if each.is_static and each.namespace in starting]:
        yield f"not judged: static assignments of the quota {', '.join(static)}, which member clusters enforce"
    unsure = not_sure(quotas)
    if unsure and any(
        comparison.hold is not None and comparison.hold.by is PlanHeldBy.QUOTA for comparison in every
    ):
        yield unsure
    rules = inputs.rules_after
    if rules.accounts and capacity:
        yield "placements that the running scheduler still assumes (SchedulingOvercommitProtection) are not known"
    if rules.frameworks.has_own_plugins and any(each.decided is not None for each in every):
        yield "Reserve, Permit, PreBind, Bind and PostBind plugins and extenders are not called"
    if rules.frameworks.all_missing:
        yield (
            f"plugins of the running scheduler are not asked, because their code is not here: {', '.join(rules.frameworks.all_missing)} "
            "(--current-plugin-dir)"
        )
    if any(
        each.decided is not None and each.new is not None and rules.of(each.new) is not rules
        for each in every
    ):
        yield f"bindings of {DEFAULT_SCHEDULER_NAME} are decided by the rules of a stock karmada-scheduler"
    if inputs.is_live and any(map(_is_written_by_detector, every)):
        yield "not judged: whether Karmada's detector can write what changes, as Events are not read"
    if inputs.schedulers.problem and inputs.is_live:
        yield f"whether the schedulers of the bindings run is not known: {inputs.schedulers.problem}"


def _is_written_by_detector(each: Comparison) -> bool:
    if not each.is_spec_changed or each.new is None:
        return False
    return each.old is None or is_from_detector(each.old, each.new)


def notes(what_if: WhatIf, quotas: Mapping[Quota, bool], capacity: Sequence[Capacity]) -> Iterator[str]:
    """Yield what the plan does not know, and what stays although that may surprise.

    Args:
        what_if: After ``decide``.
        quotas: What ``decide`` has returned.
        capacity: What the plan asks of clusters.
    """
    inputs, every = what_if.inputs, what_if.comparisons.values()
    yield from inputs.more_notes
    yield from inputs.draft.notes
    yield from what_if.derived.notes
    yield from upgrade_notes(what_if)
    yield from held_notes(every)
    yield from attached_notes(what_if)
    for effect in ("NoSchedule", "NoExecute"):
        for name, taints in deletions.new_taints(what_if.changed_clusters, effect).items():
            kept = [
                comparison
                for comparison in every
                if comparison.new is not None
                and any(target.name == name for target in comparison.after)
                and not deletions.tolerates(comparison.new, taints)
            ]
            if kept:
                yield f"{len(kept)} of them are on {name} and would not be placed there again once they leave"
            if kept and effect == "NoExecute" and not inputs.evicts:
                yield (
                    f"Karmada evicts them from {name} only with --enable-no-execute-taint-eviction "
                    "(give it here as well to see what moves then)"
                )
    yield from _when_lost(what_if)
    if what_if.rebalances_not_judged:
        count = counted(what_if.rebalances_not_judged, "binding")
        yield f"not judged: whether a rebalance would move {count}, because there was no time"
    yield from _running(what_if, [load for mode in capacity[:1] for load in mode.clusters])
    yield from _limits(what_if, quotas, capacity)
    gated = sum(1 for each in every if each.decided is not None and each.decided.reason == "Gated")
    if gated:
        yield f"{counted(gated, 'binding is', 'bindings are')} gated by a PreEnqueue plugin"


def _running(what_if: WhatIf, loads: Iterable[ClusterLoad]) -> Iterator[str]:
    """Yield on which clusters whose replicas change not all that are assigned now run, as clusters that are ready report."""
    clusters = what_if.inputs.before.clusters
    loads = [load for load in loads if not cluster_problem(load.name, clusters.get(load.name))[0]]
    names = {load.name for load in loads}
    assigned, ready = Counter[str](), Counter[str]()
    for comparison in what_if.comparisons.values():
        if comparison.old is None or names.isdisjoint(name for name, _ in comparison.before):
            continue
        reports = comparison.old.status.reported_by_cluster()
        for name, share in comparison.before:
            if (known := reports.get(name, (0, None))[1]) is not None:
                assigned[name] += share
                ready[name] += min(share, known)
    for load in loads:
        if (running := ready[load.name]) < (of := assigned[load.name]):
            text = f"of {counted(of, 'replica')} assigned to {load.name} and reported, {running:,} {'runs' if running == 1 else 'run'}"
            yield f"{text}; not judged: whether those that start there will run" if load.starts else text


def held_notes(every: Iterable[Comparison]) -> Iterator[str]:
    """Yield how many moves each plugin holds, and how long that takes if as many are let through each time as now."""
    held: dict[str, list[HeldMove]] = defaultdict(list)
    anyway: Counter[str] = Counter()
    moved = graceful = 0
    for comparison in every:
        anyway[comparison.held_anyway] += 1
        effect, decided = comparison.effect, comparison.decided
        if decided is None:
            continue
        if effect is Effect.HELD and comparison.hold is None and decided.held is not None:
            held[decided.held.plugin].append(decided.held)
        elif effect is Effect.MOVED:
            moved += 1
            graceful += bool(decided.graceful)
    for text, count in sorted(anyway.items()):
        if text:
            yield f"{counted(count, 'binding is', 'bindings are')} held with and without the change: {text}"
    if graceful:
        text = f"{graceful:,} of {counted(moved, 'move')} {'is' if graceful == 1 else 'are'} graceful"
        yield f"{text}: Karmada keeps the old copies until the new ones are healthy"
    for plugin, moves in sorted(held.items()):
        text = f"{plugin} holds {len(moves):,} of {counted(len(moves) + moved, 'move')}"
        pause = max(move.retry_after for move in moves)
        if not pause:
            yield f"{text}: {moves[0].reason}"
        elif not moved:
            yield f"{text} for {_time(pause)} at least: {moves[0].reason}"
        else:
            rest = math.ceil(len(moves) / moved) * pause
            yield f"{text}, the last for some {_time(rest)}: {moves[0].reason}"


def _time(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def attached_notes(what_if: WhatIf) -> Iterator[str]:
    """Yield which copies start, end, or stay without Karmada, beyond those that decisions name.

    Args:
        what_if: After ``decide``.
    """
    following = {
        key: found
        for key, comparison in what_if.comparisons.items()
        if comparison.new is not None and (found := requirers(what_if.manifest_of(key)))
    }
    placed = {
        str(BindingEntry(*key)): {target.name for target in each.after} if _requires(what_if, key) else None
        for key, each in what_if.comparisons.items()
        if following
    }
    deleted = deleted_clusters(what_if.changed_clusters)
    for key, comparison in what_if.comparisons.items():
        if comparison.preserves and (leaving := left(comparison.before, comparison.after)):
            shown = ", ".join(map(str, targets(leaving)))
            yield f"{BindingEntry(*key)} leaves {shown}, where it goes on running, unmanaged ({PRESERVED})"
        if kept := comparison.undispatched(comparison.after):
            yield f"{BindingEntry(*key)} goes on running {counted(kept, 'replica')} too many: dispatching is suspended"
        if key in following:
            yield from _of_follower(key, comparison, following[key], placed, deleted)
        is_leaving = deleted and comparison.new is not None and comparison.new.spec.graceful_eviction_tasks
        if is_leaving and (ending := {*evicting_from(what_if.manifest_of(key))}.intersection(deleted)):
            ends = "goes on running, unmanaged" if comparison.preserves else "ends with the cluster"
            where = ", ".join(sorted(ending))
            yield f"the old copy of {BindingEntry(*key)} on {where} {ends}: it waits for no new one any more"


def _requires(what_if: WhatIf, key: BindingKey) -> bool:
    """Return whether a binding is still there after the change, and its ``propagateDeps`` is not turned off by it."""
    before, after = (each.bindings.get(key) for each in (what_if.inputs.before, what_if.inputs.draft.after))
    had, has = (part(manifest or {}, "spec").get("propagateDeps") is True for manifest in (before, after))
    return after is not None and (has or not had)


def _of_follower(
    key: BindingKey,
    own: Comparison,
    found: Mapping[str, Mapping[str, int]],
    placed: Mapping[str, Collection[str] | None],
    deleted: list[str],
) -> Iterator[str]:
    """Yield which copies of a binding start and end because those that require it move.

    Args:
        key: The binding.
        own: The same on both sides.
        found: The bindings that require it, with their clusters.
        placed: The clusters of all bindings by ``NAMESPACE/NAME``; None of those that require nothing any more.
        deleted: The deleted clusters.
    """
    moved = {target.name for target in (*own.before, *own.after)}
    before = {name for clusters in found.values() for name in clusters} - moved
    after: set[str] = set()
    for requirer, clusters in found.items():
        after.update(placed.get(requirer, clusters) or ())
    after -= moved | {*deleted}
    for names, text in ((before - after, "ends"), (after - before, "starts")):
        if names:
            where = ", ".join(sorted(names))
            yield f"the copy of {BindingEntry(*key)} on {where} {text}: it follows {', '.join(found)}"
    if all(placed.get(requirer, clusters) is None for requirer, clusters in found.items()):
        yield f"nothing requires {BindingEntry(*key)} any more: unless it has clusters of its own, Karmada leaves it behind"
