"""Traces of single steps: what the core keeps for them, and what they show beyond the decision."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import NextState
from karmada_advisor.explain.situation import Basis, attempt_of
from karmada_advisor.explain.trace_model import DivideTrace
from karmada_advisor.explain.trace_select import combinations
from karmada_advisor.views.explanation_text import explanation_text
from karmada_advisor.views.fields import as_json, document_fields
from karmada_advisor.views.text import Style
from karmada_scheduler.api.binding import Binding, TargetCluster, footprint
from karmada_scheduler.core.algorithms.select_groups import Limits, RegionGroup, select_groups
from karmada_scheduler.core.decision import deciding_attempts
from karmada_scheduler.dryrun.dry_run import run
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import ClusterBuilder, binding, cluster, gates
from tests.unit.explain.asking import explained, inputs_of
from tests.unit.explain.fleet import checkout, fleet
from tests.unit.explain.test_select_questions import with_cpu
from tools.oracle.generator.rng import Random
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.ours import Scenario


def generated(seed: int) -> Iterator[tuple[str, ExplainInputs]]:
    """Yield generated cases with what a decision about them reads, without end."""
    for document in scenarios(seed, cases=1 << 62):
        scenario = Scenario(document)
        for manifest in document["bindings"]:
            found = Binding.from_manifest(manifest)
            if not found.deleting:
                yield f"{document['id']} {found.key}", scenario.explain_inputs(found)


def test_a_decision_is_the_same_if_it_keeps_its_steps() -> None:
    for case, inputs in islice(generated(seed=20261122), 400):
        deciding = inputs.algorithm.decide(
            inputs.binding,
            inputs.snapshot,
            inputs.framework,
            assumed=inputs.assumed,
            workload=inputs.workload,
        )
        plain, kept = run(deciding, waits=inputs.framework.is_async), inputs.decide()
        assert kept.targets == plain.targets, case
        assert str(kept.error) == str(plain.error), case
        assert [each.targets for each in kept.attempts] == [each.targets for each in plain.attempts], case
        assert all(each.cycle is None or each.cycle.kept is None for each in plain.attempts), case
        assert all(each.cycle is None or each.cycle.kept is not None for each in kept.attempts), case


def test_the_steps_that_are_kept_lead_to_the_decision() -> None:
    divided = 0
    for case, inputs in islice(generated(seed=20261123), 400):
        basis = Basis(inputs, inputs.decide())
        passing = [name for name, refusals in basis.filter.items() if not refusals]
        if basis.select is None:
            assert not passing or basis.attempt.cycle is None, case
            continue
        candidates = {each.name: each for each in basis.attempt.candidates}
        assert passing == sorted(candidates), case
        for name, cells in basis.score.items():
            assert sum(cell.normalized * cell.weight for cell in cells) == candidates[name].score, case
            assert all(cell.raw == cell.normalized for cell in cells), case
        for cell in basis.capacity.values():
            known = [each.replicas for each in cell.estimates if each.replicas is not None]
            assert not known or cell.allocatable == min(known), case
        if basis.select.combinations and not basis.select.error:
            by_name = {name: each.name for each in basis.select.groups for name in each.clusters}
            assert list(basis.select.combinations[0].names) == sorted(
                {by_name[each.name] for each in basis.attempt.selected}
            ), case
        if basis.divide is not None and basis.attempt.targets is not None:
            divided += check_division(basis.divide, basis.attempt.targets, case)
    assert divided > 100


def check_division(division: DivideTrace, targets: tuple[TargetCluster, ...], case: str) -> bool:
    """Check that rows add up to the targets; return whether replicas were numbered."""
    counted: Counter[str] = Counter()
    for target in targets:
        counted[target.name] += target.replicas
    rows = {row.name: row.kept + row.seats for row in division.rows}
    assert {name: count for name, count in rows.items() if count > 0} == +counted, case
    if division.strategy in {"Duplicated", "none"} or not division.divided:
        return False
    assert sum(row.seats for row in division.rows) == division.divided, case
    assert all((row.last_seat > 0) == (row.seats > 0) for row in division.rows), case
    if not any(row.tier for row in division.rows):
        assert max(row.last_seat for row in division.rows) == division.divided, case
        assert all(row.next_at <= division.last_quotient + 1e-9 for row in division.rows), case
    return True


def test_every_explanation_of_a_generated_case_is_complete_and_can_be_written() -> None:
    for case, inputs in islice(generated(seed=22), 120):
        explanation = explain(inputs)
        assert [each.primary for each in explanation.causes] == [
            index == 0 for index in range(len(explanation.causes))
        ], case
        without = [each.name for each in explanation.clusters if not each.is_target and not each.cause]
        assert without == [], case
        if explanation.would_be is not None and explanation.would_be.outcome in {
            NextState.NOT_PLACED,
            NextState.STUCK,
        }:
            assert explanation.causes, case
        assert explanation_text(explanation, Style(width=80))
        assert json.loads(as_json(document_fields(explanation)))["kind"] == "Explanation"


def test_combinations_name_the_criterion_at_which_each_lost() -> None:
    selection = explained(checkout(), *fleet()).selection

    assert selection is not None
    assert [
        (each.names, each.clusters, each.weight, each.lost_by) for each in selection.combinations[:4]
    ] == [
        (("ap-south", "eu-west"), 3, 24000, ""),
        (("eu-west", "us-east"), 3, 24000, "name"),
        (("ap-south", "us-east"), 2, 24000, "clusters"),
        (("eu-north", "eu-west"), 3, 23000, "weight"),
    ]
    assert len(selection.combinations) == 6


def test_the_pass_that_first_gave_the_result_explains_it() -> None:
    """Later passes start from the result, and the first one had another."""
    made = inputs_of(binding("web").replicas(1, cpu=1).dynamic_weight(), cluster("m1"), cluster("m2"))
    [attempt] = made.decide().attempts[:1]
    assert attempt.cycle is not None
    passes = [
        replace(
            attempt,
            cycle=replace(attempt.cycle, binding=replace(made.binding, generation=number)),
            targets=(TargetCluster(name, 1),),
        )
        for number, name in enumerate(("m1", "m2", "m2"))
    ]
    decision = replace(made.decide(), targets=passes[-1].targets, attempts=tuple(passes))

    attempts, count = deciding_attempts(decision)

    assert (len(attempts), count) == (1, 3)
    assert attempts[0] is attempt_of(decision) is passes[1]


@pytest.mark.parametrize("seed", range(200))
def test_the_best_combination_is_the_one_that_the_core_takes(seed: int) -> None:
    rng = Random(seed)
    groups = [
        RegionGroup(f"r{index}", 1 + rng.upto(3), rng.pick((0, 1000, 1000, 2000, 3500)))
        for index in range(1 + rng.upto(6))
    ]
    limits = Limits(rng.upto(3), rng.upto(5), rng.upto(8))
    taken = [each.name for each in select_groups(groups, limits)]

    found = combinations(groups, limits, taken)

    assert bool(found.shown) == bool(taken)
    if taken:
        assert found.shown[0].taken
        assert found.shown[0].names == tuple(sorted(taken))
        assert all(each.lost_by for each in found.shown[1:])


def test_too_many_combinations_are_not_enumerated() -> None:
    groups = [RegionGroup(f"r{index:02}", 1, 1000) for index in range(60)]
    taken = [each.name for each in select_groups(groups, Limits(20, 30, 0))]

    found = combinations(groups, Limits(20, 30, 0), taken)

    assert (len(found.shown), found.more) == (1, -1)


def test_a_cluster_is_exchanged_for_one_with_more_available_replicas() -> None:
    asked = (
        binding("web").replicas(12, cpu=1).dynamic_weight().spread("cluster", 1, 2).on(m1=1, m2=1).applied()
    )
    asked.last_scheduled("2026-11-22T10:00:00Z")

    selection = explained(asked, *with_cpu(m1=1, m2=1, m3=20)).selection

    assert selection is not None
    assert [(each.removed, each.added) for each in selection.swaps] == [("m2", "m3")]
    assert selection.losses["m2"] == "swap"


@pytest.mark.parametrize(
    ("made", "limit"),
    [
        (cluster("m1").capacity(cpu=2, memory="100Gi"), ("cpu", "2", "500m")),
        (cluster("m1").capacity(cpu=20, memory="3Gi"), ("memory", "3Gi", "1Gi")),
        (cluster("m1").capacity(cpu=20, memory="100Gi", pods=3), ("pods", "3", "")),
        (cluster("m1").without_summary(), ("no resource summary", "", "")),
        (
            cluster("m1").capacity(cpu=20, memory="100Gi").grade(0, nodes=3, cpu=1, memory="1Gi"),
            ("memory", "100Gi", "1Gi"),
        ),
    ],
)
def test_the_limiting_resource_is_the_one_that_alone_allows_as_few(
    made: ClusterBuilder, limit: tuple[str, str, str]
) -> None:
    asked = binding("web").replicas(1, cpu="500m", memory="1Gi").dynamic_weight()

    [row] = explained(asked, made).clusters

    assert row.capacity is not None
    assert (row.capacity.limited_by, row.capacity.free, row.capacity.requested) == limit


def test_assumed_placements_are_named() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()
    other = binding("other").replicas(3, cpu=1).build()
    assumed = {"m1": [footprint(other, TargetCluster("m1", 3))]}
    on = gates(SchedulingOvercommitProtection=True)

    [row] = explained(asked, *with_cpu(m1=10), gates=on, assumed=assumed).clusters

    assert row.capacity is not None
    assert row.capacity.available == 7
    assert row.capacity.assumed == ("default/other-deployment",)


def test_the_division_numbers_the_replicas() -> None:
    division = explained(checkout(), *fleet()).division

    assert division is not None
    assert [
        (row.name, row.weight, row.seats, row.last_seat, round(row.next_at, 3)) for row in division.rows
    ] == [
        ("ap-south-1", 12, 4, 21, 1.333),
        ("eu-west-1", 36, 12, 24, 1.44),
        ("eu-west-2", 24, 8, 23, 1.412),
    ]


def test_the_rules_have_both_sides_of_each_comparison() -> None:
    asked = binding("web").replicas(4, cpu=1).dynamic_weight().on(m1=3).applied().names("m1")

    trigger = explained(asked, cluster("m1")).trigger

    assert trigger is not None
    by_id = {rule.id: rule for rule in trigger.rules}
    assert by_id["R1"].holds
    assert by_id["R1"].left == "differs in clusterAffinity"
    assert (by_id["R2"].holds, by_id["R2"].left, by_id["R2"].right) == (True, "3 in all", "4")
    assert not by_id["R3"].holds
    assert trigger.schedule_class == "Reconcile"
