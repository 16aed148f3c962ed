"""Durations as Go reads them: ``1m30s``.

Source: go 1.26 src/time/format.go ParseDuration, which metav1.Duration uses.
"""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART: Final = re.compile(rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(_SECONDS)})")
_DURATION: Final = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")
_LONGEST: Final = 2**63 / 1e9


def duration_seconds(text: str) -> float:
    """Return a duration in seconds; ValueError if it is none, or longer than 292 years."""
    total = sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(text))
    if not _DURATION.fullmatch(text) or total >= _LONGEST:
        raise ValueError(f"expected a duration such as 5s or 1m30s, got {text!r:.60}")
    return -total if text.startswith("-") else total
