"""A token bucket: how often something may happen, with bursts.

Source: golang.org/x/time/rate, as k8s.io/client-go 0.35.3 util/workqueue default_rate_limiters.go uses it.
"""

from __future__ import annotations


class TokenBucket:
    """A token bucket. Times are in seconds of a clock that never runs backwards."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        """Start with ``burst`` tokens, and get ``rate`` per second from ``now`` on."""
        self._rate, self._burst, self._tokens, self._at = rate, burst, float(burst), now

    def allows(self, now: float) -> bool:
        """Return whether there is a token."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return self._tokens >= 1

    def take(self, now: float) -> bool:
        """Take a token if there is one; return whether there was."""
        if not self.allows(now):
            return False
        self._tokens -= 1
        return True

    def reserve(self, now: float) -> float:
        """Take a token in any case, and return the seconds until it may be used; 0 if there was one."""
        self.allows(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)
