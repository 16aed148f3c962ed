"""The annotation of FailBack: how often a binding has returned, when, and from where.

It is written in the patch of the return, so that a new leader waits as long as the one before.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, NamedTuple

from karmada_scheduler_plugins._guard_records import seconds_of, text_of

FAIL_BACK: Final = "pyscheduler.karmada.io/fail-back"
OVERFLOW: Final = "overflow"
"""``source`` of a return from an overflow tier."""


class Returned(NamedTuple):
    """The last return of a binding.

    Attributes:
        number: The number of returns of which none was forgotten, this one included.
        at: When it was written, in seconds since 1970.
        source: The affinity term that it left, or ``OVERFLOW``.
        target: The affinity term that it returned to.
        left: When it left that term again, in seconds since 1970; None if it has not, or another program did that.
    """

    number: int
    at: float
    source: str
    target: str
    left: float | None = None

    def stayed(self, seconds: float) -> bool:
        """Return whether the binding is known to have stayed for so many seconds before it left again."""
        return self.left is not None and self.left - self.at >= seconds

    def text(self) -> str:
        """Return it as the text of the annotation."""
        fields: dict[str, Any] = {
            "n": self.number,
            "at": text_of(self.at),
            "from": self.source,
            "to": self.target,
        }
        if self.left is not None:
            fields["left"] = text_of(self.left)
        return json.dumps(fields, separators=(",", ":"))


@lru_cache(maxsize=8192)
def returned_in(text: str) -> Returned | None:
    """Return the content of an annotation, None if it cannot be read."""
    try:
        found = json.loads(text)
        left = found.get("left")
        return Returned(
            max(0, int(found["n"])),
            seconds_of(found["at"]),
            str(found["from"]),
            str(found["to"]),
            None if left is None else seconds_of(left),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
