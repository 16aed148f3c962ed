"""How many of the assigned replicas run, and where none start: what clusters report, and which are out of service."""

from __future__ import annotations

from collections.abc import Mapping

from karmada_advisor.state.propagation import Suspended, rows_of
from karmada_advisor.state.stored import Manifest
from karmada_advisor.whatif.plan.effects import NOT_READY
from karmada_advisor.whatif.survive.classify import Present, PresentOn, counts_copies
from karmada_scheduler.api.binding import Binding


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
