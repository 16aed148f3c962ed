"""From the compared bindings to the plan as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.explain.amounts import counted
from karmada_scheduler.explain.model import Provenance, Target, Tense
from karmada_scheduler.plan import eviction, triggers
from karmada_scheduler.plan.decide import HeldMove
from karmada_scheduler.plan.derive import Derived
from karmada_scheduler.plan.effects import Comparison, shift
from karmada_scheduler.plan.fingerprint import SHOWN, fingerprint
from karmada_scheduler.plan.held import held_notes
from karmada_scheduler.plan.inputs import PlanInputs
from karmada_scheduler.plan.model import (
    CLASSES,
    BindingPlan,
    Capacity,
    Claim,
    ClusterLoad,
    Drift,
    Effect,
    FailureGroup,
    Held,
    Later,
    Plan,
    Totals,
)
from karmada_scheduler.plan.parsed import Parsed


@dataclass(frozen=True)
class Compared:
    """What the planner has found.

    Attributes:
        all: Every binding on both sides.
        parsed: The objects.
        derived: What follows from policies.
        failures: Failing decisions.
        capacity: What the plan asks of clusters.
        latent_load: The same at the next rebalance.
        restarts: Whether the configuration changes.
    """

    all: Mapping[BindingKey, Comparison]
    parsed: Parsed
    derived: Derived
    failures: tuple[FailureGroup, ...]
    capacity: tuple[Capacity, ...]
    latent_load: tuple[ClusterLoad, ...]
    restarts: bool


def result(inputs: PlanInputs, found: Compared) -> Plan:
    """Return the plan."""
    plans = [_binding_plan(key, each, found.derived) for key, each in found.all.items()]
    counts = Counter(dict.fromkeys(CLASSES, 0))
    counts.update(each.effect.value for each in plans)
    counts.update(each.claim.value for each in plans if each.claim is not Claim.KEPT)
    hashed = fingerprint(inputs.before, inputs.rules_text)
    has_other_changes = bool(found.parsed.changed_clusters) or found.restarts
    concerned = found.derived.concerned | {key for key, each in found.all.items() if each.is_spec_changed}
    return Plan(
        Provenance(Tense.RECOMPUTED, inputs.source, inputs.at, hashed[:SHOWN]),
        hashed,
        (*inputs.draft.shown, *inputs.rule_changes),
        len(inputs.before.clusters),
        len(plans),
        dict(counts),
        None if has_other_changes else len(plans) - len(concerned),
        _after_rebalance(plans, counts),
        _totals(each for each in plans if each.effect in {Effect.MOVED, Effect.UNPLACED, Effect.PLACED}),
        _latent_totals(plans),
        tuple(each for each in plans if each.effect is not Effect.UNCHANGED or each.claim is not Claim.KEPT),
        found.failures,
        found.capacity,
        found.latent_load,
        tuple(_drift(found.all)) if inputs.with_drift else None,
        tuple(_notes(inputs, found)),
    )


def _binding_plan(key: BindingKey, each: Comparison, derived: Derived) -> BindingPlan:
    effect = each.effect
    claim = derived.claims.get(key, Claim.KEPT)
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
        _held(decided.held) if effect is Effect.HELD and decided is not None and decided.held else None,
        decided.graceful if acts and decided is not None else (),
    )


def _held(found: HeldMove) -> Held:
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
    stops = starts = entirely = without = 0
    for each in plans:
        stops += each.stops
        starts += each.starts
        entirely += each.entirely and each.replicas > 0
        without += not each.replicas
    return Totals(stops, starts, entirely, without)


def _latent_totals(plans: Iterable[BindingPlan]) -> Totals:
    stops = starts = entirely = without = 0
    for each in plans:
        if each.later is None or each.later.error:
            continue
        moved = shift(_as_clusters(each.before), _as_clusters(each.later.targets))
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


def _notes(inputs: PlanInputs, found: Compared) -> Iterator[str]:
    """Yield what the plan does not know, and what stays although that may surprise."""
    yield from inputs.draft.notes
    yield from found.derived.notes
    yield from held_notes(found.all.values())
    changed = found.parsed.changed_clusters
    for effect in ("NoSchedule", "NoExecute"):
        for name, taints in eviction.new_taints(changed, effect).items():
            kept = [
                each
                for each in found.all.values()
                if each.new is not None
                and any(target.name == name for target in each.after)
                and not eviction.tolerates(each.new, taints)
            ]
            if kept:
                yield f"{len(kept)} of them are on {name} and would not be placed there again once they leave"
            if kept and effect == "NoExecute" and not inputs.evicts:
                yield (
                    f"Karmada evicts them from {name} only with --enable-no-execute-taint-eviction "
                    "(give it here as well to see what moves then)"
                )
    gone = [name for name, (_, new) in changed.items() if new is not None and new.deleting]
    if gone:
        yield (
            f"when: at once, because the scheduler reschedules the bindings of a deleted cluster; "
            f"{gone[0]} being not ready moves nothing by itself"
        )
    gated = sum(
        1 for each in found.all.values() if each.decided is not None and each.decided.reason == "Gated"
    )
    if gated:
        yield f"{counted(gated, 'binding is', 'bindings are')} gated by a PreEnqueue plugin"
