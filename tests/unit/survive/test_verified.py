"""Which edits count as remedies: those that mend a whole group of failing bindings, and bring no loss that was not there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.domains import CLUSTER, REGION, failure_domains
from karmada_advisor.whatif.survive.edited import FleetEditor
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.least_capacity import LeastCapacity
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_advisor.whatif.survive.remedies import FoundRemedy, Remedies
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.plan.asking import rules
from tests.unit.rebalance.proposing import settled

AB = (cluster("a").region("x"), cluster("b").region("y"))


def _claimed(made: BindingBuilder) -> BindingBuilder:
    named = settled(made).annotation("propagationpolicy.karmada.io/name", "one")
    return named.annotation("propagationpolicy.karmada.io/namespace", "default")


def _losses(
    clusters: Sequence[ClusterBuilder],
    bindings: Sequence[BindingBuilder],
    kinds: Sequence[str] = (CLUSTER,),
    **purge_modes: str,
) -> Losses:
    built = [each.build() for each in clusters]
    made = [each.build() for each in bindings]
    modes = {each.key: purge_modes[each.spec.resource.name] for each in made if purge_modes}
    made_losses = Losses(
        LossInputs(built, made, rules(), failure_domains(built, kinds).domains, purge_modes=modes)
    )
    made_losses.run()
    return made_losses


def _remedies(
    clusters: Sequence[ClusterBuilder],
    bindings: Sequence[BindingBuilder],
    kinds: Sequence[str] = (CLUSTER,),
    *,
    holds: bool = False,
    **purge_modes: str,
) -> list[FoundRemedy]:
    losses = _losses(clusters, bindings, kinds, **purge_modes)
    manifests = {each.build().key: each.manifest() for each in bindings}
    named = {each.build().name: each.manifest() for each in clusters}
    editor = FleetEditor(losses, {**manifests, **named}, None)
    return Remedies(editor, Loss.GONE, holds=holds).find()[0]


def _texts(found: Sequence[FoundRemedy]) -> list[list[str]]:
    return [[each.text for each in one.edits] for one in found]


SPREAD = [
    ["spreadConstraints: cluster minGroups 2", "cluster maxGroups 2", "a WorkloadRebalancer of its workloads"]
]


def _moving(name: str, replicas: int) -> BindingBuilder:
    """Return a binding on one cluster, which is what its placement demands; it returns elsewhere."""
    made = binding(name).replicas(replicas, cpu="1").dynamic_weight()
    return _claimed(made.spread("cluster", 1, 1).on(a=replicas))


@pytest.mark.parametrize(
    ("kinds", "expected"), [([CLUSTER], SPREAD), ([CLUSTER, REGION], [])], ids=["clusters", "and regions"]
)
def test_an_edit_that_ends_losses_and_brings_another_is_no_remedy(
    kinds: list[str], expected: list[list[str]]
) -> None:
    """Two clusters end the interruption by losses of ``a``; then a loss of region ``y`` leaves too few of them."""
    clusters = (cluster("a").region("x"), cluster("b").region("y"), cluster("c").region("y"))
    found = _remedies(clusters, [_moving("web", 2)], kinds, holds=True)
    assert _texts(found)[:1] == expected


SPREAD_BY_REGION = [
    "spreadConstraints: region minGroups 2, maxGroups 3",
    "a WorkloadRebalancer of its workloads",
]


@pytest.mark.parametrize(("replicas", "expected"), [(2, [SPREAD_BY_REGION, *SPREAD]), (1, [])])
def test_an_edit_that_mends_some_bindings_of_a_group_is_no_remedy(
    replicas: int, expected: list[list[str]]
) -> None:
    """A single replica is on one cluster, whatever the constraint demands."""
    clusters = (*AB, cluster("c").region("z"))
    bindings = [_moving("web", 2), _moving("twin", replicas)]
    assert _texts(_remedies(clusters, bindings, holds=True))[:2] == expected


def test_a_remedy_cures_all_losses_that_end_with_it_also_those_of_other_groups() -> None:
    """The group is of clusters, and the losses of regions end as well."""
    clusters = (*AB, cluster("c").region("z"))
    [found, *_] = _remedies(clusters, [_moving("web", 2)], [CLUSTER, REGION], holds=True)
    domains = failure_domains([each.build() for each in clusters], [CLUSTER, REGION]).domains
    assert {(domains[number].kind, domains[number].name) for number, _ in found.cured} == {
        (CLUSTER, "a"),
        (REGION, "x"),
    }


@pytest.mark.parametrize("name", ["b", "gone"])
def test_all_suspended_bindings_of_a_group_are_resumed_if_each_has_a_place_then(name: str) -> None:
    bindings = [
        _claimed(binding("web").replicas(2, cpu="1").dynamic_weight().names("a", "b").on(a=2)).suspended(),
        _claimed(binding("twin").replicas(1, cpu="1").dynamic_weight().names("a", "b").on(a=1)).suspended(),
    ]
    if name == "gone":  # scaled meanwhile, beyond what there is
        bindings[1].replicas(5000, cpu="1")
    found = _remedies(AB, bindings)
    resumed = [sorted(each.object.name for each in one.apply) for one in found]
    assert resumed == ([["twin-deployment", "web-deployment"]] if name == "b" else [])


@pytest.mark.parametrize(
    ("on", "region", "needs_owner"),
    [({"a": 2}, "x", False), ({"a": 2}, "y", True), ({"a": 1, "c": 1}, "y", False)],
)
def test_a_remedy_after_which_a_workload_runs_in_a_region_of_its_own_needs_no_owner(
    on: dict[str, int], region: str, *, needs_owner: bool
) -> None:
    clusters = (cluster("a").region("x"), cluster("b").region(region), cluster("c").region("y"))
    names = ("a", "b") if len(on) == 1 else ("a", "c")
    made = binding("web").replicas(2, cpu="1").dynamic_weight().names(*names).on(**on)
    found = _remedies(clusters, [_claimed(made.tolerates(operator="Exists", effect="NoExecute"))])
    assert [(one.effect, one.needs_owner) for one in found] == [(LossClass.NOT_EVICTED, needs_owner)]


def test_a_region_to_which_it_would_go_without_the_remedy_needs_no_owner() -> None:
    web = _claimed(binding("web").replicas(2, cpu="1").dynamic_weight().on(a=2).purge_mode("Directly"))
    found = _remedies(AB, [web], web="Directly")
    assert [(one.effect, one.needs_owner) for one in found] == [(LossClass.BLOCKED, False)]


def test_what_suffices_for_several_losses_is_the_most_that_one_of_them_lacks() -> None:
    """Three cores for the workload on ``a``; two for both of those on ``b``, which has more bindings and comes later."""
    clusters = [cluster(name).capacity(cpu=cpu, pods=100) for name, cpu in (("a", 9), ("b", 9), ("spare", 0))]
    bindings = [
        _claimed(
            binding(name)
            .replicas(count, cpu="1")
            .static_weights(**{on: 1, "spare": 1})
            .names(on, "spare")
            .on(**{on: count})
        )
        for name, on, count in (("one", "a", 3), ("two", "b", 1), ("three", "b", 1))
    ]
    losses = _losses(clusters, bindings)
    found = LeastCapacity(losses, Loss.GONE).find()
    cured = [[losses.bindings[place].spec.resource.name for _, place in sorted(one.cured)] for one in found]
    assert dict(zip([each for [each] in _texts(found)], cured, strict=True)) == {
        "cpu +3 on spare": ["one", "two", "three"],
        "cpu +2 on spare": ["two", "three"],
    }
