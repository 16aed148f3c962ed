"""Uids of templates that have none: a template in Git has no uid, and ties between clusters go by its parity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final

from karmada_advisor.plan.inputs import Known
from karmada_advisor.plan.objects import (
    PlanObjects,
    UnversionedTemplateKey,
    part,
    resource_key,
    text_of,
)
from karmada_advisor.plan.steps import PlannedStep
from karmada_scheduler.core.algorithms.webster import prefers_descending_names
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.uid import depends_on_uid, with_uid

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


def renamed(objects: PlanObjects, known: Known, odd: OddTemplates) -> tuple[PlanObjects, Known]:
    """Return objects and values as they would be if other templates had an odd uid, and no uid had decided anything."""
    found, bindings = objects.copy(), dict(known.bindings)
    for key, each in objects.templates.items():
        uid = UIDS[key in odd]
        if (old := text_of(each, "metadata", "uid")) in UIDS and old != uid:
            found.templates[key] = {**each, "metadata": {**part(each, "metadata"), "uid": uid}}
    for name, each in objects.bindings.items():
        uid = UIDS[resource_key(each) in odd]
        if (old := text_of(each, "spec", "resource", "uid")) in UIDS and old != uid:
            spec = part(each, "spec")
            found.bindings[name] = {
                **each,
                "spec": {**spec, "resource": {**part(spec, "resource"), "uid": uid}},
            }
            bindings[name] = with_uid(bindings[name], uid)
    return found, Known(known.clusters, bindings)


def decided_by_uid(step: PlannedStep, rules: DryRun) -> Iterator[UnversionedTemplateKey]:
    """Yield the templates without a uid of their own whose uid decides where a replica goes."""
    reads_uid: Callable[..., bool] = _may_be_read if rules.frameworks.has_own_plugins else depends_on_uid
    for decision in step.decisions:
        binding = step.known.bindings.get(decision.key)
        uid = "" if binding is None else binding.spec.resource.uid
        if uid in UIDS and reads_uid(decision, UIDS[1 - UIDS.index(uid)]):
            yield resource_key(step.objects.bindings[decision.key])


def _may_be_read(*_: object) -> bool:
    return True


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
