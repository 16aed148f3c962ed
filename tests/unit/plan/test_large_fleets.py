"""Plans of fleets that are too large to decide about each binding: equal questions, and rebalances for which there is no time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from karmada_advisor.views.plan_text import plan_text
from karmada_advisor.views.text import Style
from karmada_advisor.whatif.plan import decide
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.model import Effect, Plan
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, cluster
from tests.unit.plan.asking import effects, gate, plan_of
from tests.unit.plan.fleet import bindings, clusters, placed
from tests.unit.plan.test_classes import policy_p, settled, web

Counted = dict[str, int]


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Return how often the core decides about each workload."""
    found: Counted = {}
    original = DryRun.decide

    def counting(self: DryRun, binding: Binding, *rest: object) -> object:
        name = binding.spec.resource.name
        found[name] = found.get(name, 0) + 1
        return original(self, binding, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(DryRun, "decide", counting)
    return found


def two() -> list[ClusterBuilder]:
    return [cluster("m1").capacity(cpu=100), cluster("m2").capacity(cpu=100)]


def without_m1(draft: Draft) -> None:
    draft.without("m1")


def test_bindings_that_differ_in_their_names_only_are_decided_once(decided: Counted) -> None:
    plan = plan_of(two(), [settled(web(name), m1=4) for name in "abc"], without_m1)

    assert effects(plan) == dict.fromkeys("abc", Effect.MOVED)
    assert decided == {"a": 1}


@pytest.mark.parametrize(
    "other",
    [
        settled(web("b", 5), m1=5),
        settled(web("b"), m1=3, m2=1),
        settled(web("b", clusterAffinity={"exclude": ["m9"]}), m1=4),
        settled(web("b"), m1=4).observing("first"),
    ],
    ids=["replicas", "clusters", "placement", "affinity term"],
)
def test_bindings_that_differ_in_what_a_decision_reads_are_decided_each(
    decided: Counted, other: BindingBuilder
) -> None:
    plan_of(two(), [settled(web("a"), m1=4), other], without_m1)

    assert decided == {"a": 1, "b": 1}


def test_decisions_that_see_each_other_are_made_each(decided: Counted) -> None:
    plan = plan_of(
        [cluster("m1").capacity(cpu=9), cluster("m2").capacity(cpu=5)],
        [settled(web(name), m1=4) for name in "ab"],
        without_m1,
        gates=gate("SchedulingOvercommitProtection"),
    )

    assert effects(plan) == {"a": Effect.MOVED, "b": Effect.STUCK}
    assert decided["b"] >= 1


@pytest.mark.parametrize(
    "change",
    [
        lambda draft: draft.without("us-east-1"),
        lambda draft: draft.cordon("eu-west-2"),
        lambda draft: draft.add("new", "us-east-1"),
        lambda draft: draft.room("ap-south-1", "cpu=+900"),
    ],
    ids=["without", "cordon", "add", "room"],
)
def test_a_plan_is_that_of_decisions_about_every_binding(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Draft], None]
) -> None:
    fleet = clusters(), placed(bindings(), clusters())
    shared = plan_of(*fleet, change)
    monkeypatch.setattr(decide, "question", lambda binding: binding.key)

    assert plan_of(*fleet, change) == shared


class Clock:
    """Returns shares of the time that is left, the last one again and again."""

    def __init__(self, *shares: float) -> None:
        self._shares = list(shares)

    def __call__(self) -> float:
        return self._shares.pop(0) if len(self._shares) > 1 else self._shares[0]


def uncordoned(*shares: float) -> Plan:
    """Return what an uncordon does to three bindings that a rebalance would move."""
    closed = cluster("m2").capacity(cpu=100).taint("cluster.karmada.io/unschedulable:NoSchedule")
    stored = [settled(web(name, 40), m1=40) for name in "abc"]
    return plan_of(
        [cluster("m1").capacity(cpu=100), closed],
        stored,
        lambda draft: draft.uncordon("m2"),
        time_left=Clock(*shares),
    )


def test_with_enough_time_every_rebalance_is_decided() -> None:
    plan = uncordoned(1.0)

    assert effects(plan) == dict.fromkeys("abc", Effect.LATENT)
    assert plan.after_rebalance == {"unchanged": 0, "moved": 3, "stuck": 0}
    assert not [note for note in plan.notes if "not judged" in note]


def test_rebalances_for_which_there_is_no_time_are_counted_and_named() -> None:
    plan = uncordoned(1.0, 0.39)

    assert effects(plan) == {"a": Effect.LATENT}
    assert plan.after_rebalance == {"unchanged": 0, "moved": 1, "stuck": 0, "not-judged": 2}
    assert "not judged: whether a rebalance would move 2 bindings, because there was no time" in plan.notes
    text = plan_text(plan, Style(120))
    assert "not judged" in text
    assert "1 moves at the next rebalance; 2 are not judged for the next rebalance." in text


def test_a_move_that_is_not_compared_with_the_one_without_the_change_is_not_judged() -> None:
    plan = uncordoned(1.0, 1.0, 1.0, 0.0)

    assert effects(plan) == {}
    assert plan.after_rebalance == {"unchanged": 0, "moved": 0, "stuck": 0, "not-judged": 3}
    assert "No changes. 3 bindings keep their placement; not judged: whether" in plan_text(plan, Style(120))


def test_what_a_rebalance_cannot_move_needs_no_time() -> None:
    plan = plan_of(two(), [settled(web("a"), m1=4)], lambda draft: draft.cordon("m2"), time_left=lambda: 0.0)

    assert plan.after_rebalance == {"unchanged": 1, "moved": 0, "stuck": 0}


def test_what_the_change_moves_at_once_is_decided_without_any_time_left() -> None:
    plan = plan_of(
        two(),
        [settled(web("a"), m1=4), settled(web("b"), m2=4)],
        lambda draft: draft.put(policy_p(clusterAffinity={"clusterNames": ["m2"]})),
        policies=[policy_p()],
        time_left=lambda: 0.0,
    )

    assert effects(plan) == {"a": Effect.MOVED}
    assert plan.after_rebalance == {"unchanged": 0, "moved": 0, "stuck": 0, "not-judged": 1}
