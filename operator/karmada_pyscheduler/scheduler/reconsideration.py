"""Which bindings Reconsider plugins may want decided again, and when they are enqueued for that.

Proposals have the lowest priority: one is enqueued when the queue is empty, or after some seconds.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.metrics.plugins import PluginMetrics
from karmada_pyscheduler.scheduler.attempt import DecisionRequest
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.classify import RECONCILE_SCHEDULE, Classification, ScheduleType
from karmada_scheduler.core.decision import Decision, Reconsidered, ReconsiderResult
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.guarding import Proposed
from karmada_scheduler.structs import Struct, field, replace

log = logging.getLogger(__name__)

CHANGE_SECONDS: Final = 1.0
"""The pause after a change of a cluster; changes within it cause one round."""
_QUEUE_SECONDS: Final = 1.0
"""How long a proposal lets other bindings go first, at most."""
_CHUNK: Final = 200
"""Bindings that are looked at before the loop yields."""


class ProposalRefusal(NamedTuple):
    """Why a proposal is not written.

    Attributes:
        plugin: The plugin that proposed it.
        reason: The reason.
        due: When the plugin accepts it at the earliest, in seconds of the clock; None if that is not known. Until then it
            may have no proposal.
    """

    plugin: str
    reason: str
    due: float | None


class Reconsiderations(Struct, kw_only=True):
    """Enqueues the bindings about which Reconsider plugins have proposals, at intervals and when clusters change."""

    bindings: BindingCache
    queue: SchedulingQueue[BindingKey]
    profiles: Profiles
    metrics: PluginMetrics
    clock: Callable[[], float]
    _due: set[BindingKey] = field(default_factory=set)
    _waiting: set[BindingKey] = field(default_factory=set)
    _refusals: dict[BindingKey, ProposalRefusal] = field(default_factory=dict)
    _last: dict[str, float] = field(default_factory=dict)
    _candidates: dict[BindingKey, None] = field(default_factory=dict)
    _changed_clusters: dict[str, tuple[Cluster | None, Cluster | None]] = field(default_factory=dict)
    _cluster_changed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_running: bool = False

    @property
    def waiting(self) -> int:
        """The number of bindings whose proposal succeeds and is not written yet; may be called from any thread."""
        return len(self._waiting)

    def refusal(self, key: BindingKey) -> tuple[str, str, float | None] | None:
        """Return plugin, reason and remaining seconds of the last proposal about a binding, None if none was refused.

        May be called from any thread.
        """
        found = self._refusals.get(key)
        if found is None:
            return None
        return found.plugin, found.reason, None if found.due is None else max(0.0, found.due - self.clock())

    def on_cluster(self, old: Cluster | None, new: Cluster | None) -> None:
        """Note a cluster that changed, was added or deleted, so that its bindings are looked at soon."""
        present = new or old
        if present is None or not self._is_running or not self._is_used():
            return
        if old is not None and new is not None and not _differs(old, new):
            return
        before, _ = self._changed_clusters.get(present.name, (old, None))
        self._changed_clusters[present.name] = before, new
        self._cluster_changed.set()

    def proposal(self, request: DecisionRequest, is_gone: Callable[[str], bool]) -> DecisionRequest | None:
        """Return the request for the proposal about a binding that was taken from the queue.

        None if it was not enqueued for a proposal, has none any more, or has to be decided anyway. Plugins are asked in
        any case, so that they see bindings that are not settled any more.
        """
        if not request.framework.reconsider.is_used:
            return None
        binding = request.binding
        proposed = self._proposal_about(binding, request.framework)
        is_due = binding.key in self._due
        self._due.discard(binding.key)
        if proposed is None:
            return None
        classification = request.classification
        needs_none = classification.type is ScheduleType.AVOID or classification.is_routine
        is_leaving = any(is_gone(target.name) for target in binding.spec.clusters)
        if not is_due or not needs_none or is_leaving or not binding.is_settled:
            return None
        reason = f"Try to schedule {binding.key.display} as {proposed.plugin.name} proposes"
        return replace(
            request,
            event=requeue_rules.PROPOSED,
            proposed=proposed,
            classification=Classification(ScheduleType.RECONCILE, reason, RECONCILE_SCHEDULE),
        )

    def with_start_term(self, request: DecisionRequest) -> DecisionRequest:
        """Return a request that begins with another affinity term than the status has, if a plugin wants that."""
        if not request.framework.reconsider.is_used:
            return request
        binding, classification = request.binding, request.classification
        try:
            name = request.framework.reconsider.start_term(binding)
        except PluginError as error:
            log.error("%s is decided with the affinity term of its status: %s", binding.key.display, error)  # noqa: TRY400
            return request
        if not name:
            return request
        if classification.type is ScheduleType.AVOID:
            reason = f"Start to schedule {binding.key.display} with its affinity term {name}"
            classification = Classification(ScheduleType.RECONCILE, reason, RECONCILE_SCHEDULE)
        return replace(request, start_term=name, classification=classification)

    def tried(self, binding: Binding, decision: Decision) -> bool:
        """Count what became of a proposal, and return whether it is to be written."""
        found = decision.reconsidered
        assert found is not None  # the decision tried a proposal
        self.metrics.failbacks.labels(found.plugin, found.result.value).inc()
        if found.result in (ReconsiderResult.DECLINED, ReconsiderResult.HELD):
            self._waiting.add(binding.key)
        else:
            self._waiting.discard(binding.key)
        if found.result is ReconsiderResult.ACCEPTED:
            self._refusals.pop(binding.key, None)
        else:
            due = self.clock() + found.retry_after if found.retry_after else None
            self._refusals[binding.key] = ProposalRefusal(found.plugin, found.reason, due)
        self._log(binding, found)
        return found.result is ReconsiderResult.ACCEPTED

    def postponed(self, key: BindingKey) -> None:
        """Try a proposal that was accepted again when its binding is taken from the queue the next time."""
        self._due.add(key)

    def failed(self, binding: Binding, decision: Decision, error: Exception) -> None:
        """Count and log a proposal that was accepted and could not be written."""
        found = decision.reconsidered
        assert found is not None  # the decision tried a proposal
        self.metrics.failbacks.labels(found.plugin, ReconsiderResult.FAILED.value).inc()
        log.warning(
            "%s stays where it is, the proposal of %s could not be written: %s",
            binding.key.display,
            found.plugin,
            error,
            extra={"binding": str(binding.key), "plugin": found.plugin},
        )

    def start(self) -> None:
        """Note changes of clusters from now on; before, nobody takes them."""
        self._is_running = True

    async def run(self) -> None:
        """Enqueue bindings until cancelled."""
        self.start()
        while True:
            await self._wait()
            try:
                await self.look()
            except Exception:
                log.exception("Cannot look for bindings to be decided again")

    async def look(self) -> None:
        """Enqueue the bindings with proposals whose interval is over, or of whose clusters one has changed."""
        now = self.clock()
        changed = [each for both in self._changed_clusters.values() for each in both if each is not None]
        self._changed_clusters = {}
        due = set()
        for name, framework in self.profiles.items():
            seconds = framework.reconsider.seconds
            if framework.reconsider.is_used and now - self._last.get(name, -math.inf) >= seconds:
                due.add(name)
                self._last[name] = now
        if due:
            keys = [binding.key for binding in self.bindings if binding.spec.responsible_scheduler in due]
            await self._enqueue(keys, lambda _: True)
            for known in (self._waiting, self._due):
                known.difference_update([key for key in known if self.bindings.get(key) is None])
            for key in [key for key in self._candidates if self.bindings.get(key) is None]:
                del self._candidates[key]
            for key in [key for key in self._refusals if self.bindings.get(key) is None]:
                del self._refusals[key]
        if changed:
            keys = [key for key in self._candidates if key not in self._due]
            await self._enqueue(keys, lambda each: _may_concern(each, changed))

    async def _enqueue(self, keys: Sequence[BindingKey], is_concerned: Callable[[Binding], bool]) -> None:
        """Enqueue the bindings among these that have a proposal, one by one."""
        for count, key in enumerate(keys, start=1):
            if count % _CHUNK == 0:
                await asyncio.sleep(0)
            binding = self.bindings.get(key)
            framework = None if binding is None else self.profiles.of(binding)
            if binding is None or framework is None or not self._may_have_proposal(binding, framework):
                self._candidates.pop(key, None)
                self._waiting.discard(key)
                continue
            if self._proposal_about(binding, framework) is None or not binding.is_settled:
                continue
            if is_concerned(binding):
                await self.queue.wait_idle(timeout=_QUEUE_SECONDS)
                newest = self.bindings.get(key) or binding
                self._due.add(key)
                self.queue.add(key, newest.spec.priority)
                await asyncio.sleep(0)

    def _may_have_proposal(self, binding: Binding, framework: Framework) -> bool:
        return (
            binding.spec.placement is not None
            and framework.reconsider.may_propose(binding)
            and requeue_rules.is_claimed_and_assigned(binding, self.profiles.names)
        )

    async def _wait(self) -> None:
        """Wait for the next interval or change."""
        seconds = min(profile.reconsider.seconds for _, profile in self.profiles.items())
        try:
            async with asyncio.timeout(seconds):
                await self._cluster_changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(CHANGE_SECONDS)
        self._cluster_changed.clear()

    def _is_used(self) -> bool:
        return any(profile.reconsider.is_used for _, profile in self.profiles.items())

    def _proposal_about(self, binding: Binding, framework: Framework) -> Proposed | None:
        try:
            proposed = framework.reconsider.propose(binding)
        except PluginError as error:
            log.error("No proposal about %s: %s", binding.key.display, error)  # noqa: TRY400
            proposed = None
        if proposed is None:
            self._candidates.pop(binding.key, None)
            self._waiting.discard(binding.key)
            found = self._refusals.get(binding.key)
            if found is not None and (found.due is None or found.due <= self.clock()):
                del self._refusals[binding.key]
        else:
            self._candidates[binding.key] = None
        return proposed

    def _log(self, binding: Binding, found: Reconsidered) -> None:
        if found.result is ReconsiderResult.ACCEPTED:
            log.info(
                "%s is decided again, as %s proposes: %s",
                binding.key.display,
                found.plugin,
                found.proposal.reason,
                extra={"binding": str(binding.key), "plugin": found.plugin},
            )
            return
        level = logging.ERROR if found.result is ReconsiderResult.FAILED else logging.DEBUG
        log.log(
            level, "%s: %s of %s: %s", binding.key.display, found.result.value, found.plugin, found.reason
        )


def _differs(old: Cluster, new: Cluster) -> bool:
    """Return whether a change of a cluster may change which bindings it takes; its free resources do not count."""
    if requeue_rules.on_cluster(old, new) or requeue_rules.gained_apis(old, new):
        return True
    before, after = old.condition("Ready"), new.condition("Ready")
    return (before and before.status) != (after and after.status)


def _may_concern(binding: Binding, changed: list[Cluster]) -> bool:
    placement = binding.spec.placement
    return placement is not None and any(requeue_rules.may_take(change, placement) for change in changed)
