"""The failure domains of a fleet."""

from __future__ import annotations

from karmada_advisor.whatif.survive.domains import failure_domains, joined_twice
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.testing import ClusterBuilder, cluster

FLEET = [
    cluster("a").region("eu").zones("eu-1").provider("alpha").label("rack", "r1"),
    cluster("b").region("eu").zones("eu-1", "eu-2").provider("alpha").label("rack", "r2"),
    cluster("c").region("us").zones("us-1").provider("alpha"),
]


def _built(*made: ClusterBuilder) -> list[Cluster]:
    return [each.build() for each in made]


def _shown(*kinds: str, spanning_is_lost: bool = False) -> dict[str, tuple[str, ...]]:
    found = failure_domains(_built(*FLEET), kinds, spanning_is_lost=spanning_is_lost)
    return {str(each): each.clusters for each in found.domains}


def test_a_kind_with_one_value_is_no_domain_unless_it_is_asked_for() -> None:
    assert "provider alpha" not in _shown()
    assert _shown("provider") == {"provider alpha": ("a", "b", "c")}
    assert {"cluster a", "region eu", "zone eu-1"} <= _shown().keys()


def test_a_cluster_in_several_zones_is_lost_with_none_of_them_unless_that_is_asked_for() -> None:
    [zone, *_] = failure_domains(_built(*FLEET), ["zone"]).domains
    assert (zone.name, zone.clusters, zone.partly) == ("eu-1", ("a",), ("b",))
    assert _shown("zone") == {"zone eu-1": ("a",), "zone us-1": ("c",)}
    assert _shown("zone", spanning_is_lost=True) == {
        "zone eu-1": ("a", "b"),
        "zone eu-2": ("b",),
        "zone us-1": ("c",),
    }


def test_clusters_without_the_label_are_counted_and_in_no_domain() -> None:
    found = failure_domains(_built(*FLEET), ["label=rack"])
    assert [str(each) for each in found.domains] == ["label=rack r1", "label=rack r2"]
    assert found.without == {"label=rack": 1}


def test_a_cluster_that_is_being_deleted_is_in_no_domain() -> None:
    found = failure_domains(
        _built(*FLEET[:2], cluster("gone").region("eu").deleting()), ["cluster", "region"]
    )
    assert found.deleting == ("gone",)
    assert all("gone" not in each.clusters for each in found.domains)


def test_clusters_that_are_one_member_cluster_are_lost_together() -> None:
    made = [cluster("a").region("eu"), cluster("b").region("us"), cluster("c").region("us"), cluster("d")]
    for each, field, value in (
        (0, "id", "1"),
        (1, "id", "1"),
        (1, "apiEndpoint", "x"),
        (2, "apiEndpoint", "x"),
    ):
        made[each].manifest().setdefault("spec", {})[field] = value
    same = joined_twice([each.manifest() for each in made])
    assert same == dict.fromkeys("abc", frozenset("abc"))
    found = failure_domains(_built(*made), ["cluster", "region"], same=same).domains
    assert {str(each): "".join(each.clusters) for each in found} == {
        "cluster a": "abc",
        "cluster d": "d",
        "region eu": "abc",
        "region us": "abc",
    }
