"""The args of PlacementGuard."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal

from karmada_scheduler.structs import Struct, field

DAY: Final = 86_400


def _check_seconds(name: str, value: int) -> None:
    if not 1 <= value <= DAY:
        raise ValueError(f"{name} must be 1 to {DAY}, got {value}")


class LastHealthyCopy(Struct, frozen=True):
    """The wait before a workload leaves the last cluster that reports it healthy.

    Attributes:
        enabled: Whether there is one.
        max_wait_seconds: From 1 to 86,400; after this time the workload leaves all the same.
    """

    enabled: bool = True
    max_wait_seconds: int = 600

    def __post_init__(self) -> None:
        """Check the range."""
        _check_seconds("maxWaitSeconds", self.max_wait_seconds)


class Graceful(Struct, frozen=True):
    """Moves with graceful eviction tasks.

    Attributes:
        enabled: Whether tasks are written.
        grace_period_seconds: From 1 to 86,400; Karmada ends a task after this time at the latest.
        only_healthy: Whether clusters that do not report the workload healthy are left at once.
        on_scale_down: Whether a cluster that a smaller number of replicas empties is left gracefully.
        partial: Whether a move off a cluster that stays with fewer replicas waits; such a move cannot be graceful.
        max_hold_seconds: From 1 to 86,400; the longest wait with ``partial: hold``.
        cancel_moves: Whether a workload returns to a cluster that it leaves if no other cluster fits.
        exclusive: The purge mode of tasks for workloads whose failover is Directly or Immediately; ``none`` for no task.
    """

    enabled: bool = False
    grace_period_seconds: int = 600
    only_healthy: bool = False
    on_scale_down: Literal["immediate", "graceful"] = "immediate"
    partial: Literal["immediate", "hold"] = "immediate"
    max_hold_seconds: int = 3600
    cancel_moves: bool = True
    exclusive: Literal["none", "Directly"] = "none"

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_seconds("gracePeriodSeconds", self.grace_period_seconds)
        _check_seconds("maxHoldSeconds", self.max_hold_seconds)


class MoveBudget(Struct, frozen=True):
    """How much a scope may move in a window.

    Attributes:
        scope: The bindings that share the budget: all of the profile, of a namespace, or of a policy.
        window: 10 seconds to 24 hours.
        bindings: The number of moves; None for no limit.
        replicas: The number of replicas; None for no limit.
        percent: The replicas in percent of all replicas of the scope, at least 1 replica; None for no limit.
        at_once: The number of bindings that leave clusters gracefully at the same time; None for no limit.
    """

    scope: Literal["profile", "namespace", "policy"]
    window: timedelta = timedelta(minutes=10)
    bindings: int | None = None
    replicas: int | None = None
    percent: int | None = None
    at_once: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not timedelta(seconds=10) <= self.window <= timedelta(days=1):
            raise ValueError("window must be 10s to 24h")
        limits = {
            "bindings": self.bindings,
            "replicas": self.replicas,
            "percent": self.percent,
            "atOnce": self.at_once,
        }
        if all(limit is None for limit in limits.values()):
            raise ValueError(f"at least one limit is needed: {', '.join(limits)}")
        for name, limit in limits.items():
            if limit is not None and limit < 1:
                raise ValueError(f"{name} must be at least 1, got {limit}")
        if self.percent is not None and self.percent > 100:
            raise ValueError(f"percent must be 1 to 100, got {self.percent}")


class GuardArgs(Struct, frozen=True):
    """The args of PlacementGuard; docs/no-harm.md explains them.

    Attributes:
        nothing_fits: What a decision that no cluster fits does: clear the placement, keep it, or keep it unless the
            placement rules were edited.
        last_healthy_copy: The wait for another healthy copy.
        graceful: Moves with graceful eviction tasks.
        budgets: At most one for each scope.
        exempt_priority_above: Bindings with a higher ``schedulePriority`` are not held; None for no exemption.
    """

    nothing_fits: Literal["clear", "keep", "keepUnlessPlacementChanged"] = "keep"
    last_healthy_copy: LastHealthyCopy = field(default_factory=LastHealthyCopy)
    graceful: Graceful = field(default_factory=Graceful)
    budgets: tuple[MoveBudget, ...] = ()
    exempt_priority_above: int | None = None

    def __post_init__(self) -> None:
        """Check that the scopes are distinct."""
        scopes = [budget.scope for budget in self.budgets]
        for scope in scopes:
            if scopes.count(scope) > 1:
                raise ValueError(f"budgets: the scope {scope} occurs more than once")
