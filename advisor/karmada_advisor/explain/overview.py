"""All bindings by state and cause: the stored states of all, and the cause of each one that is in no good state."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.model import Cause, NextState, Provenance, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.model import WORST_FIRST, BindingEntry, BindingState, ReplicaCounts, StateName
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.structs import Struct

_WAITING: Final = frozenset({StateName.OUT_OF_DATE, StateName.NOT_DECIDED_YET})


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
    """Bindings in the same state for the same cause; for the same stored reason where the cause is not known.

    Attributes:
        state: The state of all of them.
        words: The first words of their headlines.
        reason: The reason that is stored.
        text: What is stored about the first one.
        cause: Their primary cause, None if there was no time to look for it, or there is none.
        count: How many they are.
        bindings: All of them, in the order of names; of the page the first ones.
        example: Whether others have other amounts, or another time, in the text of the cause.
    """

    state: StateName
    words: str
    reason: str
    text: str
    cause: Cause | None
    count: int
    bindings: tuple[BindingName, ...]
    example: bool = False

    @property
    def has_templates(self) -> bool:
        """Whether these are templates without a binding."""
        return self.state is StateName.NOT_CLAIMED

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
        groups: The bindings that are not in a good state, the worst first, and templates without a binding.
        other_groups: How many groups there are besides.
        undecided: Bindings whose cause was not looked for, because there was no time.
        templates: Templates of workloads without a binding, which run nowhere; ``total`` and ``counts`` are without them.
        knows_templates: Whether these are all: templates were read.
        replicas: Of all these bindings; None if they were not counted.
    """

    scope: str
    total: int
    clusters: int
    counts: Mapping[str, int]
    groups: tuple[StateGroup, ...]
    other_groups: int
    provenance: Provenance
    undecided: int = 0
    templates: int = 0
    knows_templates: bool = False
    replicas: ReplicaCounts | None = None

    @property
    def is_good(self) -> bool:
        """Whether the exit status is 0, as that of an answer about each binding alone."""
        return not self.groups

    @property
    def not_good(self) -> list[BindingName]:
        """The bindings that are not in a good state, the worst first."""
        return [name for group in self.groups for name in group.bindings]


Groups = Mapping[GroupKey, Sequence[BindingKey]]
Causes = Mapping[BindingKey, Cause | None]
"""The primary cause of each binding that was looked at, decided for its own; None if it has none."""


def find_causes(
    groups: Groups,
    cause_of: Callable[[BindingKey], Cause | None],
    *,
    seconds: float,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Causes:
    """Return the cause of each binding, as far as there is time: one of each group first.

    Args:
        groups: The bindings that are not in a good state.
        cause_of: Decides again and returns its primary cause; None without one.
        seconds: CPU time after which no further binding is looked at.
        progress: Called with the number of bindings that are done, and their total.
    """
    wanted = [members for _, members in sorted(groups.items(), key=_worst_first)]
    ordered = [*(members[0] for members in wanted), *(member for members in wanted for member in members[1:])]
    found: dict[BindingKey, Cause | None] = {}
    began = time.thread_time()
    for key in ordered:
        found[key] = cause_of(key)
        progress(len(found), len(ordered))
        if time.thread_time() - began >= seconds:
            break
    return found


def summary_of(
    groups: Groups,
    counts: Mapping[StateName, int],
    causes: Causes,
    *,
    state_of: Callable[[BindingKey], BindingState],
    headline: Callable[[BindingState], str],
    scope: str,
    clusters: int,
    provenance: Provenance,
    most_groups: int | None = None,
    most_names: int | None = None,
    templates: int | None = None,
    replicas: ReplicaCounts | None = None,
) -> ExplanationSummary:
    """Return the summary of bindings that are grouped by what is stored: the groups by what causes it.

    Args:
        groups: The bindings that are not in a good state.
        counts: All bindings by state.
        causes: As far as they are known; a binding without one stays in the group of what is stored.
        state_of: Returns the state of a binding of a group.
        headline: Returns a state in words.
        scope: Which bindings these are, for people.
        clusters: How many clusters there are.
        provenance: Where all this comes from.
        most_groups: Groups that are made; None for all.
        most_names: Bindings of a group that are named; None for all.
        templates: How many of the members are templates without a binding; None if not all templates were read.
        replicas: Of all bindings.
    """
    by_cause: dict[GroupKey, list[BindingKey]] = {}
    undecided = 0
    for key, members in groups.items():
        for member in members:
            undecided += member not in causes
            by_cause.setdefault(_with_cause(key, causes.get(member)), []).append(member)
    ordered = sorted(by_cause.items(), key=_worst_first)

    def group_of(key: GroupKey, members: list[BindingKey]) -> StateGroup:
        members.sort()
        cause = causes.get(members[0])
        texts = {found.text for each in members if (found := causes.get(each)) is not None}
        names = tuple(BindingName(*each, headline(state_of(each))) for each in members[:most_names])
        text, count, is_example = state_of(members[0]).text, len(members), len(texts) > 1
        return StateGroup(*key[:3], text, cause, count, names, is_example)

    named = {name.value: counts[name] for name in StateName if counts.get(name)}
    total = sum(counts.values())
    shown, others = ordered[:most_groups], 0 if most_groups is None else len(ordered[most_groups:])
    found = tuple(group_of(*item) for item in shown)
    alone = templates or 0, templates is not None, replicas
    return ExplanationSummary(scope, total, clusters, named, found, others, provenance, undecided, *alone)


def _worst_first(group: tuple[GroupKey, Sequence[BindingKey]]) -> tuple[object, ...]:
    key, members = group
    return WORST_FIRST[key.state], -len(members), key[2:]


_AMOUNT: Final = re.compile(r"(?<![\w.-])\d[\d,.]*(?:m|[KMGTPE]i?)?(?![\w-])")
"""A number of replicas, clusters or resources in the text of a cause, not a part of a name."""
_OF_STEPS: Final = frozenset({Stage.POLICY, Stage.FILTER, Stage.SELECT, Stage.DIVIDE, Stage.CAPACITY})


def _with_cause(key: GroupKey, cause: Cause | None) -> GroupKey:
    """Return the group of a cause: those of steps by their texts but for amounts, others by what is stored."""
    if cause is None:
        return key
    text = _AMOUNT.sub("N", cause.text) if cause.stage in _OF_STEPS else key.text
    return key._replace(text=f"{cause.code} {text}")


def grouped(states: Mapping[BindingKey, BindingState]) -> Groups:
    """Return the bindings that are not in a good state by what is stored."""
    found: dict[GroupKey, list[BindingKey]] = {}
    for member, state in states.items():
        if (key := group_key(state)) is not None:
            found.setdefault(key, []).append(member)
    return found


def group_key(state: BindingState) -> GroupKey | None:
    """Return the key of the group of a binding; None in a good state."""
    if state.is_good:
        return None
    return GroupKey(state.name, state.words, state.reason, state.message or _shared_text(state))


def causes_of_state(situation: Situation) -> list[Cause]:
    """Return the causes of the state of a binding; none if it only waits for a decision that places it."""
    is_placed = situation.state is NextState.PLACED and situation.over_quota is None
    if situation.stored.name in _WAITING and is_placed:
        return []
    return causes_of_binding(situation)


def _shared_text(state: BindingState) -> str:
    """Return the part of a text that other bindings can share: none where it tells of this one's clusters."""
    return state.text if state.name is StateName.NOBODY_DECIDES else ""
