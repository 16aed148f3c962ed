"""Checks what Select and Assign plugins answer, before it is believed.

A plugin with a true ``unchecked`` is believed as it is: DefaultSelector and DefaultAssigner have to repeat
upstream even where that is odd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.placement import DIVIDED
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.plugin_call import nonsense
from karmada_scheduler.framework.scheduling_points import AssignContext, Plugin, SelectContext


def selected(plugin: Plugin, answer: object, context: SelectContext) -> Sequence[Candidate]:
    """Return what a Select plugin chose.

    Raises:
        PluginError: It is not a choice of candidates, each at most once.
    """
    if getattr(plugin, "unchecked", False):
        return cast("Sequence[Candidate]", answer)
    if (
        not isinstance(answer, Sequence)
        or isinstance(answer, str)
        or not all(isinstance(each, Candidate) for each in answer)
    ):
        raise nonsense(plugin, Point.SELECT, answer, "some of the candidates")
    known = {candidate.name for candidate in context.candidates}
    names = [each.name for each in answer]
    if len(set(names)) < len(names) or not known.issuperset(names):
        raise nonsense(plugin, Point.SELECT, names, "candidates, each at most once")
    return list(answer)


def targets(plugin: Plugin, answer: object, context: AssignContext) -> list[TargetCluster]:
    """Return the targets that an Assign plugin answered.

    Raises:
        PluginError: It names other clusters than the selected, numbers below 0 or above int32, or does not
            add up to the binding's replicas where the placement divides them.
    """
    divided: list[Any]
    if isinstance(answer, Mapping):
        divided = [TargetCluster(name, replicas) for name, replicas in answer.items()]
    else:
        divided = list(answer) if isinstance(answer, Sequence) else [answer]
    if getattr(plugin, "unchecked", False):
        return divided
    if not all(
        isinstance(each, TargetCluster) and isinstance(each.name, str) and type(each.replicas) is int
        for each in divided
    ):
        raise nonsense(plugin, Point.ASSIGN, answer, "replicas by cluster name")
    known = {candidate.name for candidate in context.selected}
    names = [each.name for each in divided]
    if len(set(names)) < len(names) or not known.issuperset(names):
        raise nonsense(plugin, Point.ASSIGN, names, f"some of {sorted(known)}, each at most once")
    if wrong := {each.name: each.replicas for each in divided if not 0 <= each.replicas <= MAX_INT32}:
        raise nonsense(plugin, Point.ASSIGN, wrong, f"0 to {MAX_INT32} replicas")
    spec, strategy = context.cycle.binding.spec, context.cycle.placement.replica_scheduling
    total = sum(each.replicas for each in divided)
    divides = strategy is not None and strategy.replica_scheduling_type == DIVIDED and spec.is_workload
    if divides and total != spec.replicas:
        raise nonsense(plugin, Point.ASSIGN, f"{total} replicas in all", f"{spec.replicas}")
    return divided
