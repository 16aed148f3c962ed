"""Token buckets: how often something may happen, with bursts.

Source: golang.org/x/time/rate, as k8s.io/client-go 0.35.3 util/workqueue default_rate_limiters.go uses it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MAX_NAMES: Final = 10_000
"""Names whose rate is known; of more, those that were used least recently start with a whole burst."""
_MAX_LENGTH: Final = 253
"""Characters of a name that count; it may be what somebody sends."""


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


class RatesByName:
    """A token bucket for each name, such as that of a user, all with the same rate."""

    def __init__(self, rate: float, burst: float) -> None:
        """Allow each of them ``burst`` at once, and ``rate`` per second."""
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def allows(self, name: str, now: float) -> bool:
        """Return whether there is a token for a name."""
        known = self._buckets.get(name[:_MAX_LENGTH])
        return known is None or known.allows(now)

    def take(self, name: str, now: float) -> bool:
        """Take a token of a name if there is one; return whether there was."""
        key = name[:_MAX_LENGTH]
        known = self._buckets.pop(key, None) or TokenBucket(self._rate, self._burst, now)
        self._buckets[key] = known
        if len(self._buckets) > _MAX_NAMES:
            self._buckets.popitem(last=False)
        return known.take(now)
