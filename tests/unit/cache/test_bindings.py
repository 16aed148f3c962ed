"""The indexes of the binding cache."""

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_scheduler.api.well_known import POLICY_ID_LABEL
from karmada_scheduler.testing import binding


def test_a_binding_is_found_by_its_group_until_it_leaves_the_group() -> None:
    cache = BindingCache()
    first = binding("a").groups(affinity="app=x", anti_affinity="tier=y").resource_version("1").build()
    cache.put(first)
    assert list(cache.in_affinity_group("app=x")) == [first]
    assert list(cache.in_anti_affinity_group("tier=y")) == [first]
    moved = binding("a").groups(affinity="app=z").resource_version("2").build()
    cache.put(moved)
    assert list(cache.in_affinity_group("app=x")) == []
    assert list(cache.in_anti_affinity_group("tier=y")) == []
    assert list(cache.in_affinity_group("app=z")) == [moved]


def test_a_binding_without_a_group_is_in_no_index() -> None:
    cache = BindingCache()
    cache.put(binding("a").groups().resource_version("1").build())
    cache.put(binding("b").resource_version("2").build())
    assert list(cache.in_affinity_group("")) == []


def test_a_deleted_binding_leaves_its_groups() -> None:
    cache = BindingCache()
    one = binding("a").groups(affinity="app=x").resource_version("1").build()
    cache.put(one)
    cache.remove(one.key, 2)
    assert list(cache.in_affinity_group("app=x")) == []
    assert not cache._index


def test_the_bindings_of_a_policy_are_in_the_order_in_which_they_got_its_id() -> None:
    cache = BindingCache()
    names = [f"b{number}" for number in (5, 1, 9, 0, 7, 3)]
    for version, name in enumerate(names, start=1):
        cache.put(binding(name).label(POLICY_ID_LABEL, "p1").resource_version(str(version)).build())
    assert [key.name for key in cache.claimed_by("p1")] == [f"{name}-deployment" for name in names]


def test_bindings_are_counted_by_kind() -> None:
    cache = BindingCache()
    for version, name in enumerate("aba", start=1):
        cache.put(binding(name).resource_version(str(version)).build())
    (first, _) = cache.keys()
    assert (cache.count("ResourceBinding"), cache.count("ClusterResourceBinding")) == (2, 0)
    cache.discard(first)
    assert cache.count("ResourceBinding") == 1
