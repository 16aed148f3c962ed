"""A rebalance proposal as text: what moves, where, why not more, and how to execute it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import Target
from karmada_advisor.rebalance.model import BindingMove, ClusterShare, Goal, Left, Reason, RebalanceProposal
from karmada_advisor.views.layout import Style, folded_to, printable, table

_CLUSTERS: Final = 6
_EXAMPLES: Final = 3
_NAMES: Final = 3

_LEFT: Final = {
    Left.LOCALITY_KEEPS: "cluster maxGroups is met by present clusters, which score 100: a rebalance selects them again",
    Left.SAME_PLACEMENT: "a rebalance gives the placement that it has",
    Left.NO_GAIN: "would move, and not serve the goal",
    Left.BELOW_MIN_KEPT: "more than --min-kept permits would move",
    Left.MAX_MOVES: "more would move than --max-moves permits",
    Left.MAX_BINDINGS: "--max-bindings is reached",
    Left.MAX_PER_NAMESPACE: "--max-per-namespace is reached",
    Left.FAILS: "the decision would fail",
    Left.CHANGES_ANYWAY: "the next event moves it without a rebalance",
}
_REASONS: Final = {
    Reason.PLACED: "placed at last",
    Reason.DISALLOWED: "off clusters that the policy no longer allows",
}


def rebalance_text(proposal: RebalanceProposal, style: Style, *, written: Sequence[str] = ()) -> str:
    """Return the text for people; ``written`` are the files with the manifests."""
    sections = [
        [*_head(proposal, style)],
        [*_examples(proposal, style)],
        [*_left(proposal, style)],
        [*_execution(proposal, style, written)],
    ]
    return "\n\n".join("\n".join(each) for each in sections if each) + "\n"


def _goal(proposal: RebalanceProposal) -> str:
    match proposal.goal:
        case Goal.SPREAD:
            return "even out the dominant shares"
        case Goal.CONSOLIDATE:
            return "use fewer clusters per Aggregated binding"
        case Goal.FILL:
            return f"use {printable(proposal.fill)}"


def _head(proposal: RebalanceProposal, style: Style) -> Iterator[str]:
    yield from style.wrap(
        f"Proposal: {_goal(proposal)}, against {counted(proposal.clusters, 'cluster')}, "
        f"{counted(proposal.total, 'binding')} (fleet {proposal.provenance.fleet_text})",
        indent="  ",
    )
    if not proposal.bindings:
        yield style.paint("  Nothing to rebalance.", "bold")
        return
    bounds = proposal.bounds
    kept = f"; every binding keeps at least {bounds.min_kept:.0%}" if bounds.min_kept else ""
    line = (
        f"  {counted(proposal.bindings, 'binding')}, {counted(proposal.stops, 'replica moves', 'replicas move')} "
        f"(bound {bounds.max_moves:,}){kept}"
    )
    yield from style.wrap(style.paint(line, "bold"), indent="    ")
    for reason, text in _REASONS.items():
        if count := sum(each.reason is reason for batch in proposal.batches for each in batch.moves):
            yield f"  {counted(count, 'binding')} {text}"
    shares = proposal.shares if style.unfolded else proposal.shares[:_CLUSTERS]
    yield from table(
        ("CLUSTER", "DOMINANT SHARE", "REPLICAS"),
        [_share(each) for each in shares],
        style,
        align="<<<",
        indent="    ",
    )
    if len(proposal.shares) > len(shares):
        yield f"    and {counted(len(proposal.shares) - len(shares), 'more cluster')}"
    before, after = 100 * proposal.deviation_before, 100 * proposal.deviation_after
    yield f"  spread of shares (standard deviation) {before:.1f} -> {after:.1f} points"


def _share(each: ClusterShare) -> tuple[str, str, str]:
    share = (
        "unknown"
        if each.share_before is None or each.share_after is None
        else f"{100 * each.share_before:.1f} % -> {100 * each.share_after:.1f} %"
    )
    return printable(each.name), share, f"{each.replicas_before:,} -> {each.replicas_after:,}"


def _examples(proposal: RebalanceProposal, style: Style) -> Iterator[str]:
    moves = [each for batch in proposal.batches for each in batch.moves]
    shown = moves if style.unfolded else moves[:_EXAMPLES]
    for each in shown:
        yield from _moved(each, style)
    if len(moves) > len(shown):
        yield f"  and {len(moves) - len(shown):,} more (--all)"


def _moved(each: BindingMove, style: Style) -> Iterator[str]:
    lead = f"  {printable(str(each))}   "
    yield lead + _placement(each.before, style.width - len(lead), style)
    arrow = " " * max(2, len(lead) - 3) + "-> "
    yield arrow + _placement(each.after, style.width - len(arrow), style)


def _placement(found: Sequence[Target], width: int, style: Style) -> str:
    names = [f"{printable(each.name)} {each.replicas:,}" for each in found]
    return folded_to(names, max(20, width), style) or "no cluster"


def _left(proposal: RebalanceProposal, style: Style) -> Iterator[str]:
    if proposal.left:
        left = counted(sum(each.count for each in proposal.left), "binding was", "bindings were")
        yield f"Why not more ({left} left)"
        rows = [
            (
                f"{each.count:,}",
                each.reason.value,
                f"{_LEFT[each.reason]}: {style.fold([printable(name) for name in each.bindings], limit=_NAMES)}",
            )
            for each in proposal.left
        ]
        yield from table((), rows, style, align="><<", indent="  ")
    if proposal.skipped:
        listed = ", ".join(f"{each.count:,} {each.reason.value}" for each in proposal.skipped)
        yield from style.wrap(f"  not looked at: {listed} (a rebalance changes nothing there)", indent="    ")
    if (found := proposal.suggestion) is not None:
        policy = f" in {printable(str(found.policy))}" if found.policy is not None else ""
        yield from style.wrap(
            f"  With {found.text}{policy} and the same bounds: {counted(found.bindings, 'binding')}, "
            f"{counted(found.stops, 'replica')} (verified).",
            indent="    ",
        )


def _execution(proposal: RebalanceProposal, style: Style, written: Sequence[str]) -> Iterator[str]:
    if not proposal.batches:
        return
    most = max((each for batch in proposal.batches for each in batch.moves), key=lambda each: each.stops)
    size = max(len(batch.moves) for batch in proposal.batches)
    batches = counted(len(proposal.batches), "batch", "batches")
    yield from style.wrap(
        f"Batches: {batches} of at most {counted(size, 'binding')}. Decisions within a batch do not wait for each "
        "other's effects; the figures above are computed that way.",
        indent="  ",
    )
    yield from style.wrap(
        "Moves are not surge-safe: Karmada removes the old replicas without waiting for the new ones. Largest: "
        f"{most.stops:,} of {counted(sum(each.replicas for each in most.before), 'replica')} of {printable(str(most))}.",
        indent="  ",
    )
    for note in proposal.notes:
        yield from style.wrap(printable(note), indent="  ")
    if written:
        yield from style.wrap(
            f"Written: {style.fold([printable(each) for each in written])}. Execute: kubectl create -f "
            f"{printable(written[0])}; wait; run this command again.",
            indent="  ",
        )
    else:
        yield from style.wrap(
            "Write manifests with --write-to DIR, then: kubectl create -f DIR/batch-1.yaml; wait; run this command again.",
            indent="  ",
        )
