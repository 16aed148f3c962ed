"""What ``--fail-on`` asks for, and the domains that have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from karmada_advisor.survive.classify import LossClass
from karmada_advisor.survive.model import DomainLoss

FLAGS: Final = ("dark", "interrupted", "missing", "overcommit", "spof", "none")
WORDS: Final = (*FLAGS, *(each.value for each in LossClass))


class FailOn(NamedTuple):
    """One part of ``--fail-on``.

    Attributes:
        word: Of ``WORDS``.
        kind: The kind of domains that it is about; "" for all.
    """

    word: str
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.word}@{self.kind}" if self.kind else self.word

    def has(self, domain: DomainLoss) -> bool:
        """Return whether the loss of a domain does that."""
        if self.kind not in {"", domain.kind}:
            return False
        found = domain.chosen
        match self.word:
            case "none":
                return False
            case "dark" | "spof":
                return found.dark > 0
            case "interrupted":
                return found.interrupted > 0
            case "missing":
                return found.missing > 0
            case "overcommit":
                return bool(domain.overcommitted)
        return found.counts[self.word] > 0


def failing(domains: Sequence[DomainLoss], asked: Sequence[FailOn]) -> tuple[int, ...]:
    """Return the indexes of the domains with something of ``--fail-on``."""
    return tuple(number for number, domain in enumerate(domains) if any(each.has(domain) for each in asked))
