"""All bindings by state and cause: the stored states of all, and the cause of one binding of each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.model import Cause, NextState, Provenance
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.model import WORST_FIRST, BindingEntry, BindingState, StateName
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.diagnosis import SchedulingError

EXPLAINED: Final = 10
"""Groups of which a binding is decided again for its cause: a trace of all clusters for each."""

_NOT_BAD: Final = frozenset({StateName.NO_PLACEMENT, StateName.BEING_DELETED})
"""States in which nothing waits for a person: bindings that follow others, and those that are being deleted."""


_WAITING: Final = frozenset({StateName.OUT_OF_DATE, StateName.NOT_DECIDED_YET})


@dataclass(frozen=True, slots=True)
class BindingName(BindingEntry):
    """A binding in a group, with what is stored."""

    headline: str


@dataclass(frozen=True, slots=True)
class StateGroup:
    """Bindings in the same state for the same stored reason.

    Attributes:
        state: The state of all of them.
        words: The first words of their headlines.
        reason: The reason that is stored.
        text: What is stored about the first one.
        cause: The primary cause of the first one, None if it was not looked for, or there is none.
        bindings: All of them, in the order of names.
    """

    state: StateName
    words: str
    reason: str
    text: str
    cause: Cause | None
    bindings: tuple[BindingName, ...]

    @property
    def colour(self) -> str:
        """``yellow`` or ``red``; what is placed in part is yellow."""
        return "yellow" if self.state.is_good else self.state.colour


@dataclass(frozen=True, slots=True)
class ExplanationSummary:
    """All bindings by state and cause.

    Attributes:
        scope: Which bindings, for people; "" for all.
        total: How many.
        clusters: How many clusters there are.
        counts: Bindings by state, the worst first.
        groups: The bindings that are not in a good state, the worst first.
    """

    scope: str
    total: int
    clusters: int
    counts: Mapping[str, int]
    groups: tuple[StateGroup, ...]
    provenance: Provenance

    @property
    def is_good(self) -> bool:
        """Whether the exit status is 0: nothing waits for anybody."""
        return not self.waiting

    @property
    def waiting(self) -> list[BindingName]:
        """The bindings that wait for a person, the worst first."""
        return [name for each in self.groups if each.state not in _NOT_BAD for name in each.bindings]


def summary_of(
    bindings: Iterable[tuple[Binding, BindingState]],
    causes_of: Callable[[Binding], list[Cause]],
    headline: Callable[[BindingState], str],
    *,
    scope: str,
    clusters: int,
    provenance: Provenance,
) -> ExplanationSummary:
    """Return the summary of bindings.

    Args:
        bindings: With their states.
        causes_of: Decides again and returns the causes of a binding; called for one of each of the first groups.
        headline: Returns a state in words.
        scope: Which bindings these are, for people.
        clusters: How many clusters there are.
        provenance: Where all this comes from.
    """
    every = sorted(bindings, key=lambda each: each[0].key)
    counts = Counter(state.name for _, state in every)
    groups: dict[tuple[StateName, str, str, str], list[tuple[Binding, BindingState]]] = {}
    for binding, state in every:
        if not state.is_good:
            key = (state.name, state.words, state.reason, state.message or _shared_text(state))
            groups.setdefault(key, []).append((binding, state))
    ordered = sorted(
        groups.items(),
        key=lambda item: (item[0][0] in _NOT_BAD, WORST_FIRST[item[0][0]], -len(item[1]), item[0][2:]),
    )
    return ExplanationSummary(
        scope,
        len(every),
        clusters,
        {each.value: counts[each] for each in sorted(counts, key=lambda name: WORST_FIRST[name])},
        tuple(
            _group(members, causes_of if number < EXPLAINED else None, headline)
            for number, (_, members) in enumerate(ordered)
        ),
        provenance,
    )


def causes_of_state(situation: Situation) -> list[Cause]:
    """Return the causes of the state of a binding; none if it only waits for a decision that places it."""
    if situation.stored.name in _WAITING and situation.state is NextState.PLACED:
        return []
    return causes_of_binding(situation)


def _shared_text(state: BindingState) -> str:
    """Return the part of a text that other bindings can share: none where it tells of this one's clusters."""
    return state.text if state.name is StateName.NOBODY_DECIDES else ""


def _group(
    members: list[tuple[Binding, BindingState]],
    causes_of: Callable[[Binding], list[Cause]] | None,
    headline: Callable[[BindingState], str],
) -> StateGroup:
    first, state = members[0]
    cause = None
    if causes_of is not None and state.name not in _NOT_BAD:
        try:
            cause = next(iter(causes_of(first)), None)
        except SchedulingError:
            cause = None
    return StateGroup(
        state.name,
        state.words,
        state.reason,
        state.text,
        cause,
        tuple(_name(each.key, headline(found)) for each, found in members),
    )


def _name(key: BindingKey, headline: str) -> BindingName:
    return BindingName(key.kind, key.namespace, key.name, headline)
