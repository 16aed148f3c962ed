"""The rules that ``tools.simulation`` and ``tools.live`` judge schedulers by, whatever the facts were observed with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

RENEW_DEADLINE: Final = 10.0
"""Seconds after the last renewal until which a leader may write: the default of ``--leader-elect-renew-deadline``."""

MOST_REQUESTS_PER_SECOND: Final = 30
"""Requests of one kind about one object and by one process within a second."""

MOST_REQUESTS_AT_REST: Final = 1.0
"""Requests per second and process, besides those for the Lease and for watches."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not happen.

    Attributes:
        invariant: Its name.
        text: What happened.
        at: In seconds: of virtual time in a simulation, else since 1970.
        where: How to find it in records: the ``auditID``, or key and resourceVersion.
    """

    invariant: str
    text: str
    at: float = 0.0
    where: str = ""


def outlives_its_term(sent: float, renewed: float | None, *, grace: float) -> Iterator[str]:
    """Yield what is wrong if the sender of a write cannot believe that it still leads: ``fenced``.

    Args:
        sent: When the write was sent.
        renewed: When the sender's last successful renewal of the Lease was sent; None if there was none.
        grace: Seconds by which the two times may be wrong.
    """
    if renewed is None:
        yield "and never had the Lease"
    elif sent > renewed + RENEW_DEADLINE + grace:
        yield f"{sent - renewed:.1f} s after its last renewal"
