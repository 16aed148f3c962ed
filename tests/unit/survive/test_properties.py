"""Laws of the forecast, in random fleets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from karmada_advisor.whatif.plan.decide import PlanSide, without_clusters
from karmada_advisor.whatif.survive.classify import Classified, LossClass, Pair, classified
from karmada_advisor.whatif.survive.decisions import CoupledLosses
from karmada_advisor.whatif.survive.domains import FailureDomain, failure_domains
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import NO_POLICIES, Loss, LossInputs, LossTaints
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import binding, cluster
from tests.unit.plan.asking import rules
from tests.unit.survive.worlds import RandomFleet, lost_fleet, reference, settled, world

SEEDS = range(18)


def _losses(
    found: RandomFleet, domains: tuple[FailureDomain, ...], taints: LossTaints = NO_POLICIES
) -> Losses:
    made = Losses(LossInputs(*found, rules(), domains, tuple(Loss), taints=taints))
    made.run()
    return made


def _burst(pair: Pair) -> Classified:
    """Return the class without what other bindings ask of the clusters."""
    return pair.alone or pair.classified


def _by_position(losses: Losses, loss: Loss, number: int) -> dict[int, Pair]:
    return {each.position: each for each in losses.tallies[loss][number].pairs}


@cache
def _decided(seed: int) -> tuple[Losses, RandomFleet, tuple[FailureDomain, ...]]:
    found = world(seed)
    domains = failure_domains(found[0]).domains
    return _losses(found, domains), found, domains


def _cases(seed: int) -> Iterator[tuple[Losses, RandomFleet, Loss, int, FailureDomain]]:
    losses, found, domains = _decided(seed)
    for loss in Loss:
        for number, domain in enumerate(domains):
            yield losses, found, loss, number, domain


@pytest.mark.parametrize("seed", SEEDS)
def test_masked_decisions_are_those_on_really_lost_clusters_for_every_binding(seed: int) -> None:
    _compare(_cases(seed))


@pytest.mark.parametrize("seed", range(100, 108))
def test_so_are_those_with_the_taints_of_policies_on_some_clusters(seed: int) -> None:
    found = world(seed)
    domains = failure_domains(found[0]).domains
    taints = LossTaints(
        {
            each.name: (
                Taint("example.com/down", "", "NoExecute"),
                Taint("example.com/full", "", "NoSchedule"),
            )
            for each in found[0][seed % 2 :: 2]
        },
        acts=True,
        evicts=True,
    )
    losses = _losses(found, domains, taints)
    cases = ((losses, found, loss, number, domain) for loss in Loss for number, domain in enumerate(domains))
    _compare(cases, taints)


def _compare(
    cases: Iterable[tuple[Losses, RandomFleet, Loss, int, FailureDomain]], taints: LossTaints = NO_POLICIES
) -> None:
    """Compare forecasts with decisions about every binding on really lost clusters."""
    own = rules()  # no cache in common with the forecast
    for losses, (clusters, bindings), loss, number, domain in cases:
        lost = frozenset(domain.clusters)
        snapshot = lost_fleet(clusters, lost, loss, taints)
        calm, after = PlanSide(own, Snapshot.of(clusters), bindings), PlanSide(own, snapshot, bindings)
        pairs = _by_position(losses, loss, number)
        for place, each in enumerate(bindings):
            if not each.spec.clusters or not (before := settled(calm, each)).spec.clusters:
                assert place not in losses.asked
                continue
            expected = reference(after, before, snapshot, lost, loss, taints=taints)
            found = pairs.get(place)
            effect = LossClass.UNTOUCHED if found is None else _burst(found).effect
            assert effect is expected.effect, (loss, domain, each)
            if found is not None:
                assert _burst(found) == expected, (loss, domain, each)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pair_has_one_class_and_dark_or_interrupted_follows_from_the_figures(seed: int) -> None:
    for losses, _, loss, number, _ in _cases(seed):
        pairs = losses.tallies[loss][number].pairs
        assert max(Counter(each.position for each in pairs).values(), default=1) == 1
        for each in pairs:
            found = each.classified
            assert not found.dark or found.missing > 0
            if found.effect is LossClass.HOLDS:
                assert (found.dark, found.interrupted, found.missing) == (False, False, 0)
            if found.effect in {LossClass.CLEARED, LossClass.UNPLACED}:
                assert found.dark or not losses.asked[each.position].binding.spec.replicas


@pytest.mark.parametrize("seed", SEEDS)
def test_decisions_in_the_order_of_the_queue_give_the_same_where_nothing_couples_them(seed: int) -> None:
    for losses, (_, bindings), loss, number, domain in _cases(seed):
        coupled = CoupledLosses(losses.side, bindings)
        asked = dict(sorted(losses.asked.items()))
        made = dict(coupled.after(asked, frozenset(domain.clusters), loss))
        for place, pair in _by_position(losses, loss, number).items():
            spec = losses.asked[place].binding.spec
            assert classified(spec, domain.clusters, made[place]) == (pair.alone or pair.classified)


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_clusters_does_not_matter(seed: int) -> None:
    losses, (clusters, bindings), domains = _decided(seed)
    assert losses.tallies == _losses((clusters[::-1], bindings), domains).tallies


def test_the_worlds_have_every_class_that_they_can_have() -> None:
    seen = Counter(
        each.classified.effect
        for seed in SEEDS
        for losses, _, loss, number, _ in _cases(seed)
        for each in losses.tallies[loss][number].pairs
    )
    assert {*LossClass} - {*seen} <= {
        LossClass.UNTOUCHED,
        LossClass.HELD,
        LossClass.BLOCKED,
        LossClass.NOT_JUDGED,
    }


def test_bindings_that_differ_in_their_uid_only_share_decisions_unless_it_decides_a_tie() -> None:
    clusters = [Cluster.from_manifest(cluster(name).capacity(cpu=10, pods=10).manifest()) for name in "abc"]
    side = PlanSide(rules(), Snapshot.of(clusters), ())
    uids = ("0", "1", "00", "11", "01", "10")
    placed = [
        binding(f"w{uid}").uid(uid).replicas(1, cpu="1").dynamic_weight().on(a=1).applied().build()
        for uid in uids
    ]
    made = _losses((clusters, placed), failure_domains(clusters, ["cluster"]).domains)
    found = [each.found.after for each in made.tallies[Loss.GONE][0].pairs]
    for each, after in zip(placed, found, strict=True):
        decision = side.rules.decide(without_clusters(each, {"a"}), side.snapshot)
        assert isinstance(decision, Decision)
        assert after == decision.targets
    assert {each.name for targets in found for each in targets} == {"b", "c"}
