"""Which bindings a proposal has: the goals, the bounds, and that it comes true when it is executed."""

from __future__ import annotations

import random
from random import Random

import pytest

from karmada_advisor.whatif.plan.holds import stored_holds
from karmada_advisor.whatif.rebalance.model import Goal, Reason
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.testing import binding
from tests.unit.plan.asking import rules
from tests.unit.plan.test_holds import schedulers
from tests.unit.rebalance.proposing import executed, left, member, placements, proposal_of, settled, workload

ACCOUNTED = FeatureGates({"SchedulingOvercommitProtection": True})


def test_replicas_move_from_full_clusters_to_an_empty_one() -> None:
    found = proposal_of(
        [member("full", used=80), member("empty")], [workload("web", full=8)], min_kept=0, max_moves=8
    )

    assert placements(found)["web"]["empty"] > 4
    assert found.deviation_after < found.deviation_before
    assert [each.name for each in found.shares] == ["full", "empty"]


def test_the_largest_gain_per_moved_replica_comes_first_and_nothing_exceeds_max_moves() -> None:
    bindings = [workload(f"w{number}", full=8) for number in range(6)]

    found = proposal_of([member("full", used=90), member("empty")], bindings, min_kept=0, max_moves=15)

    moves = [move for batch in found.batches for move in batch.moves]
    assert 0 < found.stops == sum(each.stops for each in moves) <= 15
    assert {*left(found).values()} == {"MaxMoves"}
    assert len(moves) + len(left(found)) == 6


def test_clusters_of_different_sizes_are_not_made_less_even() -> None:
    clusters = [member("small", used=48), member("large", used=600, cpu=1000)]
    found = proposal_of(clusters, [workload("web", small=10)], min_kept=0)

    assert (found.batches, left(found)) == ((), {"web": "NoGain"})


@pytest.mark.parametrize("seed", range(40))
def test_no_proposal_makes_a_fleet_less_even(seed: int) -> None:
    random = Random(seed)
    cpus = [random.choice((20, 100, 1000)) for _ in range(random.randint(2, 5))]
    clusters = [
        member(f"m{n}", cpu=cpu, used=int(cpu * random.uniform(0.2, 0.9))) for n, cpu in enumerate(cpus)
    ]
    bindings = [
        workload(f"w{number}", **{f"m{random.randrange(len(cpus))}": random.randint(1, 10)})
        for number in range(random.randint(1, 6))
    ]

    found = proposal_of(clusters, bindings, min_kept=0)

    assert found.deviation_after <= found.deviation_before


def test_a_balanced_fleet_has_nothing_to_rebalance() -> None:
    found = proposal_of([member("m1", used=50), member("m2", used=50)], [workload("web", m1=4, m2=4)])

    assert (found.batches, left(found)) == ((), {"web": "SamePlacement"})


@pytest.mark.parametrize(("kept", "moves"), [(0.0, True), (0.75, False)])
def test_each_binding_keeps_its_part(kept: float, moves: bool) -> None:
    found = proposal_of([member("full", used=90), member("empty")], [workload("web", full=8)], min_kept=kept)

    assert bool(found.batches) is moves
    assert left(found) == ({} if moves else {"web": "BelowMinKept"})


def test_a_single_replica_is_not_moved_when_half_is_kept() -> None:
    found = proposal_of([member("full", used=90), member("empty")], [workload("web", full=1)])

    assert left(found).get("web") in {"BelowMinKept", "SamePlacement"}


def test_a_binding_without_cluster_comes_first_and_costs_no_move() -> None:
    unplaced = settled(binding("new").replicas(4, cpu="1").aggregated())
    unplaced.condition(type="Scheduled", status="False", reason="NoClusterFit")

    found = proposal_of(
        [member("full", used=90), member("empty")],
        [workload("web", full=8), unplaced],
        min_kept=0,
        max_bindings=1,
    )

    [batch] = found.batches
    assert [(each.name, each.reason, each.stops) for each in batch.moves] == [
        ("new-deployment", Reason.PLACED, 0)
    ]
    assert left(found) == {"web": "MaxBindings"}


def test_replicas_on_clusters_that_are_not_allowed_any_more_come_before_the_goal() -> None:
    placement = {
        "clusterAffinity": {"clusterNames": ["m2"]},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    }
    strict = settled(binding("strict").replicas(4, cpu="1").placement(placement).on(m1=4))

    found = proposal_of(
        [member("m1", used=10), member("m2", used=80), member("m3")],
        [workload("web", m2=8), strict],
        min_kept=0,
    )

    assert found.batches[0].moves[0].reason is Reason.DISALLOWED
    assert placements(found)["strict"] == {"m2": 4}


def test_what_a_rebalance_cannot_change_is_counted_and_not_looked_at() -> None:
    found = proposal_of(
        [member("m1", used=50), member("m2")],
        [
            settled(binding("copy").replicas(2, cpu="1").duplicated().on(m1=2)),
            settled(binding("static").replicas(2, cpu="1").static_weights(m1=1).on(m1=2)),
            settled(binding("config").dynamic_weight().on(m1=0)),
            settled(binding("other").replicas(2, cpu="1").dynamic_weight().on(m1=2).suspended()),
            workload("kept", m1=4),
        ],
        exclude="*/kept-deployment",
    )

    assert found.looked_at == 0
    assert {each.reason.name: each.count for each in found.skipped} == {
        "DUPLICATED": 1,
        "STATIC_WEIGHTS": 1,
        "WITHOUT_REPLICAS": 1,
        "NOT_SCHEDULED_HERE": 1,
        "EXCLUDED": 1,
    }


def test_bindings_that_nobody_decides_about_or_that_are_held_are_not_looked_at() -> None:
    lost = workload("lost", m1=4).scheduler("nobody")
    refused = binding("refused").replicas(4, cpu="1").dynamic_weight().on(m1=4).applied()
    refused.condition(type="Scheduled", status="False", reason="QuotaExceeded", message="cpu")
    holds = stored_holds(schedulers(), rules().frameworks)

    found = proposal_of([member("m1", used=50), member("m2")], [lost, refused], hold_of=holds)

    assert found.batches == ()
    assert {each.reason.value: each.count for each in found.skipped} == {
        "nobody decides": 1,
        "held by a quota or a plugin": 1,
    }


def test_a_binding_that_the_next_event_moves_is_left_to_it() -> None:
    scaled = workload("web", m1=4).replicas(8, cpu="1")

    assert left(proposal_of([member("m1", used=50), member("m2")], [scaled])) == {"web": "ChangesAnyway"}


def test_a_namespace_gets_no_more_than_its_part() -> None:
    bindings = [workload(f"w{number}", full=8) for number in range(4)]

    found = proposal_of([member("full", used=90), member("empty")], bindings, min_kept=0, max_per_namespace=2)

    assert found.bindings == 2
    assert [*left(found).values()] == ["MaxPerNamespace"] * 2


def test_fill_starts_replicas_on_one_cluster() -> None:
    clusters = [member("m1", used=40), member("m2", used=30), member("new")]

    found = proposal_of(clusters, [workload("web", m1=6, m2=2)], goal=Goal.FILL, fill="new", min_kept=0)

    assert placements(found)["web"]["new"] > 0
    [batch] = found.batches
    assert batch.moves[0].gain == placements(found)["web"]["new"]


def test_consolidate_uses_fewer_clusters_for_aggregated_bindings_only() -> None:
    spread = settled(binding("agg").replicas(6, cpu="1").aggregated().on(m1=2, m2=2, m3=2))

    found = proposal_of(
        [member("m1", used=20), member("m2", used=30), member("m3", used=40)],
        [spread, workload("web", m1=2, m2=2)],
        goal=Goal.CONSOLIDATE,
        min_kept=0.3,
    )

    assert {name: len(clusters) for name, clusters in placements(found).items()} == {"agg": 1}
    assert "web" in left(found)


def test_a_policy_whose_limit_keeps_bindings_where_they_are_is_named_with_an_edit_that_helps() -> None:
    bindings = [
        settled(workload(f"w{number}", m1=4, m2=4).spread("cluster", 2, 2)).annotations(
            **{
                "propagationpolicy.karmada.io/name": "web",
                "propagationpolicy.karmada.io/namespace": "default",
            }
        )
        for number in range(3)
    ]
    for each in bindings:
        each.applied()

    found = proposal_of(
        [member("m1", used=60), member("m2", used=60), member("new")], bindings, goal=Goal.FILL, fill="new"
    )

    assert {*left(found).values()} == {"LocalityKeeps"}
    assert found.suggestion is not None
    assert (str(found.suggestion.policy), found.suggestion.text, found.suggestion.bindings) == (
        "PropagationPolicy default/web",
        "cluster maxGroups 3",
        3,
    )


@pytest.mark.parametrize("gates", [FeatureGates(), ACCOUNTED], ids=["burst", "accounted"])
@pytest.mark.parametrize("seed", range(25))
def test_an_executed_proposal_comes_true_and_keeps_its_bounds(seed: int, gates: FeatureGates) -> None:
    """The execution decides batch by batch, with clusters that report what runs there."""
    chance = random.Random(seed)
    names = [f"m{number}" for number in range(chance.randint(3, 7))]
    clusters = [
        member(name, used=chance.randint(40, 90) if chance.random() < 0.6 else 20, cpu=120) for name in names
    ]
    bindings = []
    for number in range(chance.randint(5, 30)):
        on = {name: chance.randint(1, 6) for name in chance.sample(names, chance.randint(1, 3))}
        made = workload(f"w{number}", **on)
        if chance.random() < 0.4:
            made = settled(made.aggregated())
        bindings.append(made)
    most, kept, size = chance.randint(3, 40), chance.choice([0.0, 0.25, 0.5]), chance.randint(1, 6)

    found = proposal_of(clusters, bindings, max_moves=most, min_kept=kept, batch_size=size, gates=gates)

    moves = [move for batch in found.batches for move in batch.moves]
    real = executed([each.build() for each in clusters], [each.build() for each in bindings], found, gates)
    assert real == placements(found)
    assert sum(each.stops for each in moves) == found.stops <= most
    assert all(len(batch.moves) <= size for batch in found.batches)
    for move in moves:
        replicas = sum(each.replicas for each in move.before)
        assert replicas - move.stops >= kept * replicas
    assert len(moves) + len(left(found)) == len(bindings)
    assert found.deviation_after <= found.deviation_before + 1e-9 or not moves
