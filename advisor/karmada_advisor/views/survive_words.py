"""Words about losses that several formats have: classes, and groups of bindings that a loss treats alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.state.stored import duration
from karmada_advisor.whatif.survive import model
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.domains import kind_order
from karmada_scheduler.structs import Struct

FIGURES: Final = ("Dark", "Missing", "Interrupted", "Short", "Stuck", "Swept", "Moves", "Holds")
"""The columns of ``figures``."""

_COUNTED: Final = (LossClass.SHORT, LossClass.STUCK, LossClass.SWEPT, LossClass.MOVES, LossClass.HOLDS)

BindingAndLoss = tuple[model.BindingLosses, model.BindingLoss]
"""A binding with one of its losses."""


class LossGroup(Struct, frozen=True):
    """Bindings of a policy that a loss treats alike.

    Attributes:
        policy: In words.
        effect: The class.
        what: The class in words.
        message: What the scheduler writes; "" without a failure.
        members: The bindings, with the loss.
    """

    policy: str
    effect: LossClass
    what: str
    message: str
    members: Sequence[BindingAndLoss]


def kinds(report: model.SurvivalReport) -> list[str]:
    """Return the kinds of domains, in the order in which they are listed."""
    return sorted({domain.kind for domain in report.domains}, key=kind_order)


def figures(domain: model.DomainLoss) -> list[str]:
    """Return what a loss does in numbers."""
    found = domain.chosen
    counts = (found.counts[effect.value] for effect in _COUNTED)
    return [f"{figure:,}" for figure in (found.dark, found.missing, found.interrupted, *counts)]


def by_domain(report: model.SurvivalReport) -> Mapping[int, Sequence[BindingAndLoss]]:
    """Return the listed bindings of each domain, by its index."""
    found: dict[int, list[BindingAndLoss]] = {}
    for binding in report.bindings:
        for loss in binding.losses:
            for number in loss.domains:
                found.setdefault(number, []).append((binding, loss))
    return found


def groups(found: Sequence[BindingAndLoss], settings: model.LossSettings) -> list[LossGroup]:
    """Return the groups of some bindings, the largest first."""
    members: dict[tuple[str, LossClass, str], list[BindingAndLoss]] = {}
    for binding, loss in found:
        members.setdefault((policy_name(binding), loss.effect, loss.message), []).append((binding, loss))
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[0][0], item[0][1].value))
    return [
        LossGroup(policy, effect, _what(effect, of_group, settings), message, of_group)
        for (policy, effect, message), of_group in ordered
    ]


def _what(effect: LossClass, members: Sequence[BindingAndLoss], settings: model.LossSettings) -> str:
    if any(loss.pending for _, loss in members):
        return "short: placed, but there is no capacity where it is placed"
    if effect is LossClass.MOVES and any(loss.missing for _, loss in members):
        return "moves, and less runs there than is wanted"
    if effect is LossClass.BLOCKED:
        return f"{effect.words}, for {duration(settings.eviction_timeout)} at most"
    return effect.words


def policy_name(binding: model.BindingLosses) -> str:
    """Return the policy of a binding, in words."""
    return str(binding.policy) if binding.policy is not None else "no known policy"


def remedies_of(report: model.SurvivalReport, number: int, group: LossGroup) -> list[model.LossRemedy]:
    """Return what mends a group of bindings in the loss of a domain."""
    policy = group.members[0][0].policy
    found = (each for each in report.remedies if policy is not None and number in each.domains)
    return [each for each in found if each.policy == policy and each.effect is group.effect]


def capacity_of(report: model.SurvivalReport, number: int) -> list[model.LossRemedy]:
    """Return the least capacity to add so that nothing is short in the loss of a domain."""
    found = (each for each in report.remedies if each.policy is None and number in each.domains)
    return [each for each in found if each.effect is LossClass.SHORT]


def fleet_remedies(report: model.SurvivalReport) -> list[model.LossRemedy]:
    """Return what concerns the fleet: settings, and capacity that suffices for several losses."""
    of_fleet = (remedy for remedy in report.remedies if remedy.policy is None)
    return [remedy for remedy in of_fleet if remedy.flags or remedy.effect is LossClass.NOT_EVICTED]


def remedy_words(remedy: model.LossRemedy) -> str:
    """Return a remedy in words: the edits, whether they need the owner's word, and what moves today."""
    parts = [", and ".join(edit.text for edit in remedy.edits)]
    if remedy.effect is LossClass.SHORT and remedy.policy is None:
        parts.append("the least that suffices, verified")
    elif not remedy.verified:
        parts.append("not decided again")
    if remedy.needs_owner:
        parts.append("needs the owner's word")
    if remedy.moves_today:
        parts.append(f"moves {counted(remedy.moves_today, 'replica')} today")
    elif remedy.starts_today:
        parts.append(f"starts {counted(remedy.starts_today, 'replica')} today")
    return "; ".join(parts)
