"""What ``--fail-on`` asks for, and the domains that have it; with a baseline, only what is worse than there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_advisor.state.stored import mappings, part
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.model import SurvivalReport
from karmada_scheduler.structs import to_builtins

PAIR_FLAGS: Final = ("dark", "interrupted", "missing")
FLAGS: Final = (*PAIR_FLAGS, "overcommit", "spof", "none")
WORDS: Final = (*FLAGS, *(loss.value for loss in LossClass))
_COUNTED: Final = frozenset({LossClass.MOVES.value, LossClass.HOLDS.value, LossClass.UNTOUCHED.value})
"""Classes of which a report may list no pairs, so that their numbers are compared."""

DomainKey = tuple[str, str]
"""Kind and name."""

LossFigures = Mapping[str, Mapping[object, int]]
"""By word, what has it: bindings with their numbers of what is missing, else 1; clusters;
or "" with the number of bindings, of the classes whose pairs a report may leave out."""

Figures = Mapping[DomainKey, LossFigures]


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


def figures_in(document: Mapping[str, Any]) -> Figures:
    """Return what is compared about a report, also an earlier one that was read; what it does not have is taken as nothing."""
    domains = list(mappings(document.get("domains")))
    found = [_of_domain(domain) for domain in domains]
    for binding in mappings(document.get("bindings")):
        key = tuple(str(binding.get(name)) for name in ("kind", "namespace", "name"))
        for loss in mappings(binding.get("losses")):
            effect, flags = str(loss.get("effect")), {word: _count(loss.get(word)) for word in PAIR_FLAGS}
            counts = flags if effect in _COUNTED else {effect: 1, **flags}
            numbers = loss.get("domains")
            for number in numbers if isinstance(numbers, list | tuple) else ():
                if isinstance(number, int) and 0 <= number < len(found):
                    for word, count in counts.items():
                        found[number].setdefault(word, {})[key] = count
    return {
        (str(each.get("kind")), str(each.get("name"))): of for each, of in zip(domains, found, strict=True)
    }


def _of_domain(domain: Mapping[str, Any]) -> dict[str, dict[object, int]]:
    counts, asked = part(domain, "chosen", "counts"), mappings(domain.get("overcommitted"))
    return {
        "overcommit": {entry.get("name"): 1 for entry in asked},
        **{word: {"": _count(counts.get(word))} for word in _COUNTED},
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def failing(
    report: SurvivalReport, asked: Sequence[FailOn], baseline: Figures | None = None
) -> tuple[int, ...]:
    """Return the indexes of the domains with something of ``--fail-on``.

    Args:
        report: The report.
        asked: What is asked for.
        baseline: Of an earlier report; None without one.
    """
    found = enumerate(figures_in(to_builtins(report)).items())
    before = baseline or {}
    return tuple(
        number
        for number, (key, figures) in found
        if any(each.kind in {"", key[0]} and _has(each.word, figures, before.get(key, {})) for each in asked)
    )


def _has(word: str, figures: LossFigures, before: LossFigures) -> bool:
    """Return whether a loss does something, or does more of it than before."""
    name = "dark" if word == "spof" else word
    known = before.get(name, {})
    return any(count > known.get(key, 0) for key, count in figures.get(name, {}).items())
