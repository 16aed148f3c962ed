"""Copies that a plan's decisions do not name: those that other bindings require, and those that stay without Karmada.

Source: karmada v1.18.2 pkg/dependenciesdistributor/dependencies_distributor.go;
pkg/controllers/execution/execution_controller.go (preserveResourcesOnDeletion).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from karmada_advisor.state.copies import PRESERVED, requirers
from karmada_advisor.state.model import BindingEntry
from karmada_advisor.whatif.plan.deletions import deleted_clusters
from karmada_advisor.whatif.plan.effects import Comparison, left, targets
from karmada_advisor.whatif.plan.what_if import WhatIf
from karmada_scheduler.api.binding import BindingKey


def attached_notes(what_if: WhatIf) -> Iterator[str]:
    """Yield which copies start, end, or stay without Karmada, beyond those that decisions name.

    Args:
        what_if: After ``decide``.
    """
    placed = {str(BindingEntry(*key)): each for key, each in what_if.comparisons.items()}
    deleted = deleted_clusters(what_if.changed_clusters)
    for key, each in what_if.comparisons.items():
        if each.preserves and (leaving := left(each.before, each.after)):
            shown = ", ".join(map(str, targets(leaving)))
            yield f"{BindingEntry(*key)} leaves {shown}, where it goes on running, unmanaged ({PRESERVED})"
        if each.new is not None and (found := requirers(what_if.manifest_of(key))):
            yield from _of_follower(key, each, found, placed, deleted)


def _of_follower(
    key: BindingKey,
    own: Comparison,
    found: Mapping[str, Mapping[str, int]],
    placed: Mapping[str, Comparison],
    deleted: list[str],
) -> Iterator[str]:
    """Yield which copies of a binding start and end because those that require it move.

    Args:
        key: The binding.
        own: The same on both sides.
        found: The bindings that require it, with their clusters.
        placed: All bindings by ``NAMESPACE/NAME``.
        deleted: The deleted clusters.
    """
    moved = {target.name for target in (*own.before, *own.after)}
    before = {name for clusters in found.values() for name in clusters} - moved
    after: set[str] = set()
    for requirer, clusters in found.items():
        after |= {target.name for target in placed[requirer].after} if requirer in placed else {*clusters}
    after -= moved | {*deleted}
    for names, text in ((before - after, "ends"), (after - before, "starts")):
        if names:
            where = ", ".join(sorted(names))
            yield f"the copy of {BindingEntry(*key)} on {where} {text}: it follows {', '.join(found)}"
    if all(requirer in placed and placed[requirer].new is None for requirer in found):
        yield f"nothing requires {BindingEntry(*key)} any more: unless it has clusters of its own, Karmada leaves it behind"
