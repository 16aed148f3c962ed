"""Rebalances by the rules of 1.19, in which a reschedule begins with the first affinity term."""

from __future__ import annotations

import pytest

from karmada_advisor.whatif.rebalance.candidates import Inputs
from karmada_advisor.whatif.rebalance.model import Bounds, Goal, Skipped
from karmada_advisor.whatif.rebalance.propose import propose
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.features import RULES, FeatureGates
from karmada_scheduler.testing import BindingBuilder, binding
from tests.unit.plan.asking import rules
from tests.unit.rebalance.proposing import left, member, placements, proposal_of, settled
from tools.conformance.replay import RECORDINGS_1_19, Recording

OF_1_19 = FeatureGates(rules=RULES["1.19"])


def in_term(name: str, found: BindingBuilder) -> BindingBuilder:
    """Return a binding with the terms first and second, on the cluster of one of them."""
    cluster = {"first": "p", "second": "b"}[name]
    found.term("first", "p").term("second", "b").on(**{cluster: 4}).observing(name)
    return settled(found)


@pytest.mark.parametrize("strategy", ["duplicated", "static"])
@pytest.mark.parametrize(
    ("term", "gates", "moves"),
    [("second", OF_1_19, True), ("first", OF_1_19, False), ("second", None, False)],
)
def test_what_a_rebalance_never_changes_moves_if_it_is_in_a_later_term(
    strategy: str, term: str, gates: FeatureGates | None, moves: bool
) -> None:
    found = binding("web").replicas(4, cpu="1")
    found = found.duplicated() if strategy == "duplicated" else found.static_weights(p=1, b=1)
    fleet = [member("p"), member("b", used=80)]
    proposal = proposal_of(fleet, [in_term(term, found)], gates=gates, min_kept=0)
    assert placements(proposal) == ({"web": {"p": 4}} if moves else {})
    assert bool(proposal.skipped) is not moves


def test_a_workload_without_replicas_is_looked_at_in_a_later_term() -> None:
    found = binding("settings").resource("v1", "ConfigMap").term("first", "p").term("second", "b")
    asked = settled(found.on("b").observing("second"))
    assert left(proposal_of([member("p"), member("b")], [asked], gates=OF_1_19)) == {"settings": "NoGain"}
    (skipped,) = proposal_of([member("p"), member("b")], [asked]).skipped
    assert skipped.reason is Skipped.WITHOUT_REPLICAS


def test_all_replicas_of_a_return_count_for_what_is_kept() -> None:
    found = in_term("second", binding("web").replicas(4, cpu="1").dynamic_weight())
    fleet = [member("p"), member("b", used=80)]
    assert left(proposal_of(fleet, [found], gates=OF_1_19, min_kept=0.5)) == {"web": "BelowMinKept"}
    assert placements(proposal_of(fleet, [found], gates=OF_1_19, min_kept=0)) == {"web": {"p": 4}}


@pytest.mark.parametrize("goal", [Goal.SPREAD, Goal.CONSOLIDATE])
def test_nothing_is_proposed_that_would_lose_its_replicas(goal: Goal) -> None:
    (path,) = (each for each in RECORDINGS_1_19 if each.name.startswith("world-1905"))
    recording = Recording.load(path)
    bindings = [Binding.from_manifest(each["binding"]) for each in recording.cases]
    found = propose(
        Inputs(
            recording.clusters,
            bindings,
            rules(recording.gates),
            goal,
            Bounds(100_000, min_kept=0),
            fingerprint="0123456789",
        )
    )
    moves = [each for batch in found.batches for each in batch.moves]
    assert moves
    assert all(sum(target.replicas for target in each.after) > 0 for each in moves)
    assert {each.name for each in moves} & {"t0008", "t0033", "t0040"} == set()
    assert {"t0008", "t0033", "t0040"} <= {
        name.rpartition("/")[2]
        for group in found.left
        if group.reason.value == "Fails"
        for name in group.bindings
    }
