"""The refusals in the message of a condition, and which of them no filter of Karmada's own gives."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_IN_TREE: Final = (
    "cluster(s) did not have",
    "cluster(s) did not match",
    "cluster(s) had untolerated taint",
    "cluster(s) is in the process of eviction",
    "cluster(s) did not satisfy",
)
"""How the reasons of Karmada's own filters begin; the taints and properties follow."""

_REFUSALS: Final = re.compile(r"clusters are available: (?P<refusals>.*)", re.DOTALL)
_REFUSAL: Final = re.compile(r",\s+(?=\d+ )")


class Refused(NamedTuple):
    """The clusters that were refused for one reason."""

    number: str
    reason: str

    def __str__(self) -> str:
        """Return the text of the condition: ``2 cluster(s) had no contract``."""
        return f"{self.number} {self.reason}"


def foreign_refusals(message: str) -> list[Refused]:
    """Return the refusals that no filter of Karmada's own gives; none for the message of another error."""
    found = _REFUSALS.search(message)
    parts = _REFUSAL.split(found["refusals"]) if found is not None else ()
    refused = [Refused(*each.strip().rstrip(".").partition(" ")[::2]) for each in parts]
    return [each for each in refused if each.number.isdecimal() and not each.reason.startswith(_IN_TREE)]
