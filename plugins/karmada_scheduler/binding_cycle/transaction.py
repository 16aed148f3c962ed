"""One decision as a transaction: Reserve, Permit, PreBind, Bind and PostBind, with Unreserve where it fails.

Plugins take part in decisions that found clusters and change the spec of the binding. For other decisions, such as
one that no cluster fits, the transaction only writes the result, if there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import NotLeadingError, TransactionResult
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import bind_context
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.diagnosis import PluginError, SchedulingError
from karmada_scheduler.framework.runtime.binding_points import BindingPoints, WaitFor
from karmada_scheduler.framework.runtime.failure_log import mark_scheduler_error
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError
from karmada_scheduler.structs import Struct, replace

log = logging.getLogger(__name__)

__timeout_shield__ = True


class ResultWriter(Protocol):
    """Writes the result of a decision: ``spec.clusters`` and the applied placement."""

    def ensure_leading(self) -> None:
        """Raise NotLeadingError if another process may be the leader."""

    async def write(self, binding: Binding, decision: Decision) -> TransactionResult:
        """Patch the binding, if the patch changes it. Raises ApiError, NotLeadingError or AbandonedError."""

    async def read_back(self, binding: Binding, decision: Decision) -> Binding | None:
        """Read the binding and return it if it has the result, None otherwise. Raises ApiError."""


class BindingTransaction(Struct, weakref=True):
    """Writes one decision, with the plugins of its profile.

    Attributes:
        binding: The binding as it was scheduled.
        decision: The decision about it.
        changes_result: Whether the decision changes ``spec.clusters`` or the applied placement.
    """

    binding: Binding
    decision: Decision
    plugins: BindingPoints
    writer: ResultWriter
    changes_result: bool
    _context: BindContext | None = None
    _refusal: SchedulingError | None = None
    _may_be_written: bool = False
    _patched: TransactionResult | None = None
    _patch_error: Exception | None = None

    def __post_init__(self) -> None:
        if self.changes_result:
            self._context = bind_context(self.binding, self.decision, self._patch)

    @property
    def runs_plugins(self) -> bool:
        """Whether plugins run for the decision."""
        return self._context is not None

    @property
    def targets(self) -> Sequence[TargetCluster] | None:
        """The clusters that the transaction is going to write; None if it writes none."""
        return self.decision.targets if self.changes_result and self._refusal is None else None

    def reserve(self) -> bool:
        """Run Reserve and return whether every plugin agreed; after a refusal nothing is reserved.

        ``run`` reports the refusal.
        """
        if self._context is not None:
            try:
                self.plugins.reserve(self._context)
            except SchedulingError as refusal:
                self._refusal = refusal
        return self._refusal is None

    async def run(self, wait: WaitFor) -> TransactionResult:
        """Run Permit, PreBind, Bind and PostBind, and return how the transaction ended.

        If it ends before the binding is written, Unreserve runs. Afterwards the binding is bound, and failures of
        plugins are only logged. It raises nothing, except that it can be cancelled.

        Args:
            wait: Waits at Permit; raises AbandonedError if the decision is outdated, or the process stops.
        """
        if self._refusal is not None:
            return TransactionResult(self.binding, error=self._refusal)
        context = self._context
        try:
            if context is None:
                return await self.writer.write(self.binding, self.decision)
            binder = await self._bind(context, wait)
            result = self._patched or await self._result_of_plugin(context, binder)
            await self.plugins.post_bind(context)
        except (SchedulingError, ApiError, AbandonedError, NotLeadingError) as error:
            return TransactionResult(self.binding, error=error)
        else:
            return result
        finally:
            # Both lead back to the transaction, and cyclic garbage is collected rarely (process.memory).
            self._context = self._patch_error = None

    async def _bind(self, context: BindContext, wait: WaitFor) -> str:
        """Run Permit, PreBind and Bind; return the name of the binder, for messages."""
        try:
            await self.plugins.permit(context, wait)
            await self.plugins.pre_bind(context, ensure_leading=self.writer.ensure_leading)
            self._may_be_written = True
            return await self.plugins.bind(context, ensure_leading=self.writer.ensure_leading)
        except BaseException as error:
            if self._patched is not None and isinstance(error, SchedulingError):
                log.error("After writing %s: %s", self.binding.key.display, error)  # noqa: TRY400
                return ""
            self._unreserve(context, may_be_stored=self._may_be_stored(error))
            if self._patch_error is None or not isinstance(error, PluginError):
                raise
        # Raised in the handler, it would have the PluginError as context, whose cause it is: a reference cycle.
        raise self._patch_error

    async def _result_of_plugin(self, context: BindContext, binder: str) -> TransactionResult:
        """Read the binding that a plugin has written without ``context.patch``; PluginError if it lacks the decision."""
        try:
            stored = await self.writer.read_back(self.binding, self.decision)
        except BaseException:
            self._unreserve(context, may_be_stored=True)
            raise
        if stored is not None:
            return TransactionResult(stored, was_written=True)
        self._unreserve(context, may_be_stored=False)
        raise PluginError(f"{binder} returned SUCCESS without writing spec.clusters and the annotation")

    def _may_be_stored(self, error: BaseException) -> bool:
        """Return whether the decision may be stored although the transaction ended with an error."""
        if not self._may_be_written:
            return False
        cause = self._patch_error or error
        if isinstance(cause, ApiError):
            return cause.has_unknown_outcome
        return not isinstance(cause, (NotLeadingError, AbandonedError))

    def _unreserve(self, context: BindContext, *, may_be_stored: bool) -> None:
        self.plugins.unreserve(replace(context, may_be_stored=True) if may_be_stored else context)

    async def _patch(self) -> Binding:
        """Write the result once; Bind plugins call this as ``context.patch``."""
        if self._patched is None:
            try:
                self._patched = await self.writer.write(self.binding, self.decision)
            except Exception as error:
                self._patch_error = error
                mark_scheduler_error(error)
                raise
        return self._patched.stored
