"""Waiting for a condition, with a deadline and an error that shows the last state."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final, TypeVar

import requests

from .api import ApiError

T = TypeVar("T")
PATIENCE: Final = 4
"""A wait lasts as many times its timeout: the timeouts are those of an idle machine, and a busy one is several times
slower. Only what never happens takes longer by it."""
LOOKS: Final = 20
"""After as many looks the next ones come less often, in the end a fifth as often: each costs an API server time that others want."""


class WaitTimeoutError(AssertionError):
    """The condition was not met in time; the message has the last state."""


def wait_for(
    probe: Callable[[], T],
    what: str,
    *,
    timeout: float = 60.0,
    until: Callable[[T], object] = bool,
    check: Callable[[], None] | None = None,
    interval: float = 0.1,
) -> T:
    """Call probe until its answer satisfies `until`, and return that answer.

    A probe may also fail an assertion or a request; that counts as "not yet", and the
    error shows it.

    Args:
        probe: Reads the state.
        what: What is waited for, for the error: "waited 240 s for <what>".
        timeout: Seconds on an idle machine.
        until: Whether the answer is the expected one; by default its truth.
        check: Called before each look; what it raises ends the wait (a dead process, say).
        interval: Seconds between the first looks.

    Raises:
        WaitTimeoutError: With the last answer or failure.
    """
    deadline = time.monotonic() + PATIENCE * timeout
    looks = 0
    while True:
        if check is not None:
            check()
        failure: Exception | None = None
        try:
            answer = probe()
            if until(answer):
                return answer
            last = _shown(answer)
        except (AssertionError, ApiError, requests.RequestException, KeyError) as error:
            failure = error
            last = f"{type(error).__name__}: {error}"
        if time.monotonic() >= deadline:
            raise WaitTimeoutError(
                f"waited {PATIENCE * timeout:g} s for {what}; last seen:\n{last}"
            ) from failure
        time.sleep(interval * min(1 + looks // LOOKS, 5))
        looks += 1


def _shown(answer: object) -> str:
    try:
        text = json.dumps(answer, indent=1, default=str)
    except (TypeError, ValueError):
        text = repr(answer)
    return text if len(text) <= 6000 else text[:6000] + " ..."
