"""From the compared bindings to the plan as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from karmada_advisor.explain.model import Provenance, Target, Tense
from karmada_advisor.plan import triggers
from karmada_advisor.plan.change_model import ChangeShown
from karmada_advisor.plan.deletions import deleted_clusters
from karmada_advisor.plan.derive import Derived
from karmada_advisor.plan.effects import Comparison, Shift, shift
from karmada_advisor.plan.fingerprint import SHOWN, fingerprint
from karmada_advisor.plan.inputs import PlanInputs
from karmada_advisor.plan.lint import lint
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
    PlanWarning,
    Totals,
)
from karmada_advisor.plan.notes import Compared, notes
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.structs import replace


def result(inputs: PlanInputs, found: Compared) -> Plan:
    """Return the plan."""
    plans = [binding_plan(key, each, found.derived) for key, each in found.all.items()]
    counts = Counter(dict.fromkeys(CLASSES, 0))
    counts.update(each.effect.value for each in plans)
    counts.update(each.claim.value for each in plans if each.claim is not ClaimChange.KEPT)
    hashed = fingerprint(inputs.before, inputs.rules_text, inputs.quotas or ())
    has_other_changes = bool(found.parsed.changed_clusters) or found.restarts
    concerned = found.derived.concerned | {key for key, each in found.all.items() if each.is_spec_changed}
    return Plan(
        Provenance(Tense.RECOMPUTED, inputs.source, inputs.at, hashed[:SHOWN]),
        hashed,
        (*_shown(inputs.draft.shown, found.blocked), *inputs.rule_changes),
        len(inputs.before.clusters),
        len(plans),
        dict(counts),
        None if has_other_changes else _not_derived(found.all, plans, concerned),
        _after_rebalance(plans, counts),
        _totals(each for each in plans if each.effect in {Effect.MOVED, Effect.UNPLACED, Effect.PLACED}),
        _latent_totals(plans),
        tuple(
            each
            for each in plans
            if each.effect is not Effect.UNCHANGED or each.claim is not ClaimChange.KEPT
        ),
        found.failures,
        found.capacity,
        found.latent_load,
        found.blocked,
        tuple(_warnings(inputs, found)),
        tuple(_drift(found.all)) if inputs.with_drift else None,
        tuple(notes(inputs, found)),
    )


def _not_derived(
    keys: Iterable[BindingKey], plans: Iterable[BindingPlan], concerned: AbstractSet[BindingKey]
) -> int:
    """Count the unchanged bindings that follow from no changed object; others may be held for reasons of their own."""
    return sum(
        key not in concerned and plan.effect is Effect.UNCHANGED
        for key, plan in zip(keys, plans, strict=True)
    )


def _warnings(inputs: PlanInputs, found: Compared) -> Iterator[PlanWarning]:
    return lint(
        inputs.before,
        inputs.draft.after,
        inputs.draft.written,
        found.derived,
        clusters=found.parsed.clusters_after,
        deleted=deleted_clusters(found.parsed.changed_clusters),
        schedulers=inputs.schedulers,
        known=inputs.templates_known,
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
        derived.policy_of(key),
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
            return triggers.AT_ONCE
        case _:
            return each.when


def targets(found: Iterable[TargetCluster]) -> tuple[Target, ...]:
    """Return clusters in the order of their names."""
    return tuple(Target(each.name, each.replicas) for each in sorted(found))


def _after_rebalance(plans: Sequence[BindingPlan], counts: Mapping[str, int]) -> dict[str, int]:
    failing = sum(1 for each in plans if each.later is not None and each.later.error)
    moved = counts[Effect.LATENT.value] - failing
    return {
        "unchanged": counts[Effect.UNCHANGED.value],
        "moved": moved,
        "stuck": counts[Effect.STUCK.value] + failing,
    }


def _totals(plans: Iterable[BindingPlan]) -> Totals:
    return _sum((each, Shift(each.stops, each.starts, each.entirely)) for each in plans)


def _latent_totals(plans: Iterable[BindingPlan]) -> Totals:
    return _sum(
        (each, shift(_as_clusters(each.before), _as_clusters(each.later.targets)))
        for each in plans
        if each.later is not None and not each.later.error
    )


def _sum(moves: Iterable[tuple[BindingPlan, Shift]]) -> Totals:
    stops = starts = entirely = without = 0
    for each, moved in moves:
        stops += moved.stops
        starts += moved.starts
        entirely += moved.entirely and each.replicas > 0
        without += not each.replicas
    return Totals(stops, starts, entirely, without)


def _as_clusters(found: Iterable[Target]) -> list[TargetCluster]:
    return [TargetCluster(each.name, each.replicas) for each in found]


def _drift(every: Mapping[BindingKey, Comparison]) -> Iterator[Drift]:
    for key, each in every.items():
        found = each.unchanged_side
        if each.has_drift and found is not None:
            yield Drift(*key, targets(each.before), targets(found.targets), found.error)
