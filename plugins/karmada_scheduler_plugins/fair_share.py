"""FairShare: tenants that share a fleet take turns by what they use of it, up to their limits. Off by default.

docs/fair-share.md explains it for operators.
"""

from __future__ import annotations

import math
from typing import Final

from karmada_scheduler import framework as fw
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler_plugins._tenants import FairShareArgs, Tenants

WAITS_EVENT: Final = "WaitsForShare"
_GLOBAL: Final = ""
"""The group of priorities that go before all tenants."""


class FairShare:
    """Take the next binding from the tenant that uses the least of the fleet by its weight, and keep tenants within limits."""

    name = "FairShare"

    def __init__(self, args: FairShareArgs, handle: fw.Handle) -> None:
        """Take the args of the profile, which must be the same in all."""
        self._handle = handle
        known = handle.shared.setdefault(self.name, Tenants(args, handle))
        assert isinstance(known, Tenants)
        if known.args != args:
            raise ValueError(
                f"its args must be those of the profile {known.profile}: its tenants share one fleet"
            )
        known.profiles.add(handle.profile)
        self._tenants, self._follows = known, known.profile == handle.profile

    def observe(self, old: Binding | Cluster | None, new: Binding | Cluster | None, /) -> None:
        """Follow what tenants use, and the clusters; once for all profiles."""
        present = new or old
        if not self._follows:
            return
        if present is None:
            self._tenants.clear()
        elif isinstance(present, Cluster):
            self._tenants.follow_cluster(present.name, new if isinstance(new, Cluster) else None)
        else:
            self._tenants.follow(present.key, new if isinstance(new, Binding) else None)

    def less(self, a: fw.QueuedBinding, b: fw.QueuedBinding, /) -> bool:
        """Return whether a binding goes before another one of its tenant."""
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, queued: fw.QueuedBinding, /) -> tuple[float, ...]:
        """Return the order inside a tenant: by priority, then by age."""
        created = queued.binding.creation_timestamp if queued.binding is not None else None
        return -queued.priority, math.inf if created is None else created.timestamp()

    @property
    def fallen_groups(self) -> set[str]:
        """The tenants whose share may have fallen."""
        return self._tenants.fallen

    def queue_group(self, queued: fw.QueuedBinding, /) -> str:
        """Return the tenant of a binding; one group for the priorities that go before all tenants."""
        first = self._tenants.args.global_priority_from
        is_global = first is not None and queued.priority >= first
        return _GLOBAL if is_global else self._tenants.tenant_of(queued.key)

    def queue_group_key(self, group: str, head: fw.QueuedBinding | None = None, /) -> tuple[float, ...]:
        """Return the band of a tenant, whose next binding is ``head``, and its share as it is now."""
        if group == _GLOBAL:
            return (0.0,)
        binding = head.binding if head is not None else None
        is_nominal = binding is not None and self._tenants.is_nominal(group, binding)
        return (1.0 if is_nominal else 2.0), self._tenants.share(group)

    def pre_enqueue(self, context: fw.PreEnqueueContext, /) -> fw.Result:
        """Keep a binding out of the queue with which its tenant would exceed a limit, until the tenant uses less."""
        if self._handle.is_dry_run:  # what tenants use is not known
            return fw.SUCCESS
        self._tenants.warn_if_overbooked()
        text, is_new = self._tenants.gate(context.binding)
        if not text:
            return fw.SUCCESS
        if is_new:
            self._handle.record_event(context.binding, warning=False, reason=WAITS_EVENT, text=text)
        return fw.Result(fw.Code.PENDING, (text,))

    def reserve(self, context: fw.BindContext, /) -> fw.Result:
        """Count a decision; refuse one that exceeds a limit."""
        text = "" if self._handle.is_dry_run else self._tenants.decide(context.binding, context.targets)
        return fw.Result.unschedulable(text) if text else fw.SUCCESS

    def unreserve(self, context: fw.BindContext, /) -> None:
        """Count a decision no more, unless it may be stored."""
        self._tenants.undo(context.binding.key, may_be_stored=context.may_be_stored)
