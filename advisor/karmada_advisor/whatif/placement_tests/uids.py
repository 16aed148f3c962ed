"""Uids of templates that have none: a template in Git has no uid, and ties between clusters go by its parity."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from karmada_advisor.state.stored import part, text_of
from karmada_advisor.whatif.plan.objects import PlanObjects, UnversionedTemplateKey, resource_key
from karmada_advisor.whatif.plan.what_if import WrittenChange
from karmada_scheduler.core.algorithms.webster import prefers_descending_names
from karmada_scheduler.core.assign_replicas import assign_replicas
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.structs import replace

OddTemplates = frozenset[UnversionedTemplateKey]
"""The templates without a uid that get an odd one; the others get an even one."""

NONE_ODD: Final[OddTemplates] = frozenset()
MOST_COMBINED: Final = 4
"""Up to so many templates that depend on each other are tried with each combination of uids."""

_CANDIDATES: Final = ("none-0", "none-1")
UIDS: Final = tuple(
    next(each for each in _CANDIDATES if prefers_descending_names(each) is descending)
    for descending in (False, True)
)
"""One uid of each parity: ties go to the earlier name with the first, to the later name with the second."""


def with_uids(objects: PlanObjects, odd: OddTemplates) -> PlanObjects:
    """Return the objects with a uid in each template."""
    found = objects.copy()
    for key, each in found.templates.items():
        if not text_of(each, "metadata", "uid"):
            uid = UIDS[key in odd]
            found.templates[key] = {**each, "metadata": {**part(each, "metadata"), "uid": uid}}
    return found


def decided_by_uid(step: WrittenChange, rules: DryRun) -> Iterator[UnversionedTemplateKey]:
    """Yield the templates without a uid of their own whose uid decides where a replica goes."""
    for decision in step.decisions:
        binding = step.known.bindings.get(decision.key)
        uid = "" if binding is None else binding.spec.resource.uid
        if uid in UIDS and (
            rules.frameworks.has_own_plugins or _depends_on_uid(decision, UIDS[1 - UIDS.index(uid)])
        ):
            yield resource_key(step.objects.bindings[decision.key])


def _depends_on_uid(decision: Decision, other: str) -> bool:
    """Return whether the workload would get other replicas if ``other`` was its uid.

    The division is the only step of the core that reads the uid: ties go to the earlier or to the later name. So it
    is made again for each run of the algorithm; plugins of one's own are not asked.
    """
    return any(_differs(each, other) for each in decision.attempts)


def _differs(attempt: TermAttempt, other: str) -> bool:
    cycle = attempt.cycle
    if cycle is None or attempt.error is not None:
        return False
    spec = cycle.binding.spec
    resource = spec.resource._replace(uid=other)
    twin = replace(cycle, binding=replace(cycle.binding, spec=replace(spec, resource=resource)))
    return assign_replicas(twin, attempt.selected) != assign_replicas(cycle, attempt.selected)


def combined(dependent: OddTemplates, *, is_coupled: bool) -> Iterator[OddTemplates]:
    """Yield which of the templates get an odd uid in each try, none of them first.

    Args:
        dependent: The templates whose uid decides something.
        is_coupled: Whether the decision about one may change that about another. If not, one try has both
            parities of all of them.
    """
    names = sorted(dependent)
    yield NONE_ODD
    if not is_coupled or len(names) == 1:
        sizes = range(len(names), len(names) + 1)
    elif len(names) <= MOST_COMBINED:
        sizes = range(1, len(names) + 1)
    else:
        sizes = range(1, len(names) + 1, len(names) - 1)  # each alone, and all of them
    for size in sizes if names else ():
        yield from map(frozenset, combinations(names, size))
