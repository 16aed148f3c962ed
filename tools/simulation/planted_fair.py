"""Bugs in FairShare; see ``planted_bugs``."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from karmada_scheduler_plugins._tenants import Tenants
from karmada_scheduler_plugins.fair_share import FairShare
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

FAIR_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, FAIR_BUGS)


@_bug("the share is that of the time at which a binding was queued", "fair", found_by=("1", "fair"))
def _share_is_read_at_push() -> Patches:
    group_of, key_of = FairShare.queue_group, FairShare.queue_group_key
    known: dict[tuple[int, str], float] = {}

    def queue_group(self: FairShare, queued: Any, /) -> str:
        group = group_of(self, queued)
        known.pop((id(self), group), None)
        return group

    def queue_group_key(self: FairShare, group: str, head: Any = None, /) -> tuple[float, ...]:
        band, *share = key_of(self, group, head)
        return band, *(known.setdefault((id(self), group), each) for each in share)

    yield FairShare, "queue_group", queue_group
    yield FairShare, "queue_group_key", queue_group_key


@_bug("what is decided counts when it is seen", "fair", "within limits", found_by=("1", "fair"))
def _decisions_do_not_count() -> Patches:
    yield Tenants, "decide", lambda *_: ""


@_bug("a share that falls is not noticed", "fair", found_by=("8", "fair"))
def _falls_are_not_noticed() -> Patches:
    yield FairShare, "fallen_groups", None


@_bug("the weight does not count", "fair", found_by=("1", "fair"))
def _weight_does_not_count() -> Patches:
    share = Tenants.share

    def unweighted(self: Tenants, tenant: str) -> float:
        return share(self, tenant) * self._terms(tenant).weight

    yield Tenants, "share", unweighted


@_bug("limits are not kept", "within limits", found_by=("1", "fair"))
def _limits_are_not_kept() -> Patches:
    yield Tenants, "_over", lambda *_: ""
