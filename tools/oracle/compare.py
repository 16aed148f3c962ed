"""Compares upstream's result with ours, except for variations that are allowed.

Everything is compared exactly: which rules hold, every run of the algorithm in order (affinity term,
clusters and replicas in order, class and text of the error, the refusal of every cluster) and the state
of the binding at the end. Some results of upstream are random, so variations are allowed in:

- the order of the previous clusters that an Aggregated scale-up appends;
- the reason under which a cluster is reported as unfit: each cluster counts under the first plugin that
  refuses it, in an order that changes with every start. The oracle therefore calls each plugin alone, and
  our reasons must follow from these results by our documented order;
- the order of several assumed workloads on one cluster with resource models, where first fit decides.

Some defects of upstream are not copied (docs/differences-from-upstream.md). Each is recognized by the value that
causes it, never by the difference in the result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.core.condition import NO_CLUSTER_FIT, condition_for
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.framework.diagnosis import (
    FitError,
    InvalidExpressionError,
    KeptError,
    UnschedulableError,
)
from tools.oracle.defects import (
    INVALID_EXPRESSION,
    LISTED_TWICE,
    RESCHEDULE_REMOVES,
    RESTLESS,
    has_invalid_expression,
    is_removed_by_reschedule,
    without_placeholder,
)
from tools.oracle.ours import OurDecision, Scenario
from tools.oracle.program import UpstreamResult

AGGREGATED_TAIL = "order of the previous clusters that an Aggregated scale-up appends"
CREEPING = "number of compared passes of a Duplicated binding with overflow affinities"
ASSUMED_ORDER = "order of a cluster's assumed workloads, which decides how they fill its model nodes"


@dataclass
class Comparison:
    """Result of the comparison for one binding.

    Attributes:
        differences: One readable line each; empty if the answers are equal.
        variations: The allowed variations that were needed.
        defects: The defects of upstream that showed.
    """

    differences: list[str] = field(default_factory=list)
    variations: set[str] = field(default_factory=set)
    defects: set[str] = field(default_factory=set)

    def check(self, what: str, upstream: object, ours: object) -> None:
        """Record a difference if there is one."""
        if upstream != ours:
            self.differences += [what, f"  - upstream {_shown(upstream)}", f"  + ours     {_shown(ours)}"]


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def compare(scenario: Scenario, decided: OurDecision, result: UpstreamResult) -> Comparison:
    """Compare all results for one binding."""
    comparison = Comparison()
    passes: Sequence[Mapping[str, Any]] = result["passes"]
    comparison.check("rules that require scheduling", passes[0]["rules"], decided.rules)
    attempts = decided.decision.attempts if decided.decision is not None else ()
    runs = _runs(decided, passes)
    if len(passes) > 1 and scenario.has_assumed_on_models:
        # The footprint of the first pass has joined the others: compare the passes before that.
        comparison.variations.add(ASSUMED_ORDER)
        runs = runs[: len(passes[0].get("terms", ()))]
        attempts = attempts[: len(runs)]
    if not result["settled"]:
        _compare_restless(comparison, scenario, decided, passes)
        runs, attempts = runs[: len(attempts)], attempts[: len(runs)]
    if is_invalid := _ends_with_invalid_expression(comparison, decided):
        runs = _of_pass(runs, attempts)
    if is_kept := _keeps_rescheduled(comparison, decided):
        runs = runs[: len(attempts)]
    comparison.check("runs of the algorithm", len(runs), len(attempts))
    for number, (run, attempt) in enumerate(zip(runs, attempts, strict=False), 1):
        _compare_run(comparison, f"run {number}", scenario, decided, run, attempt)
    is_final = (
        result["settled"] and not is_invalid and not is_kept and ASSUMED_ORDER not in comparison.variations
    )
    if not comparison.differences and is_final:
        _compare_final(comparison, decided, result)
    return comparison


def _ends_with_invalid_expression(comparison: Comparison, decided: OurDecision) -> bool:
    """Return whether ours ends with an error about an expression, which has to be in the placement, and changes nothing."""
    decision, placement = decided.decision, decided.binding.spec.placement
    if decision is None or placement is None or not isinstance(decision.error, InvalidExpressionError):
        return False
    comparison.defects.add(INVALID_EXPRESSION)
    has_one = has_invalid_expression(json.loads(placement.to_json()))
    comparison.check("an invalid expression in the placement", has_one, True)
    comparison.check("targets after an invalid expression", None, decision.targets)
    return True


def _keeps_rescheduled(comparison: Comparison, decided: OurDecision) -> bool:
    """Return whether ours keeps the placement of a reschedule, which upstream then clears, and decides again."""
    decision = decided.decision
    if decision is None or type(decision.error) is not KeptError:
        return False
    comparison.defects.add(RESCHEDULE_REMOVES)
    is_removed = is_removed_by_reschedule(decided.binding, decision.failed_terms)
    comparison.check("a reschedule that removes replicas", True, is_removed)
    comparison.check("targets after such a reschedule", None, decision.targets)
    return True


class _Run(NamedTuple):
    """One run of the algorithm by upstream.

    Attributes:
        previous: Where the binding was before the pass.
    """

    term: Mapping[str, Any]
    previous: frozenset[str]


def _runs(decided: OurDecision, passes: Sequence[Mapping[str, Any]]) -> list[_Run]:
    runs: list[_Run] = []
    previous = decided.binding.spec.target_names
    for each in passes:
        terms = each.get("terms", ())
        runs += [_Run(term, previous) for term in terms]
        if terms and terms[-1]["class"] == "ok":
            previous = frozenset(name for name, _ in terms[-1]["clusters"])
    return runs


def _of_pass(runs: list[_Run], attempts: Sequence[TermAttempt]) -> list[_Run]:
    """Return upstream's runs of the pass in which ours ended with an error: a decision has only the attempts of that pass."""
    cycle = attempts[0].cycle if attempts else None
    if cycle is None:
        return []
    current = cycle.binding.spec.target_names
    first = next((index for index, run in enumerate(runs) if run.previous == current), 0)
    return runs[first : first + len(attempts)]


def _compare_restless(
    comparison: Comparison, scenario: Scenario, decided: OurDecision, passes: Sequence[Mapping[str, Any]]
) -> None:
    """Compare a binding that upstream changes at every pass: the passes until ours stops are compared.

    With SchedulingOvercommitProtection, upstream cycles between placements, and ours has to end at one of them.
    A Duplicated binding with overflow affinities, which admission refuses, changes by one step per pass.
    """
    if scenario.gates.enabled("SchedulingOvercommitProtection"):
        comparison.defects.add(RESTLESS)
        places = [
            [tuple(target) for target in each["terms"][-1]["clusters"]]
            for each in passes
            if each.get("terms")
        ]
        decision = decided.decision
        ours = [tuple(target) for target in decision.targets or ()] if decision is not None else None
        if ours not in places and not isinstance(decision and decision.error, InvalidExpressionError):
            comparison.check("a place of a binding that never rests", places, ours)
        return
    placement = decided.binding.spec.placement
    terms = placement.cluster_affinities if placement is not None else ()
    creeps = (
        placement is not None and placement.is_duplicated and any(term.divides_by_tiers for term in terms)
    )
    if creeps:
        comparison.variations.add(CREEPING)
    else:
        comparison.check("settled", False, True)


def _compare_run(
    comparison: Comparison,
    label: str,
    scenario: Scenario,
    decided: OurDecision,
    run: _Run,
    attempt: TermAttempt,
) -> None:
    term = run.term
    comparison.check(f"{label}: affinity term", term["affinity"], attempt.affinity_name)
    comparison.check(f"{label}: class", term["class"], _class_of(attempt))
    if term["class"] == "fit":
        reasons = {
            name: next(iter(sorted(by_plugin.items())))[1]
            for name, by_plugin in term.get("rejected", {}).items()
        }
        refused = {
            name: ", ".join(result.reasons) for name, result in attempt.diagnosis.result_by_cluster.items()
        }
        comparison.check(f"{label}: refusals", reasons, refused)
        comparison.check(f"{label}: error", _fit_text(len(scenario.clusters), reasons), str(attempt.error))
        return
    comparison.check(f"{label}: error", term.get("error", ""), str(attempt.error or ""))
    upstream = [tuple(target) for target in term["clusters"]]
    ours = [tuple(target) for target in attempt.targets or ()]
    if upstream != ours and _same_but_for_the_tail(decided, run.previous, upstream, ours):
        comparison.variations.add(AGGREGATED_TAIL)
    else:
        comparison.check(f"{label}: clusters", upstream, ours)


def _class_of(attempt: TermAttempt) -> str:
    if attempt.error is None:
        return "ok"
    if isinstance(attempt.error, UnschedulableError):
        return "unschedulable"
    return "fit" if isinstance(attempt.error, FitError) else "error"


def _fit_text(count: int, reasons: Mapping[str, str]) -> str:
    if not reasons:
        return f"0/{count} clusters are available: no cluster exists."
    histogram = sorted(f"{number} {reason}" for reason, number in Counter(reasons.values()).items())
    return f"0/{count} clusters are available: {', '.join(histogram)}."


def _same_but_for_the_tail(
    decided: OurDecision, previous: frozenset[str], upstream: list[Any], ours: list[Any]
) -> bool:
    placement = decided.binding.spec.placement
    strategy = placement.replica_scheduling if placement is not None else None
    if (
        strategy is None
        or strategy.replica_division_preference != AGGREGATED
        or sorted(upstream) != sorted(ours)
    ):
        return False
    return all(
        one == other or {one[0], other[0]} <= previous for one, other in zip(upstream, ours, strict=True)
    )


def _compare_final(comparison: Comparison, decided: OurDecision, result: UpstreamResult) -> None:
    """Compare the state of the binding once everything is written."""
    binding, decision, final = decided.binding, decided.decision, result["final"]
    if decision is None or binding.spec.placement is None:
        return  # nothing is decided, and the core writes nothing
    comparison.check("settled", True, result["settled"])
    upstream = [tuple(target) for target in final["clusters"]]
    ours = [
        tuple(target) for target in (binding.spec.clusters if decision.targets is None else decision.targets)
    ]
    if AGGREGATED_TAIL in comparison.variations:
        upstream, ours = sorted(upstream), sorted(ours)
    if len(binding.spec.target_names) < len(binding.spec.clusters) and decision.targets is not None:
        total: Counter[str] = Counter()
        for name, replicas in upstream:
            total[name] += replicas
        if len(total) < len(upstream):
            comparison.defects.add(LISTED_TWICE)
            upstream = [*total.items()]
    comparison.check("settled clusters", upstream, ours)
    name = binding.status.scheduler_observing_affinity_name
    comparison.check("affinity in force", final["affinity"], decision.affinity_name or name)
    if decision.targets is not None:
        applied = without_placeholder(json.loads(final["appliedPlacement"]))
        comparison.check("applied placement", applied, json.loads(decision.applied_placement or "null"))
    comparison.check("lastScheduledTime set", final["scheduledNow"], decision.was_placed)
    upstream_condition = next(each[1:] for each in final["conditions"] if each[0] == "Scheduled")
    condition = list(condition_for(decision.error))
    if upstream_condition[1] == NO_CLUSTER_FIT:
        upstream_condition[2] = condition[2]  # its text was compared, run by run
    comparison.check("condition", upstream_condition, condition)
