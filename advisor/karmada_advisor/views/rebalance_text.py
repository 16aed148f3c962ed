"""A rebalance proposal as text: what moves, where, why not more, and how to execute it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.views.document import Line, Table, TextBlock
from karmada_advisor.views.state import placed
from karmada_advisor.views.text import Style, text
from karmada_advisor.whatif.rebalance import model

_CLUSTERS: Final = 6
_EXAMPLES: Final = 3
_NAMES: Final = 3


def rebalance_text(proposal: model.RebalanceProposal, style: Style, *, written: Sequence[str] = ()) -> str:
    """Return the text for people; ``written`` are the files with the manifests."""
    parts = _head(proposal, style), _examples(proposal, style), _left(proposal, style)
    return text([*parts, _execution(proposal, style, written)], style)


def _head(proposal: model.RebalanceProposal, style: Style) -> Iterator[TextBlock]:
    fleet = f"{counted(proposal.clusters, 'cluster')}, {counted(proposal.total, 'binding')}"
    goal = f"use {proposal.fill}" if proposal.fill else proposal.goal.words
    yield f"Proposal: {goal}, against {fleet} (fleet {proposal.provenance.fleet_text})"
    if not proposal.bindings:
        yield Line("  Nothing to rebalance.", "bold")
        return
    bounds = proposal.bounds
    kept = f"; every binding keeps at least {bounds.min_kept:.0%}" if bounds.min_kept else ""
    moves = counted(proposal.stops, "replica moves", "replicas move")
    bindings = counted(proposal.bindings, "binding")
    yield Line(f"  {bindings}, {moves} (bound {bounds.max_moves:,}){kept}", "bold")
    for reason in (model.Reason.PLACED, model.Reason.DISALLOWED):
        if count := sum(move.reason is reason for move in _moves(proposal)):
            yield f"  {counted(count, 'binding')} {reason.words}"
    shares = style.first(proposal.shares, _CLUSTERS)
    yield Table(("CLUSTER", "DOMINANT SHARE", "REPLICAS"), [_share(share) for share in shares], indent=4)
    if len(proposal.shares) > len(shares):
        yield f"    and {counted(len(proposal.shares) - len(shares), 'more cluster')}"
    before, after = 100 * proposal.deviation_before, 100 * proposal.deviation_after
    yield f"  spread of shares (standard deviation) {before:.1f} -> {after:.1f} points"


def _moves(proposal: model.RebalanceProposal) -> list[model.BindingMove]:
    return [move for batch in proposal.batches for move in batch.moves]


def _share(cluster: model.ClusterShare) -> tuple[str, str, str]:
    before, after = cluster.share_before, cluster.share_after
    share = "unknown"
    if before is not None and after is not None:
        share = f"{100 * before:.1f} % -> {100 * after:.1f} %"
    return cluster.name, share, f"{cluster.replicas_before:,} -> {cluster.replicas_after:,}"


def _examples(proposal: model.RebalanceProposal, style: Style) -> Iterator[TextBlock]:
    moves = _moves(proposal)
    shown = style.first(moves, _EXAMPLES)
    for move in shown:
        lead = f"  {move}   "
        yield placed(lead, move.before, style)
        yield placed(" " * max(2, len(lead) - 3) + "-> ", move.after, style)
    if len(moves) > len(shown):
        yield f"  and {len(moves) - len(shown):,} more (--all)"


def _left(proposal: model.RebalanceProposal, style: Style) -> Iterator[TextBlock]:
    if proposal.left:
        count = counted(sum(left.count for left in proposal.left), "binding was", "bindings were")
        yield f"Why not more ({count} left)"
        rows = []
        for left in proposal.left:
            names = style.fold(left.bindings, limit=_NAMES)
            rows.append((f"{left.count:,}", left.reason.value, f"{left.reason.words}: {names}"))
        yield Table((), rows, ">", indent=2)
    if proposal.skipped:
        skipped = {group.reason: group.count for group in proposal.skipped}
        not_judged = skipped.pop(model.Skipped.NOT_JUDGED, 0)
        listed = ", ".join(f"{count:,} {reason.value}" for reason, count in skipped.items())
        if listed:
            yield f"  not looked at: {listed} (a rebalance changes nothing there)"
        if not_judged:
            yield f"  not judged: {counted(not_judged, 'binding')}, of schedulers whose plugins are not known here: --from"
    if (found := proposal.suggestion) is not None:
        policy = f" in {found.policy}" if found.policy is not None else ""
        counts = f"{counted(found.bindings, 'binding')}, {counted(found.stops, 'replica')}"
        yield f"  With {found.text}{policy} and the same bounds: {counts} (verified)."


def _execution(
    proposal: model.RebalanceProposal, style: Style, written: Sequence[str]
) -> Iterator[TextBlock]:
    if not proposal.batches:
        return
    most = max(_moves(proposal), key=lambda move: move.stops)
    size = max(len(batch.moves) for batch in proposal.batches)
    batches = counted(len(proposal.batches), "batch", "batches")
    yield (
        f"Batches: {batches} of at most {counted(size, 'binding')}. Decisions within a batch do not wait for each "
        "other's effects; the figures above are computed that way."
    )
    replicas = counted(sum(target.replicas for target in most.before), "replica")
    removal = "Karmada removes the old replicas without waiting for the new ones"
    yield f"Moves are not surge-safe: {removal}. Largest: {most.stops:,} of {replicas} of {most}."
    yield from proposal.notes
    if written:
        create = f"kubectl create -f {written[0]}"
        yield f"Written: {style.fold(written)}. Execute: {create}; wait; run this command again."
    else:
        yield (
            "Write manifests with --write-to DIR, then: kubectl create -f DIR/batch-1.yaml; wait; run this command again."
        )
