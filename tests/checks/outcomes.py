"""Compares what a plan says about each binding with what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.checks.workloads import has_failed
from tools.manifests import Manifest, targets_of

Targets = dict[str, int]

_STAYS = frozenset(("unchanged", "latent", "deferred", "stuck"))
"""Classes of bindings that keep their clusters until something else happens."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is stored of a binding, or predicted.

    Attributes:
        effect: ``unchanged``, ``moved``, ``placed``, ``unplaced``, ``stuck`` or ``deleted``.
        targets: Replicas by cluster.
    """

    effect: str
    targets: Targets


def predicted(plan: Mapping[str, Any], before: Mapping[str, Manifest]) -> dict[str, Outcome]:
    """Return what a plan says, by the name of the binding; what it does not list is unchanged."""
    found = {name: Outcome("unchanged", targets_of(binding)) for name, binding in before.items()}
    for planned in plan["bindings"]:
        name, effect = planned["name"], planned["effect"]
        if effect == "deleted":
            found[name] = Outcome(effect, {})
        elif effect in _STAYS:
            found[name] = Outcome("stuck" if effect == "stuck" else "unchanged", found[name].targets)
        else:
            found[name] = Outcome(effect, {target["name"]: target["replicas"] for target in planned["after"]})
    return found


def happened(before: Mapping[str, Manifest], after: Mapping[str, Manifest]) -> dict[str, Outcome]:
    """Return what became of each binding."""
    return {name: _outcome(before.get(name), after.get(name)) for name in before.keys() | after.keys()}


def _outcome(before: Manifest | None, after: Manifest | None) -> Outcome:
    if after is None:
        return Outcome("deleted", {})
    old, new = {} if before is None else targets_of(before), targets_of(after)
    if old == new:
        was_failing = before is not None and has_failed(before)
        if before is None and not new:
            return Outcome("unplaced", new)
        return Outcome("stuck" if has_failed(after) and not was_failing else "unchanged", new)
    if not old:
        return Outcome("placed", new)
    return Outcome("moved" if new else "unplaced", new)
