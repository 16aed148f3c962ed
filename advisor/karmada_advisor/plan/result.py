"""The plan of a change as data, from the bindings on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from karmada_advisor.explain.inputs import rebalanced
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.plan import deletions, failures
from karmada_advisor.plan.capacity_model import Capacity
from karmada_advisor.plan.change_model import ChangeShown
from karmada_advisor.plan.decide import PlannedDecision, PlanSide
from karmada_advisor.plan.derive import Derived
from karmada_advisor.plan.effects import Comparison, Shift, shift, targets
from karmada_advisor.plan.fingerprint import SHOWN, fingerprint
from karmada_advisor.plan.inputs import PlanInputs
from karmada_advisor.plan.lint import lint
from karmada_advisor.plan.load import loads_after
from karmada_advisor.plan.model import (
    CLASSES,
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
from karmada_advisor.plan.notes import notes
from karmada_advisor.plan.planner import AT_ONCE, Planner
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
        ChangeError: An object cannot be read after the change.
    """
    planner = Planner(inputs)
    quotas = planner.decide()
    derived, comparisons = planner.derived, planner.comparisons
    side = planner.side_after()  # filter results are in the caches, so that another snapshot costs little
    groups = (
        *failures.grouped(_failing(comparisons), side, derived.policies),
        *failures.held(comparisons),
    )
    capacity = tuple(_capacity(planner, side.snapshot))
    blocked = tuple(deletions.blocked(comparisons, planner.changed_clusters, side))
    plans = [binding_plan(key, each, derived) for key, each in comparisons.items()]
    counts = Counter(dict.fromkeys(CLASSES, 0))
    counts.update(each.effect.value for each in plans)
    counts.update(each.claim.value for each in plans if each.claim is not ClaimChange.KEPT)
    hashed = fingerprint(inputs.before, inputs.rules_text, inputs.quotas or ())
    return Plan(
        Provenance(Tense.RECOMPUTED, inputs.source, inputs.at, hashed[:SHOWN]),
        hashed,
        (*_shown(inputs.draft.shown, blocked), *inputs.rule_changes),
        len(inputs.before.clusters),
        len(plans),
        dict(counts),
        None if planner.changed_clusters or planner.restarts else _not_derived(planner, plans),
        _after_rebalance(plans, counts),
        _totals(
            (each, Shift(each.stops, each.starts, each.entirely)) for each in plans if each.effect in _PLACING
        ),
        _totals(
            (plan, shift(each.before, each.later.targets))
            for plan, each in zip(plans, comparisons.values(), strict=True)
            if plan.later is not None and each.later is not None and not each.later.error
        ),
        tuple(
            each
            for each in plans
            if each.effect is not Effect.UNCHANGED or each.claim is not ClaimChange.KEPT
        ),
        groups,
        capacity,
        loads_after(comparisons, side.snapshot, _latent(comparisons)),
        blocked,
        tuple(lint(planner)),
        tuple(_drift(comparisons)) if inputs.with_drift else None,
        tuple(notes(planner, quotas, capacity)),
    )


def _not_derived(planner: Planner, plans: Iterable[BindingPlan]) -> int:
    """Count the unchanged bindings that follow from no changed object; others may be held for reasons of their own."""
    return sum(
        plan.effect is Effect.UNCHANGED and not each.is_spec_changed and key not in planner.derived.concerned
        for (key, each), plan in zip(planner.comparisons.items(), plans, strict=True)
    )


def _shown(changes: Iterable[ChangeShown], blocked: Iterable[BlockedDeletion]) -> Iterator[ChangeShown]:
    """Yield the parts of the change; a deleted cluster that stays is not gone."""
    staying = {each.object for each in blocked}
    for each in changes:
        is_staying = each.sign == "-" and each.object in staying
        yield replace(each, text=each.text.replace("is gone", "stays Terminating")) if is_staying else each


def binding_plan(key: BindingKey, each: Comparison, derived: Derived) -> BindingPlan:
    """Return what a change does to one binding."""
    effect = each.effect
    claim = derived.claims.get(key, ClaimChange.KEPT)
    if effect is Effect.UNCHANGED and key in derived.deferred:
        effect = Effect.DEFERRED
    spec = (each.new or each.old or Binding(key)).spec
    moved = shift(each.before, each.after)
    acts = effect not in {Effect.UNCHANGED, Effect.DEFERRED, Effect.LATENT}
    decided = each.decided
    return BindingPlan(
        key.kind,
        key.namespace,
        key.name,
        effect,
        claim,
        derived.policies.get(key),
        spec.replicas,
        targets(each.before),
        targets(each.after),
        decided.type.value if decided is not None else "Avoid",
        _when(effect, each),
        moved.stops if acts else 0,
        moved.starts if acts else 0,
        moved.entirely if acts else False,
        decided.error if decided is not None else "",
        Later(targets(each.later.targets), each.later.error)
        if effect is Effect.LATENT and each.later is not None
        else None,
        _held(each) if effect in {Effect.HELD, Effect.UNDECIDED} else None,
        decided.graceful if acts and decided is not None and each.hold is None else (),
        derived.policies_before.get(key),
    )


def _held(each: Comparison) -> Held | None:
    if each.hold is not None:
        return Held("", each.hold.text, targets(each.wanted), 0.0, each.hold.by)
    found = each.decided.held if each.decided is not None else None
    if found is None:
        return None
    return Held(found.plugin, found.reason, targets(found.targets), found.retry_after)


def _when(effect: Effect, each: Comparison) -> str:
    match effect:
        case Effect.UNCHANGED:
            return ""
        case Effect.DEFERRED:
            return "when the template changes"
        case Effect.LATENT:
            return "at the next rebalance"
        case Effect.DELETED:
            return AT_ONCE
        case _:
            return each.when


def _after_rebalance(plans: Sequence[BindingPlan], counts: Mapping[str, int]) -> dict[str, int]:
    failing = sum(1 for each in plans if each.later is not None and each.later.error)
    moved = counts[Effect.LATENT.value] - failing
    return {
        "unchanged": counts[Effect.UNCHANGED.value],
        "moved": moved,
        "stuck": counts[Effect.STUCK.value] + failing,
    }


def _totals(moves: Iterable[tuple[BindingPlan, Shift]]) -> Totals:
    stops = starts = entirely = without = 0
    for each, moved in moves:
        stops += moved.stops
        starts += moved.starts
        entirely += moved.entirely and each.replicas > 0
        without += not each.replicas
    return Totals(stops, starts, entirely, without)


def _drift(every: Mapping[BindingKey, Comparison]) -> Iterator[Drift]:
    for key, each in every.items():
        found = each.unchanged_side
        if each.has_drift and found is not None:
            yield Drift(*key, targets(each.before), targets(found.targets), found.error)


def _failing(comparisons: Mapping[BindingKey, Comparison]) -> Iterator[failures.Failing]:
    for key, each in comparisons.items():
        effect = each.effect
        if each.new is None:
            continue
        if effect in {Effect.STUCK, Effect.UNPLACED} and each.decided is not None and each.decided.error:
            yield key, effect, each.new, each.decided
        elif effect is Effect.LATENT and each.later is not None and each.later.error:
            yield key, effect, rebalanced(each.new), each.later


def _latent(comparisons: Mapping[BindingKey, Comparison]) -> dict[BindingKey, PlannedDecision]:
    return {
        key: each.later
        for key, each in comparisons.items()
        if each.effect is Effect.LATENT and each.later is not None and not each.later.error
    }


def _capacity(planner: Planner, snapshot: Snapshot) -> Iterator[Capacity]:
    """Yield what the plan asks of clusters in the configured mode, and in the other one where that is known."""
    inputs, comparisons = planner.inputs, planner.comparisons
    moving = {key: each for key, each in comparisons.items() if each.effect in _PLACING}
    if not moving:
        return
    rules = inputs.rules_after
    decided = {key: each.decided for key, each in moving.items() if each.decided is not None}
    configured = _mode(rules, snapshot, comparisons, decided, is_configured=True)
    if not configured.clusters:
        return
    yield configured
    is_wanted = rules.accounts or bool(configured.overcommitted)
    if inputs.other_mode is None or not is_wanted:
        return
    if len(decided) * len(snapshot) > MOST_IN_ORDER and not rules.accounts:
        return
    other = inputs.other_mode()
    side = PlanSide(other, snapshot, planner.after.bindings.values())
    bindings = [each.new for key, each in moving.items() if each.new is not None and key in decided]
    types = {key: outcome.type for key, outcome in decided.items()}
    progress = partial(inputs.progress, "in the other capacity mode")
    again = {
        binding.key: outcome
        for binding, outcome in side.outcomes(bindings, types, progress)
        if outcome is not None
    }
    yield _mode(other, snapshot, comparisons, again, is_configured=False)


def _mode(
    rules: DryRun,
    snapshot: Snapshot,
    comparisons: Mapping[BindingKey, Comparison],
    decided: Mapping[BindingKey, PlannedDecision],
    *,
    is_configured: bool,
) -> Capacity:
    clusters = loads_after(comparisons, snapshot, decided)
    return Capacity(
        ACCOUNTED if rules.accounts else BURST,
        is_configured,
        clusters,
        tuple(each.name for each in clusters if each.over),
        sum(not each.error for each in decided.values()),
        sum(bool(each.error) for each in decided.values()),
    )
