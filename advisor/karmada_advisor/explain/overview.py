"""All bindings by state and cause: the stored states of all, and the cause of one binding of each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.model import Cause, NextState, Provenance
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.model import WORST_FIRST, BindingEntry, BindingState, StateName
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.structs import Struct

EXPLAINED: Final = 10
"""Groups of which a binding is decided again for its cause: a trace of all clusters for each."""

_NOT_BAD: Final = frozenset({StateName.NO_PLACEMENT, StateName.BEING_DELETED})
"""States in which nothing waits for a person: bindings that follow others, and those that are being deleted."""


_WAITING: Final = frozenset({StateName.OUT_OF_DATE, StateName.NOT_DECIDED_YET})

T = TypeVar("T")


class GroupKey(NamedTuple):
    """What the bindings of a group have in common: state, words, reason, and the stored text that they share."""

    state: StateName
    words: str
    reason: str
    text: str


class BindingName(BindingEntry, frozen=True):
    """A binding in a group, with what is stored."""

    headline: str


class StateGroup(Struct, frozen=True):
    """Bindings in the same state for the same stored reason.

    Attributes:
        state: The state of all of them.
        words: The first words of their headlines.
        reason: The reason that is stored.
        text: What is stored about the first one.
        cause: The primary cause of the first one, None if it was not looked for, or there is none.
        count: How many they are.
        bindings: All of them, in the order of names; of the page the first ones.
    """

    state: StateName
    words: str
    reason: str
    text: str
    cause: Cause | None
    count: int
    bindings: tuple[BindingName, ...]

    @property
    def colour(self) -> str:
        """``yellow`` or ``red``; what is placed in part is yellow."""
        return "yellow" if self.state.is_good else self.state.colour


class ExplanationSummary(Struct, frozen=True):
    """All bindings by state and cause.

    Attributes:
        scope: Which bindings, for people; "" for all.
        total: How many.
        clusters: How many clusters there are.
        counts: Bindings by state, the worst first.
        groups: The bindings that are not in a good state, the worst first.
        other_groups: How many groups there are besides.
    """

    scope: str
    total: int
    clusters: int
    counts: Mapping[str, int]
    groups: tuple[StateGroup, ...]
    other_groups: int
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
    groups: dict[GroupKey, list[tuple[Binding, BindingState]]] = {}
    for each in every:
        if (key := group_key(each[1])) is not None:
            groups.setdefault(key, []).append(each)
    return summary_of_groups(
        groups,
        Counter(state.name for _, state in every),
        lambda each: BindingName(*each[0].key, headline(each[1])),
        lambda each: each[1].text,
        lambda each: causes_of(each[0]),
        scope=scope,
        clusters=clusters,
        provenance=provenance,
    )


def summary_of_groups(
    groups: Mapping[GroupKey, Sequence[T]],
    counts: Mapping[StateName, int],
    name_of: Callable[[T], BindingName],
    text_of: Callable[[T], str],
    causes_of: Callable[[T], list[Cause]],
    *,
    scope: str,
    clusters: int,
    provenance: Provenance,
    most_groups: int | None = None,
    most_names: int | None = None,
) -> ExplanationSummary:
    """Return the summary of bindings that are grouped already.

    Args:
        groups: The bindings that are not in a good state, in the order of names.
        counts: All bindings by state.
        name_of: Returns what is said about a binding of a group.
        text_of: Returns what is stored about it.
        causes_of: As for ``summary_of``.
        scope: Which bindings these are, for people.
        clusters: How many clusters there are.
        provenance: Where all this comes from.
        most_groups: Groups that are made; None for all.
        most_names: Bindings of a group that are named; None for all.
    """
    ordered = sorted(
        groups.items(),
        key=lambda item: (item[0].state in _NOT_BAD, WORST_FIRST[item[0].state], -len(item[1]), item[0][2:]),
    )
    return ExplanationSummary(
        scope,
        sum(counts.values()),
        clusters,
        {each.value: counts[each] for each in StateName if counts.get(each)},
        tuple(
            StateGroup(
                key.state,
                key.words,
                key.reason,
                text_of(members[0]),
                _cause(members[0], key, causes_of) if number < EXPLAINED else None,
                len(members),
                tuple(map(name_of, members[:most_names])),
            )
            for number, (key, members) in enumerate(ordered[:most_groups])
        ),
        len(ordered[most_groups:]) if most_groups is not None else 0,
        provenance,
    )


def group_key(state: BindingState) -> GroupKey | None:
    """Return the key of the group of a binding; None in a good state."""
    if state.is_good:
        return None
    return GroupKey(state.name, state.words, state.reason, state.message or _shared_text(state))


def causes_of_state(situation: Situation) -> list[Cause]:
    """Return the causes of the state of a binding; none if it only waits for a decision that places it."""
    if situation.stored.name in _WAITING and situation.state is NextState.PLACED:
        return []
    return causes_of_binding(situation)


def _shared_text(state: BindingState) -> str:
    """Return the part of a text that other bindings can share: none where it tells of this one's clusters."""
    return state.text if state.name is StateName.NOBODY_DECIDES else ""


def _cause(first: T, key: GroupKey, causes_of: Callable[[T], list[Cause]]) -> Cause | None:
    if key.state in _NOT_BAD:
        return None
    try:
        return next(iter(causes_of(first)), None)
    except SchedulingError:
        return None
