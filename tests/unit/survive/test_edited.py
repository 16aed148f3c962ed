"""What an edit changes: losses that end with it, and losses that it brings, in any figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pytest

from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.domains import CLUSTER, failure_domains
from karmada_advisor.whatif.survive.edited import EditedFleet, FleetEditor, PairFigures, changes, figures
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.edits import Edit, ObjectRef, PatchAction, Side
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.plan.asking import rules
from tests.unit.rebalance.proposing import settled

NOTHING: PairFigures = (False, 0, False)
ABC = [cluster(name) for name in "abc"]


def _web() -> BindingBuilder:
    return binding("web").replicas(2, cpu="1").dynamic_weight()


STATES: dict[str, tuple[BindingBuilder, dict[str, PairFigures]]] = {
    "only on a": (_web().names("a").on(a=2), {"a": (True, 2, True)}),
    "only on b": (_web().names("b").on(b=2), {"b": (True, 2, True)}),
    "on a, and returns on b": (_web().names("a", "b").on(a=2), {"a": (False, 0, True)}),
    "on both": (_web().names("a", "b").on(a=1, b=1), {}),
    "a copy on both": (
        binding("web").replicas(2, cpu="1").duplicated().names("a", "b").spread("cluster", 2, 2).on(a=2, b=2),
        {"a": (False, 2, False), "b": (False, 2, False)},
    ),
    "on b, where it may not be": (_web().names("a").on(a=1, b=1), {"a": (True, 2, False)}),
    "on no cluster": (_web().names("a"), {}),
}


def _built(name: str) -> Binding:
    return settled(STATES[name][0]).build()


def _losses(
    *bindings: Binding,
    clusters: Sequence[ClusterBuilder] = ABC,
    purge_modes: Mapping[BindingKey, str] | None = None,
) -> Losses:
    built = [each.build() for each in clusters]
    domains = failure_domains(built, [CLUSTER]).domains
    made = Losses(LossInputs(built, bindings, rules(), domains, purge_modes=purge_modes or {}))
    made.run()
    return made


@pytest.mark.parametrize("name", STATES)
def test_a_loss_has_the_figures_of_a_state(name: str) -> None:
    losses = _losses(_built(name))
    tallies = zip(losses.inputs.domains, losses.tallies[Loss.GONE], strict=True)
    found = {str(domain.name): figures(pair.classified) for domain, tally in tallies for pair in tally.pairs}
    assert {each: one for each, one in found.items() if one != NOTHING} == STATES[name][1]


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize(("before", "after"), list(product(STATES, repeat=2)))
def test_an_edit_cures_the_losses_that_end_with_it_and_makes_worse_those_that_it_brings(
    before: str, after: str, *, holds: bool
) -> None:
    other = binding("other").replicas(1, cpu="1").dynamic_weight().names("a").on(a=1)
    losses = _losses(_built(before), settled(other).build())
    [place] = [place for place, each in enumerate(losses.bindings) if each.key.name == "web-deployment"]
    cured, worse = changes(losses, losses.after({place: _built(after)}), Loss.GONE, holds=holds)

    names = [each.name for each in losses.inputs.domains]
    had, has = ([STATES[state][1].get(name, NOTHING) for name in names] for state in (before, after))
    failed, fails = ([missing > 0 or (holds and cut) for _, missing, cut in each] for each in (had, has))
    assert cured == {(n, place) for n in range(len(names)) if failed[n] and not fails[n]}
    assert worse == sum(any(x > y for x, y in zip(*pair, strict=True)) for pair in zip(has, had, strict=True))


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "begins"])
def test_an_edit_of_one_binding_decides_whether_another_one_fits_after_a_loss(*, ends: bool) -> None:
    """Both are on ``a`` and go to ``b`` then, which takes one; the first one may go to ``c`` instead."""

    def made(name: str, to: str) -> Binding:
        first = binding(name).replicas(1, cpu="1").static_weights(a=1, **{to: 1})
        return settled(first.names("a", to).on(a=1)).build()

    clusters = [cluster(name).capacity(cpu=cpu, pods=9) for name, cpu in (("a", 9), ("b", 1), ("c", 1))]
    states = [made("twin", "b"), made("twin", "c")]
    before, after = states if ends else reversed(states)
    losses = _losses(before, made("web", "b"), clusters=clusters)
    [place] = [place for place, each in enumerate(losses.bindings) if each.key == before.key]
    edited = losses.after({place: after})
    short = [
        {each.position for each in one.tallies[Loss.GONE][0].pairs if each.classified.missing}
        for one in (losses, edited)
    ]
    assert [len(each) for each in short] == ([1, 0] if ends else [0, 1])
    [failing] = short[not ends]
    expected = (frozenset({(0, failing)}), 0) if ends else (frozenset(), 1)
    assert changes(losses, edited, Loss.GONE) == expected
    assert bool(edited.tallies[Loss.GONE][0].overcommitted) is not ends


POLICY = PolicyRef("PropagationPolicy", "default", "one")
NAMES = ("spec", "placement", "clusterAffinity", "clusterNames")


def _claimed(made: BindingBuilder, policy: str = "one") -> BindingBuilder:
    """Return a binding of a policy, about which nothing asks for a decision."""
    named = settled(made).annotation("propagationpolicy.karmada.io/name", policy)
    return named.annotation("propagationpolicy.karmada.io/namespace", "default")


def _editor(*builders: BindingBuilder, clusters: Sequence[ClusterBuilder] = ABC) -> FleetEditor:
    bindings = [each.build() for each in builders]
    manifests = {each.key: made.manifest() for each, made in zip(bindings, builders, strict=True)}
    named = {each.build().name: each.manifest() for each in clusters}
    losses = _losses(*bindings, clusters=clusters)
    return FleetEditor(losses, {**manifests, **named}, None)


def _to(editor: FleetEditor, *names: str, rebalances: bool = False) -> EditedFleet | None:
    """Return the fleet after the policy of its first binding names other clusters."""
    first = editor.losses.bindings[0]
    change = Edit(Side.POLICY, "x", ObjectRef(*first.key), PatchAction.SET, NAMES, value=list(names))
    return editor.edited(POLICY, first, [change], rebalances=rebalances)


def _placed(fleet: EditedFleet) -> list[dict[str, int]]:
    return [{one.name: one.replicas for one in each.spec.clusters} for each in fleet.losses.bindings]


def test_an_edit_moves_all_bindings_of_its_policy_with_the_same_placement_and_no_others() -> None:
    fleet = _to(
        _editor(
            _claimed(_web().names("a").on(a=2)),
            _claimed(binding("twin").replicas(3, cpu="1").dynamic_weight().names("a").on(a=3)),
            _claimed(binding("outdated").replicas(1, cpu="1").duplicated().names("a").on(a=1)),
            _claimed(binding("foreign").replicas(2, cpu="1").dynamic_weight().names("a").on(a=2), "two"),
        ),
        "b",
    )
    assert fleet is not None
    assert _placed(fleet) == [{"b": 2}, {"b": 3}, {"a": 1}, {"a": 2}]
    assert (fleet.moves, fleet.starts) == (5, 5)
    assert [each.object.name for each in fleet.apply] == ["one"]


@pytest.mark.parametrize(
    ("on", "names", "figures_"), [(("a",), ("a", "b"), (0, 5)), (("a", "b"), ("a",), (5, 0))]
)
def test_replicas_that_stop_and_that_start_today_are_added_up_over_the_bindings(
    on: tuple[str, ...], names: tuple[str, ...], figures_: tuple[int, int]
) -> None:
    builders = [
        _claimed(binding(name).replicas(count).duplicated().names(*on).on(**dict.fromkeys(on, count)))
        for name, count in (("one", 2), ("two", 3))
    ]
    fleet = _to(_editor(*builders), *names)
    assert fleet is not None
    assert (fleet.moves, fleet.starts) == figures_


@pytest.mark.parametrize("names", [("gone",), ("b",)], ids=["both", "the second"])
def test_there_is_no_fleet_if_the_edit_leaves_a_binding_of_the_policy_without_a_place_today(
    names: tuple[str, ...],
) -> None:
    large = binding("large").replicas(9, cpu="1").dynamic_weight().names("a").on(a=9)
    clusters = [cluster("a").capacity(cpu=20), cluster("b").capacity(cpu=4)]
    assert (
        _to(_editor(_claimed(_web().names("a").on(a=2)), _claimed(large), clusters=clusters), *names) is None
    )


def test_there_is_none_either_if_a_binding_leaves_all_clusters_without_an_error() -> None:
    scaled = _claimed(binding("scaled").replicas(2, cpu="1").dynamic_weight().names("a").on(a=2))
    assert _to(_editor(_claimed(_web().names("a").on(a=2)), scaled.replicas(0, cpu="1")), "b") is None


@pytest.mark.parametrize("names", [("b",), ("gone",)])
def test_a_binding_that_is_on_no_cluster_is_not_decided_with_an_edit(names: tuple[str, ...]) -> None:
    unplaced = _claimed(binding("unplaced").replicas(9, cpu="1").dynamic_weight().names("a"))
    fleet = _to(_editor(unplaced), *names)
    assert fleet is not None
    assert (_placed(fleet), fleet.moves, fleet.starts) == ([{}], 0, 0)


def test_without_a_rebalance_a_binding_that_may_stay_where_it_is_does() -> None:
    editor = _editor(_claimed(_web().names("a").on(a=2)))
    for rebalances, expected in ((False, {"a": 2}), (True, {"a": 1, "b": 1})):
        fleet = _to(editor, "a", "b", rebalances=rebalances)
        assert fleet is not None
        assert _placed(fleet) == [expected]


def test_losses_after_an_edit_have_its_purge_mode() -> None:
    made = _web().names("a", "b").on(a=2).purge_mode("Directly")
    builder = _claimed(made)
    editor = _editor(builder)
    key = editor.losses.bindings[0].key
    editor = replace(editor, losses=_losses(*editor.losses.bindings, purge_modes={key: "Directly"}))
    path = ("spec", "failover", "cluster", "purgeMode")
    change = Edit(Side.POLICY, "x", ObjectRef(*key), PatchAction.SET, path, value="Gracefully")
    fleet = editor.edited(POLICY, editor.losses.bindings[0], [change])
    assert fleet is not None
    effects = [
        losses.tallies[Loss.GONE][0].pairs[0].classified.effect for losses in (editor.losses, fleet.losses)
    ]
    assert effects == [LossClass.BLOCKED, LossClass.MOVES]
    assert changes(editor.losses, fleet.losses, Loss.GONE) == (frozenset({(0, 0)}), 0)


@pytest.mark.parametrize("names", [("b",), ("gone",)])
def test_a_resumed_binding_has_today_the_decision_that_has_waited(names: tuple[str, ...]) -> None:
    editor = _editor(_claimed(_web().names("a").on(a=2)).names(*names).suspended())
    fleet = editor.resumed([editor.losses.bindings[0].key], ())
    if names == ("gone",):
        assert fleet is None
    else:
        assert fleet is not None
        assert (_placed(fleet), fleet.moves, fleet.starts) == ([{"b": 2}], 2, 2)
