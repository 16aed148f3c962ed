"""What ``--fail-on`` asks for, and the domains that have it; with a baseline, only what is worse than there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_advisor.state.stored import mapping, mappings
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.model import SurvivalReport
from karmada_scheduler.structs import Struct, field

PAIR_FLAGS: Final = ("dark", "interrupted", "missing")
FLAGS: Final = (*PAIR_FLAGS, "overcommit", "spof", "none")
WORDS: Final = (*FLAGS, *(each.value for each in LossClass))
_COUNTED: Final = frozenset({LossClass.MOVES.value, LossClass.HOLDS.value, LossClass.UNTOUCHED.value})
"""Classes of which a report lists no pairs, so that their numbers are compared."""

DomainKey = tuple[str, str]
"""Kind and name."""

LossKey = tuple[str, str, str]
"""Kind, namespace and name of a binding."""


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


class LossFigures(Struct):
    """What is compared about the loss of one domain.

    Attributes:
        pairs: By word, the bindings that have it; of ``missing`` with the number, of others with 1.
        counts: Bindings by class.
        overcommitted: Clusters of which more is asked than they have free.
    """

    pairs: dict[str, dict[LossKey, int]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    overcommitted: frozenset[str] = frozenset()

    def add(self, binding: LossKey, effect: str, flags: Mapping[str, int]) -> None:
        """Add a binding with its class and its flags."""
        for word, count in ((effect, 1), *flags.items()):
            if count:
                self.pairs.setdefault(word, {})[binding] = count

    def has(self, word: str, before: LossFigures | None) -> bool:
        """Return whether the loss does something, or does more of it than before."""
        if word == "none":
            return False
        if word == "overcommit":
            return bool(self.overcommitted - (before.overcommitted if before is not None else frozenset()))
        if word in _COUNTED:
            return self.counts.get(word, 0) > (before.counts.get(word, 0) if before is not None else 0)
        asked = "dark" if word == "spof" else word
        known = before.pairs.get(asked, {}) if before is not None else {}
        return any(count > known.get(binding, 0) for binding, count in self.pairs.get(asked, {}).items())


Figures = Mapping[DomainKey, LossFigures]


def figures_of(report: SurvivalReport) -> Figures:
    """Return what is compared about a report."""
    found = [
        LossFigures({}, each.chosen.counts, frozenset(one.name for one in each.overcommitted))
        for each in report.domains
    ]
    for binding in report.bindings:
        key = (binding.kind, binding.namespace, binding.name)
        for loss in binding.losses:
            flags = {"dark": loss.dark, "interrupted": loss.interrupted, "missing": loss.missing}
            for number in loss.domains:
                found[number].add(key, loss.effect.value, flags)
    return {(each.kind, each.name): figures for each, figures in zip(report.domains, found, strict=True)}


def figures_in(document: Mapping[str, Any]) -> Figures:
    """Return the same of an earlier report that was read; what it does not have is taken as nothing."""
    domains = list(mappings(document.get("domains")))
    found = [
        LossFigures(
            {},
            {
                str(name): _count(count)
                for name, count in mapping(mapping(each.get("chosen")).get("counts")).items()
            },
            frozenset(str(one.get("name")) for one in mappings(each.get("overcommitted"))),
        )
        for each in domains
    ]
    for binding in mappings(document.get("bindings")):
        key = (str(binding.get("kind")), str(binding.get("namespace")), str(binding.get("name")))
        for loss in mappings(binding.get("losses")):
            flags = {word: _count(loss.get(word)) for word in PAIR_FLAGS}
            numbers = loss.get("domains")
            for number in numbers if isinstance(numbers, list) else ():
                if isinstance(number, int) and 0 <= number < len(found):
                    found[number].add(key, str(loss.get("effect")), flags)
    keys = ((str(each.get("kind")), str(each.get("name"))) for each in domains)
    return dict(zip(keys, found, strict=True))


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def failing(
    report: SurvivalReport, asked: Sequence[FailOn], baseline: Figures | None = None
) -> tuple[tuple[int, ...], Sequence[frozenset[str]]]:
    """Return the indexes of the domains with something of ``--fail-on``, and what each of all domains has of it.

    Args:
        report: The report.
        asked: What is asked for.
        baseline: Of an earlier report; None without one.
    """
    found = [
        frozenset(_words(key, figures, asked, None if baseline is None else baseline.get(key)))
        for key, figures in figures_of(report).items()
    ]
    return tuple(number for number, words in enumerate(found) if words), found


def _words(
    key: DomainKey, figures: LossFigures, asked: Sequence[FailOn], before: LossFigures | None
) -> Iterator[str]:
    for each in asked:
        if each.kind in {"", key[0]} and figures.has(each.word, before):
            yield str(each)
