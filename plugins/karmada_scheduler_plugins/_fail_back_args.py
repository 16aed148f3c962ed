"""The args of FailBack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAY: Final = 86_400


@dataclass(frozen=True)
class FailBackArgs:
    """The args of FailBack; docs/no-harm.md explains them.

    Attributes:
        stabilization_seconds: From 1 to 86,400; the first wait. It is doubled for each return after which the
            binding left the term again.
        check_seconds: From 1 to 3,600, at most ``stabilization_seconds``; the interval of checks.
        max_seconds: From ``stabilization_seconds`` to 604,800; the longest wait.
        forget_seconds: From 1 to 2,592,000; a binding that stayed this long begins with the first wait again.
        at_once: From 1; the returns of the profile that may be under way at the same time.
        overflow: Whether replicas return from overflow tiers as well.
        rebalance_from_first: Whether a WorkloadRebalancer lets a binding begin with its first term, as from
            Karmada 1.19 on.
    """

    stabilization_seconds: int = 300
    check_seconds: int = 30
    max_seconds: int = DAY
    forget_seconds: int = DAY
    at_once: int = 1
    overflow: bool = False
    rebalance_from_first: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        problems = [
            f"{name} must be {least} to {most}, got {value}"
            for name, value, least, most in (
                ("stabilizationSeconds", self.stabilization_seconds, 1, DAY),
                ("checkSeconds", self.check_seconds, 1, 3600),
                ("maxSeconds", self.max_seconds, 1, 7 * DAY),
                ("forgetSeconds", self.forget_seconds, 1, 30 * DAY),
                ("atOnce", self.at_once, 1, 10_000),
            )
            if not least <= value <= most
        ]
        if self.check_seconds > self.stabilization_seconds:
            problems.append("checkSeconds must not be greater than stabilizationSeconds")
        if self.max_seconds < self.stabilization_seconds:
            problems.append("maxSeconds must not be less than stabilizationSeconds")
        if problems:
            raise ValueError("; ".join(problems))
