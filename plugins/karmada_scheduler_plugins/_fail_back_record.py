"""The annotation of FailBack: the last change of the affinity term of a binding, and how often it has returned.

It is written in the patch of the change, so that a new leader waits as long as the one before, and knows the term in force
if the status was not written.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, NamedTuple

from karmada_scheduler_plugins._guard_records import seconds_of, text_of

FAIL_BACK: Final = "pyscheduler.karmada.io/fail-back"
OVERFLOW: Final = "overflow"
"""``source`` of a return from an overflow tier."""


class TermChange(NamedTuple):
    """The last change of the term of a binding.

    Attributes:
        number: The number of returns of which none was forgotten.
        at: When the last return was written, in seconds since 1970; that of the change if there was none.
        source: The affinity term before, "" if there was none; ``OVERFLOW`` for a return from an overflow tier.
        target: The affinity term afterwards.
        left: When the binding left the term that it had returned to, in seconds since 1970; None after a return.
    """

    number: int
    at: float
    source: str
    target: str
    left: float | None = None

    @property
    def is_return(self) -> bool:
        """Whether the last change was a return."""
        return self.left is None

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
def change_in(text: str) -> TermChange | None:
    """Return the content of an annotation, None if it cannot be read."""
    try:
        found = json.loads(text)
        left = found.get("left")
        return TermChange(
            max(0, int(found["n"])),
            seconds_of(found["at"]),
            str(found["from"]),
            str(found["to"]),
            None if left is None else seconds_of(left),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
