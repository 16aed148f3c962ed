"""The plan of a change as data, from the bindings on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.inputs import rebalanced
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.state.model import Target
from karmada_advisor.whatif.plan import deletions, failures
from karmada_advisor.whatif.plan.capacity_model import Capacity
from karmada_advisor.whatif.plan.decide import PlannedDecision, PlanSide
from karmada_advisor.whatif.plan.derive import Derived
from karmada_advisor.whatif.plan.effects import Comparison, Shift, cannot_start, out_of_service, targets
from karmada_advisor.whatif.plan.fleet_rules import SHOWN, fingerprint
from karmada_advisor.whatif.plan.lint import lint
from karmada_advisor.whatif.plan.load import loads_after
from karmada_advisor.whatif.plan.model import (
    CANNOT_START,
    CLASSES,
    PENDING,
    BindingPlan,
    BlockedDeletion,
    ClaimChange,
    Drift,
    Effect,
    Held,
    Later,
    Plan,
    Totals,
)
from karmada_advisor.whatif.plan.notes import notes
from karmada_advisor.whatif.plan.objects import ChangeError, ChangeShown, PlanObjects
from karmada_advisor.whatif.plan.question import PlanInputs, known_of
from karmada_advisor.whatif.plan.what_if import AT_ONCE, WhatIf
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import replace

BURST: Final = "burst"
ACCOUNTED: Final = "accounted"
MOST_IN_ORDER: Final = 2_000_000
"""Decisions times clusters up to which the other capacity mode is computed: its decisions share no cached order."""

_PLACING: Final = frozenset({Effect.MOVED, Effect.PLACED, Effect.UNPLACED})


def make_plan(inputs: PlanInputs) -> Plan:
    """Return what a change does.

    Raises:
        ChangeError: An object cannot be read after the change, or Karmada would refuse it; then with the warnings.
    """
    try:
        what_if = WhatIf(inputs)
    except ChangeError as refusal:
        clusters = known_of(PlanObjects(inputs.draft.after.clusters)).clusters.values()
        warnings = [f"warning: {warning}" for warning in lint(inputs, clusters)]
        raise ChangeError("\n".join([str(refusal), *warnings])) from refusal
    quotas = what_if.decide()
    derived, comparisons = what_if.derived, what_if.comparisons
    side = what_if.side_after()  # filter results are in the caches, so that another snapshot costs little
    groups = (
        *failures.grouped(_failing(comparisons), side, derived.policies),
        *failures.held(comparisons),
    )
    blocked = tuple(deletions.blocked(comparisons, what_if.changed_clusters, side))
    by_key: dict[BindingKey, BindingPlan] = {}
    counts = Counter(dict.fromkeys(CLASSES, 0))
    for key, comparison in comparisons.items():
        effect = _effect(key, comparison, derived)
        counts[effect.value] += 1
        if effect is not Effect.UNCHANGED or key in derived.claims:
            by_key[key] = binding_plan(key, comparison, derived, cannot_start(comparison, side.snapshot))
    plans, latent = [*by_key.values()], _latent(comparisons)
    capacity = tuple(_capacity(what_if, by_key, side.snapshot))
    counts[CANNOT_START] = sum(bool(plan.cannot_start) for plan in plans)
    counts[PENDING] = sum(map(_is_pending, comparisons.values()))
    counts.update(plan.claim.value for plan in plans if plan.claim is not ClaimChange.KEPT)
    hashed = fingerprint(inputs.before, inputs.rules_text, inputs.quotas or ())
    return Plan(
        Provenance(Tense.RECOMPUTED, inputs.source, inputs.at, hashed[:SHOWN]),
        hashed,
        (*_shown(inputs.draft.shown, blocked), *inputs.rule_changes),
        len(inputs.before.clusters),
        len(comparisons),
        dict(counts),
        None if what_if.changed_clusters or what_if.restarts else _not_derived(what_if, by_key),
        _after_rebalance(plans, counts, what_if.rebalances_not_judged),
        _totals(
            (plan, Shift(plan.stops, plan.starts, plan.entirely)) for plan in plans if plan.effect in _PLACING
        ),
        _totals((by_key[key], comparisons[key].shift_to(later.targets)) for key, later in latent.items()),
        tuple(plans),
        groups,
        capacity,
        loads_after(comparisons, side.snapshot, latent),
        blocked,
        tuple(lint(inputs, what_if.after.clusters.values(), what_if)),
        tuple(_drift(comparisons)) if inputs.with_drift else None,
        (*_waiting(plans, side.snapshot), *notes(what_if, quotas, capacity)),
    )


def _is_pending(each: Comparison) -> bool:
    """Return whether a binding has a placement, and no cluster before and after the change."""
    has_placement = each.new is not None and each.new.spec.placement is not None
    return has_placement and not each.after and each.effect is Effect.UNCHANGED


def _not_derived(what_if: WhatIf, plans: Mapping[BindingKey, BindingPlan]) -> int:
    """Count the unchanged bindings that follow from no changed object; others may be held for reasons of their own."""
    return sum(
        not comparison.is_spec_changed
        and key not in what_if.derived.concerned
        and (key not in plans or plans[key].effect is Effect.UNCHANGED)
        for key, comparison in what_if.comparisons.items()
    )


def _shown(changes: Iterable[ChangeShown], blocked: Iterable[BlockedDeletion]) -> Iterator[ChangeShown]:
    """Yield the parts of the change; a deleted cluster that stays is not gone."""
    staying = {blocker.object for blocker in blocked}
    for each in changes:
        is_staying = each.sign == "-" and each.object in staying
        yield replace(each, text=each.text.replace("is gone", "stays Terminating")) if is_staying else each


def binding_plan(
    key: BindingKey, each: Comparison, derived: Derived, waiting: tuple[Target, ...] = ()
) -> BindingPlan:
    """Return what a change does to one binding; ``waiting`` is what it assigns and cannot start."""
    effect = _effect(key, each, derived)
    spec = (each.new or each.old or Binding(key)).spec
    moved = each.shift_to(each.after)
    acts = effect not in {Effect.UNCHANGED, Effect.DEFERRED, Effect.LATENT}
    waiting = waiting if effect in _PLACING else ()
    decided, later = each.decided, each.later if effect is Effect.LATENT else None
    return BindingPlan(
        *key,
        effect,
        derived.claims.get(key, ClaimChange.KEPT),
        derived.policies.get(key),
        spec.replicas,
        targets(each.before),
        targets(each.after),
        decided.type.value if decided is not None else "Avoid",
        _WHEN.get(effect, each.when),
        moved.stops if acts else 0,
        moved.starts - sum(target.replicas for target in waiting) if acts else 0,
        moved.entirely if acts else False,
        decided.error if decided is not None else "",
        None if later is None else Later(targets(later.targets), later.error),
        _held(each) if effect in {Effect.HELD, Effect.UNDECIDED, Effect.NOT_JUDGED} else None,
        decided.graceful if acts and decided is not None and each.hold is None else (),
        derived.policies_before.get(key),
        waiting,
    )


def _effect(key: BindingKey, each: Comparison, derived: Derived) -> Effect:
    effect = each.effect
    return Effect.DEFERRED if effect is Effect.UNCHANGED and key in derived.deferred else effect


def _held(each: Comparison) -> Held | None:
    if each.hold is not None:
        wanted = targets(each.wanted) if each.is_known else ()
        return Held("", each.hold.text, wanted, 0.0, each.hold.by)
    found = each.decided.held if each.decided is not None else None
    if found is None:
        return None
    return Held(found.plugin, found.reason, targets(found.targets), found.retry_after)


_WHEN: Final = {
    Effect.UNCHANGED: "",
    Effect.DEFERRED: "when the template changes",
    Effect.LATENT: "at the next rebalance",
    Effect.DELETED: AT_ONCE,
}
"""When what is no decision takes effect."""


def _after_rebalance(
    plans: Sequence[BindingPlan], counts: Mapping[str, int], not_judged: int
) -> dict[str, int]:
    failing = sum(1 for plan in plans if plan.later is not None and plan.later.error)
    return {
        "unchanged": counts[Effect.UNCHANGED.value] - not_judged,
        "moved": counts[Effect.LATENT.value] - failing,
        "stuck": counts[Effect.STUCK.value] + failing,
    } | ({Effect.NOT_JUDGED.value: not_judged} if not_judged else {})


def _totals(moves: Iterable[tuple[BindingPlan, Shift]]) -> Totals:
    stops = starts = entirely = without = 0
    for plan, moved in moves:
        stops += moved.stops
        starts += moved.starts
        entirely += moved.entirely and plan.replicas > 0
        without += not plan.replicas
    return Totals(stops, starts, entirely, without)


def _waiting(plans: Iterable[BindingPlan], snapshot: Snapshot) -> Iterator[str]:
    """Yield which clusters cannot start what is assigned to them, and how much that is."""
    found: dict[str, list[int]] = {}
    for plan in plans:
        for target in plan.cannot_start:
            found.setdefault(target.name, []).append(target.replicas)
    for name, counts in sorted(found.items()):
        what = counted(sum(counts), "replica") if any(counts) else counted(len(counts), "copy", "copies")
        state = out_of_service(snapshot.get(name))
        why = f"{name} is {state}" if state else f"dispatching to {name} is suspended"
        yield f"{why}: {what} would be assigned to it and cannot start"


def _drift(every: Mapping[BindingKey, Comparison]) -> Iterator[Drift]:
    for key, comparison in every.items():
        found = comparison.unchanged_side
        if comparison.has_drift and found is not None:
            yield Drift(*key, targets(comparison.before), targets(found.targets), found.error)


def _failing(comparisons: Mapping[BindingKey, Comparison]) -> Iterator[failures.Failing]:
    for key, each in comparisons.items():
        if each.new is None or (each.decided is None and each.later is None):
            continue
        effect = each.effect
        if effect in {Effect.STUCK, Effect.UNPLACED} and each.decided is not None and each.decided.error:
            yield key, effect, each.new, each.decided
        elif effect is Effect.LATENT and each.later is not None and each.later.error:
            yield key, effect, rebalanced(each.new), each.later


def _latent(comparisons: Mapping[BindingKey, Comparison]) -> dict[BindingKey, PlannedDecision]:
    return {
        key: comparison.later
        for key, comparison in comparisons.items()
        if comparison.later is not None and not comparison.later.error and comparison.effect is Effect.LATENT
    }


def _capacity(
    what_if: WhatIf, plans: Mapping[BindingKey, BindingPlan], snapshot: Snapshot
) -> Iterator[Capacity]:
    """Yield what the plan asks of clusters in the configured mode, and in the other one where that is known."""
    inputs, comparisons = what_if.inputs, what_if.comparisons
    moving = {key: comparisons[key] for key, plan in plans.items() if plan.effect in _PLACING}
    if not moving:
        return
    rules = inputs.rules_after
    decided = {key: each.decided for key, each in moving.items() if each.decided is not None}
    configured = _mode(what_if, rules, snapshot, decided)
    if not configured.clusters:
        return
    yield configured
    is_wanted = rules.accounts or bool(configured.overcommitted)
    if inputs.other_mode is None or not is_wanted:
        return
    if len(decided) * len(snapshot) > MOST_IN_ORDER and not rules.accounts:
        return
    other = inputs.other_mode()
    side = PlanSide(other, snapshot, what_if.after.bindings.values())
    bindings = [each.new for key, each in moving.items() if each.new is not None and key in decided]
    types = {key: outcome.type for key, outcome in decided.items()}
    progress = partial(inputs.progress, "in the other capacity mode")
    outcomes = side.outcomes(bindings, types, progress)
    again = {binding.key: outcome for binding, outcome in outcomes if outcome is not None}
    yield _mode(what_if, other, snapshot, again)


def _mode(
    what_if: WhatIf, rules: DryRun, snapshot: Snapshot, decided: Mapping[BindingKey, PlannedDecision]
) -> Capacity:
    clusters = loads_after(what_if.comparisons, snapshot, decided)
    return Capacity(
        ACCOUNTED if rules.accounts else BURST,
        rules is what_if.inputs.rules_after,
        clusters,
        tuple(cluster.name for cluster in clusters if cluster.over),
        sum(not outcome.error for outcome in decided.values()),
        sum(bool(outcome.error) for outcome in decided.values()),
    )
