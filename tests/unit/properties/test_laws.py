"""Laws that hold for any input."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from karmada_scheduler.core.algorithms import webster
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework import SchedulingError
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster, decide

NAMES = [f"m{index}" for index in range(8)]

votes = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 50), min_size=1).filter(
    lambda each: any(each.values())
)
seats = st.integers(0, 80)


# --- Webster ---


@given(votes, seats, st.booleans())
def test_all_seats_are_assigned(parties: Mapping[str, int], count: int, descending: bool) -> None:
    given_ = webster.allocate(count, parties, descending_names=descending)
    assert sum(given_.values()) == count
    assert set(given_) == set(parties)
    assert all(parties[name] > 0 for name, seats_ in given_.items() if seats_)


@given(votes, seats, st.booleans())
def test_one_more_seat_never_reduces_a_party(
    parties: Mapping[str, int], count: int, descending: bool
) -> None:
    before = webster.allocate(count, parties, descending_names=descending)
    after = webster.allocate(count + 1, parties, descending_names=descending)
    assert all(after[name] >= before[name] for name in before)


@given(votes, seats)
def test_moving_a_seat_never_improves_proportionality(parties: Mapping[str, int], count: int) -> None:
    given_ = webster.allocate(count, parties)
    for one, other in combinations(given_, 2):
        for winner, loser in ((one, other), (other, one)):
            # The loser's last seat was worth at least what the winner's next would have been.
            if given_[loser]:
                assert parties[loser] * (2 * given_[winner] + 1) >= parties[winner] * (2 * given_[loser] - 1)


@given(votes, seats, st.randoms(use_true_random=False))
def test_the_order_of_parties_does_not_matter(
    parties: Mapping[str, int], count: int, chance: random.Random
) -> None:
    shuffled = list(parties.items())
    chance.shuffle(shuffled)
    assert webster.allocate(count, dict(shuffled)) == webster.allocate(count, parties)


@given(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 50), min_size=1), st.data())
def test_no_party_gets_more_seats_than_votes(parties: Mapping[str, int], data: st.DataObject) -> None:
    """So division by capacity is safe: no cluster gets more replicas than it has available."""
    count = data.draw(st.integers(0, sum(parties.values())))
    given_ = webster.allocate(count, parties)
    assert all(given_[name] <= parties[name] for name in parties)


# --- whole decisions ---


@st.composite
def fleets(draw: st.DrawFn) -> list[ClusterBuilder]:
    fleet = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
        builder = cluster(name).region(draw(st.sampled_from(["", "r1", "r2", "r3"])))
        builder.capacity(cpu=draw(st.integers(0, 30)), pods=draw(st.integers(0, 25)))
        if draw(st.integers(0, 5)) == 0:
            builder.taint("x:NoSchedule")
        if draw(st.integers(0, 9)) == 0:
            builder.deleting()
        fleet.append(builder)
    return fleet


@st.composite
def workloads(draw: st.DrawFn) -> BindingBuilder:
    builder = binding("w").replicas(draw(st.integers(1, 40)), cpu=draw(st.sampled_from(["500m", "1", "2"])))
    builder.uid(draw(st.sampled_from(["", "uid-a", "uid-b"])))
    match draw(st.sampled_from(["duplicated", "static", "equal", "dynamic", "aggregated"])):
        case "duplicated":
            builder.duplicated()
        case "static":
            builder.static_weights(
                **draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 5), min_size=1))
            )
        case "equal":
            builder.static_weights()
        case "dynamic":
            builder.dynamic_weight()
        case "aggregated":
            builder.aggregated()
    if draw(st.booleans()):
        builder.on(**draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 20))))
    if draw(st.booleans()):
        at_least = draw(st.integers(1, 3))
        builder.spread("cluster", at_least, draw(st.integers(at_least, 6)))
        if draw(st.booleans()):
            builder.spread("region", 1, draw(st.integers(1, 3)))
    if draw(st.integers(0, 3)) == 0:
        builder.evicted_from(draw(st.sampled_from(NAMES)))
    if draw(st.integers(0, 3)) == 0:
        builder.reschedule_triggered("2026-01-02T00:00:00Z").last_scheduled("2026-01-01T00:00:00Z")
    return builder


def strategy(builder: BindingBuilder) -> Mapping[str, object]:
    found: Mapping[str, object] = builder.manifest()["spec"]["placement"]["replicaScheduling"]
    return found


def by_capacity(builder: BindingBuilder) -> bool:
    chosen = strategy(builder)
    weights = chosen.get("weightPreference")
    dynamic = isinstance(weights, dict) and "dynamicWeight" in weights
    return chosen.get("replicaDivisionPreference") == "Aggregated" or dynamic


@given(workloads(), fleets())
def test_divided_replicas_have_the_right_sum_and_duplicated_ones_are_on_every_target(
    builder: BindingBuilder, fleet: list[ClusterBuilder]
) -> None:
    decision = decide(builder, *fleet)
    if decision.error is not None:
        return
    replicas = builder.build().spec.replicas
    counts = [target.replicas for target in decision.targets or ()]
    if strategy(builder)["replicaSchedulingType"] == "Duplicated":
        assert set(counts) == {replicas}
    else:
        assert sum(counts) == replicas
        assert all(counts)


@given(workloads().filter(by_capacity), fleets())
def test_no_cluster_gains_more_replicas_than_it_can_take(
    builder: BindingBuilder, fleet: list[ClusterBuilder]
) -> None:
    decision = decide(builder, *fleet)
    held = {target.name: target.replicas for target in builder.build().spec.clusters}
    available = {each.name: each.allocatable for each in decision.attempts[0].candidates}
    for target in decision.targets or ():
        assert target.replicas <= held.get(target.name, 0) + max(0, available[target.name])


@given(workloads(), fleets(), st.randoms(use_true_random=False))
def test_the_order_of_clusters_does_not_matter(
    builder: BindingBuilder, fleet: list[ClusterBuilder], chance: random.Random
) -> None:
    shuffled = list(fleet)
    chance.shuffle(shuffled)
    assert outcome(decide(builder, *shuffled)) == outcome(decide(builder, *fleet))


@given(workloads(), fleets())
def test_repeating_a_stable_decision_changes_nothing(
    builder: BindingBuilder, fleet: list[ClusterBuilder]
) -> None:
    decision = decide(builder, *fleet)
    if decision.targets is None:
        return
    replicas = {target.name: target.replicas for target in decision.targets}
    builder.on(**replicas).applied().last_scheduled("2026-01-03T00:00:00Z")
    again = decide(builder, *fleet)
    if decision.error is None and strategy(builder)["replicaSchedulingType"] == "Duplicated":
        assert (again.targets, again.error) == (decision.targets, None)
    elif decision.error is not None:
        assert again.targets == decision.targets == ()


@given(workloads(), fleets())
def test_targets_are_unique_and_passed_the_filters(
    builder: BindingBuilder, fleet: list[ClusterBuilder]
) -> None:
    decision = decide(builder, *fleet)
    names = [target.name for target in decision.targets or ()]
    assert len(names) == len(set(names))
    assert set(names) <= {each.name for each in decision.attempts[-1].selected}
    assert not set(names) & set(decision.attempts[-1].diagnosis.result_by_cluster)


@given(workloads().filter(by_capacity), fleets(), st.integers(1, 10))
def test_scaling_up_removes_no_replicas(
    builder: BindingBuilder, fleet: list[ClusterBuilder], more: int
) -> None:
    decision = decide(builder, *fleet)
    if not decision.targets:
        return
    before = {target.name: target.replicas for target in decision.targets}
    replicas = builder.build().spec.replicas
    builder.manifest()["spec"]["replicas"] = replicas + more
    builder.on(**before).applied().last_scheduled("2026-01-03T00:00:00Z")
    builder.manifest()["spec"]["placement"].pop("spreadConstraints", None)
    after = decide(builder, *fleet)
    if after.error is None:
        now = {target.name: target.replicas for target in after.targets or ()}
        assert all(now.get(name, 0) >= count for name, count in before.items())


def outcome(decision: Decision) -> tuple[object, str, type[SchedulingError] | None]:
    error = decision.error
    return decision.targets, str(error), None if error is None else type(error)
