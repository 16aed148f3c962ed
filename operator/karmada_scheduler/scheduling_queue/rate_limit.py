"""Rate limits: a token bucket, and the limits of retries.

Source: golang.org/x/time/rate, as k8s.io/client-go 0.35.3 util/workqueue default_rate_limiters.go uses it.
"""

from __future__ import annotations

from collections.abc import Callable

Clock = Callable[[], float]
"""Returns seconds; never runs backwards."""


class TokenBucket:
    """A token bucket with reservations: a caller gets a token at once, and the time from which it may use it."""

    def __init__(self, *, rate: float, burst: int, clock: Clock) -> None:
        """Start full; ``rate`` is in tokens per second, ``burst`` in tokens."""
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._last = clock()

    def reserve(self) -> float:
        """Take one token and return the seconds until it may be used; 0 if the bucket was not empty."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)
