"""Makes a rebalance proposal: the search, and its result as data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.plan.fingerprint import SHOWN
from karmada_advisor.plan.result import targets
from karmada_advisor.rebalance.inputs import Inputs
from karmada_advisor.rebalance.model import (
    Batch,
    BindingMove,
    ClusterShare,
    Left,
    LeftGroup,
    RebalanceProposal,
    Skipped,
    SkippedGroup,
    Workload,
)
from karmada_advisor.rebalance.search import Chosen, FoundMoves, search
from karmada_advisor.rebalance.suggest import suggestion
from karmada_advisor.rebalance.usage import deviation, differences
from karmada_scheduler.api.binding import Binding


def propose(inputs: Inputs) -> RebalanceProposal:
    """Return which bindings to rebalance."""
    found = search(inputs)
    batches = tuple(
        Batch(number, tuple(map(_move, chosen))) for number, chosen in enumerate(found.batches, 1)
    )
    moves = [move for batch in batches for move in batch.moves]
    return RebalanceProposal(
        Provenance(Tense.RECOMPUTED, inputs.source, inputs.at, inputs.fingerprint[:SHOWN]),
        inputs.fingerprint,
        inputs.goal,
        inputs.fill,
        inputs.bounds,
        len(inputs.clusters),
        len(inputs.bindings),
        len(found.candidates.wanted),
        len(moves),
        sum(each.stops for each in moves),
        batches,
        deviation(found.before.shares()),
        deviation(found.after.shares()),
        _shares(inputs.bindings, found),
        _left(inputs.bindings, found),
        _skipped(found),
        suggestion(inputs, found),
        tuple(_notes(inputs, found)),
    )


def _move(chosen: Chosen) -> BindingMove:
    key, resource = chosen.binding.key, chosen.binding.spec.resource
    return BindingMove(
        key.kind,
        key.namespace,
        key.name,
        Workload(resource.api_version, resource.kind, resource.namespace, resource.name),
        chosen.reason,
        targets(chosen.binding.spec.clusters),
        targets(chosen.after),
        chosen.stops,
        chosen.starts,
        round(chosen.gain, 9),
    )


def _shares(bindings: Iterable[Binding], found: FoundMoves) -> tuple[ClusterShare, ...]:
    """Return the clusters whose replicas change, the largest change of the share first."""
    held, moved = Counter[str](), Counter[str]()
    for binding in bindings:
        for target in binding.spec.clusters:
            held[target.name] += target.replicas
    changed = set[str]()
    for batch in found.batches:
        for chosen in batch:
            differing = differences(chosen.binding.spec.clusters, chosen.after)
            moved.update(differing)
            changed |= differing.keys()
    shares = [
        ClusterShare(
            name, found.before.share(name), found.after.share(name), held[name], held[name] + moved[name]
        )
        for name in sorted(changed)
    ]
    return tuple(sorted(shares, key=lambda each: -abs((each.share_after or 0) - (each.share_before or 0))))


def _left(bindings: Iterable[Binding], found: FoundMoves) -> tuple[LeftGroup, ...]:
    """Return the bindings that are not in the proposal, by reason, the most frequent first."""
    groups: defaultdict[Left, list[str]] = defaultdict(list)
    for binding in bindings:
        if binding.key in found.left:
            groups[found.left[binding.key]].append(str(binding.key))
    ordered = sorted(groups.items(), key=lambda each: -len(each[1]))
    return tuple(LeftGroup(reason, len(names), tuple(names)) for reason, names in ordered)


def _skipped(found: FoundMoves) -> tuple[SkippedGroup, ...]:
    counts = Counter(reason for _, reason in found.candidates.skipped)
    return tuple(SkippedGroup(reason, counts[reason]) for reason in Skipped if counts[reason])


def _notes(inputs: Inputs, found: FoundMoves) -> Iterator[str]:
    if not found.batches:
        return
    if len(found.batches) > 1:
        yield (
            "Batches after the first are computed as if the clusters had reported all moves of those before: "
            "run this command again after each."
        )
    names = {target.name for batch in found.batches for each in batch for target in each.after}
    modelled = sorted(each.name for each in inputs.clusters if each.name in names and each.resource_models)
    if modelled:
        others = f" and {counted(len(modelled) - 1, 'other')} have" if len(modelled) > 1 else " has"
        yield f"{modelled[0]}{others} resource models, whose free nodes are not computed again between batches."
