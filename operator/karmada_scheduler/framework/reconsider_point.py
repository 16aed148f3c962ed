"""The extension point Reconsider: a later decision about a binding that needs none.

A binding that is scheduled stays where it is until an event requires another decision. A Reconsider plugin proposes one,
for example with an affinity term that the binding has left. The scheduler tries the proposal with all plugins and
estimators, and shows the outcome to the plugin, which then lets it be written or not. Nothing is written of a proposal
that fails, that a Guard plugin refuses, or that its plugin declines. PostFilter plugins are not called for proposals: nobody
gives way for a decision that is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import HeldError, SchedulingError
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Result
from karmada_scheduler.structs import Struct

RECONSIDER_SECONDS: Final = 30.0
"""The default of ``reconsider_seconds``."""


class Terms(Enum):
    """The affinity terms that a proposed decision may use."""

    EARLIER = "earlier"
    """Those before the one in force, the first of them first."""
    IN_FORCE = "in force"
    """The one in force only, as an ordinary decision about the binding."""


class Proposal(Struct, frozen=True):
    """A decision that a plugin proposes.

    Attributes:
        reason: For eviction tasks and Events, 1 to 32 letters and digits, a letter first: ``FailedBack``.
        terms: The affinity terms that the decision may use.
    """

    reason: str
    terms: Terms = Terms.EARLIER


class ReconsiderContext(Struct, frozen=True):
    """A proposed decision that was tried.

    Attributes:
        binding: The binding as stored; ``binding.spec.clusters`` are its current clusters.
        proposal: What the plugin proposed.
        targets: The clusters and replicas of the decision; None after an error, except after a refusal at Guard.
        affinity_name: The affinity term of the decision; "" after an error and with a single affinity.
        cycle: The last attempt, with the snapshot; None if there was none.
        error: Why nothing can be written: no cluster fits, a Guard plugin refuses (``held``), or a plugin failed.
    """

    binding: Binding
    proposal: Proposal
    targets: Sequence[TargetCluster] | None
    affinity_name: str
    cycle: Cycle | None
    error: SchedulingError | None = None

    @property
    def held(self) -> bool:
        """Whether the decision succeeds and a Guard plugin does not let it through now."""
        return isinstance(self.error, HeldError)


@runtime_checkable
class ReconsiderPlugin(Plugin, Protocol):
    """Proposes later decisions about bindings that are scheduled.

    A plugin may have ``reconsider_seconds``, the interval of its proposals, at least 1; 30 without it. Between them the
    scheduler asks when a cluster changes that an affinity of the binding matches.
    """

    def propose(self, binding: Binding, /) -> Proposal | None:
        """Return the decision to try, None for none. Must be cheap: it is called for all bindings of the profile.

        It is also called when a binding is taken from the queue, so that the plugin sees a binding that is not
        ``is_settled`` any more. The scheduler tries proposals about settled bindings only. The first plugin that proposes
        one counts. An error counts as None.
        """
        ...

    def reconsider(self, context: ReconsiderContext, /) -> Result:
        """Return SUCCESS to have the decision written, or a refusal. Must be cheap; it may have side effects.

        It is called by the scheduler that leads, and not by ``explain`` and ``simulate``. After an error
        (``context.error``) nothing is written whatever it returns. After a refusal nothing is written either, and the
        condition stays as it is.
        """
        ...


@runtime_checkable
class StartTermPlugin(Plugin, Protocol):
    """An addition to Reconsider: determines the affinity term with which the next decision about a binding begins."""

    def start_term(self, binding: Binding, /) -> str:
        """Return the affinity term to begin with, "" for the one in the status of the binding.

        It is called for each binding that is taken from the queue without a proposal. A binding for which it returns
        another term than the status has is decided with it even if it needs no scheduling, and the status gets the term
        of the decision. Clusters are written before the name of their term: if a scheduler ends in between, this corrects
        the name. A name that is no affinity term of the binding counts as "". Must be cheap.
        """
        ...
