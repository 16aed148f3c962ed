"""The first patch of a binding: ``spec.clusters``, and the placement that it was scheduled by as an annotation.

The API server refuses the patch if the binding changed after the decision, which then has to be taken again.

Source: karmada v1.18.2 pkg/scheduler/scheduler.go (patchScheduleResultForResourceBinding).
Differs: docs/differences-from-upstream.md, "Writes".
"""

from __future__ import annotations

import logging

from karmada_pyscheduler.binding_cycle.served_components import ServedComponents
from karmada_pyscheduler.binding_cycle.writer import BindingWriter, OwnWrites
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import DONE, Action, AttemptOutcome, TransactionResult
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import result_patch

log = logging.getLogger(__name__)


class SpecWriter:
    """Writes results into specs; implements ``transaction.ResultWriter``."""

    def __init__(self, writer: BindingWriter, *, own_writes: OwnWrites, components: ServedComponents) -> None:
        self._writer = writer
        self._own_writes = own_writes
        self._components = components

    def changes(self, binding: Binding, decision: Decision) -> bool:
        """Return whether a decision changes the clusters of a binding or its applied placement."""
        return not result_patch(binding, self._components.of(decision)).is_empty

    def ensure_leading(self) -> None:
        """Raise NotLeadingError if another process may be the leader."""
        self._writer.ensure_leading()

    async def write(self, binding: Binding, decision: Decision) -> TransactionResult:
        """Patch the newest version of a binding, if the decision still applies to it and changes it.

        Raises:
            ApiError: The API server refused the patch, or did not answer.
            NotLeadingError: Another process may be the leader; nothing was sent.
            AbandonedError: A cluster of the decision is gone; nothing was sent.
        """
        binding, decision = self._rebased(binding), self._components.of(decision)
        patch = result_patch(binding, decision)
        if patch.is_empty:
            return TransactionResult(binding)
        self._own_writes.expect(binding.key)
        try:
            stored = await self._writer.patch_result(binding, patch.annotations, patch.clusters, patch.tasks)
        except BaseException:
            self._own_writes.forget(binding.key)
            raise
        if patch.clusters is not None:
            self._components.on_response(decision, stored)
        log.log(logs.V4, "Patch schedule to %s succeed", binding.key.display)
        return TransactionResult(stored, was_written=True)

    async def read_back(self, binding: Binding, decision: Decision) -> Binding | None:
        """Read a binding and return it if it has the clusters and the placement of a decision, None otherwise.

        Raises:
            ApiError: It cannot be read.
        """
        stored = await self._writer.read(binding.key)
        has_clusters = set(stored.spec.clusters) == set(decision.targets or ())
        has_placement = stored.applied_placement_json == decision.applied_placement
        return stored if has_clusters and has_placement else None

    async def after_refusal(self, binding: Binding, error: ApiError) -> AttemptOutcome | None:
        """Return the outcome of an attempt whose patch was refused; None if the status has to report the error."""
        if error.is_conflict:
            return await self._reread(binding)
        if error.is_object_not_found(binding.key.name):
            return DONE
        if error.is_transient or error.is_not_found or "NamespaceTerminating" in error.causes:
            log.warning("Failed to patch schedule to %s: %s", binding.key.display, error)
            return AttemptOutcome(Action.RETRY, error, error.retry_after or 0.0)
        log.error("Failed to patch schedule to %s: %s", binding.key.display, error)
        return None

    async def _reread(self, binding: Binding) -> AttemptOutcome:
        try:
            await self._writer.read_manifest(binding.key)
        except ApiError as error:
            if error.is_object_not_found(binding.key.name):
                return DONE
            return AttemptOutcome(Action.RETRY, error)
        return AttemptOutcome(Action.DECIDE_AGAIN)

    def _rebased(self, binding: Binding) -> Binding:
        """Return the newest known version of a binding if the decision does not depend on what changed.

        Statuses change all the time, and a binding may have waited at Permit for minutes.
        """
        newest = self._writer.bindings.get(binding.key)
        if newest is None or newest is binding:
            return binding
        return newest if _decision_inputs(newest) == _decision_inputs(binding) else binding


def _decision_inputs(binding: Binding) -> tuple[object, ...]:
    """Return the parts of a binding that a decision depends on.

    The generation does not stand for the spec: after a restore of etcd, another spec may have the same generation.
    """
    status = binding.status
    return (
        binding.uid,
        binding.generation,
        binding.spec,
        binding.deleting,
        binding.labels,
        binding.annotations,
        status.scheduler_observing_affinity_name,
        status.last_scheduled_time,
    )
