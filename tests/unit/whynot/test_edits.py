"""Edits as RFC 6902 operations against objects as they were read."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada_advisor.whynot.found_edits import irreducible
from karmada_advisor.whynot.json_patch import compatible, operation, ordered, patched, pointer
from karmada_advisor.whynot.search import _priority
from karmada_scheduler.framework.edits import Edit, ObjectRef, PatchAction, Side
from tests.unit.whynot.json_patch import applied

CLUSTER = ObjectRef("Cluster", "", "m1")


def change(action: PatchAction, *path: str | int, value: Any = None) -> Edit:
    return Edit(Side.CLUSTER, "test", CLUSTER, action, path, value=value)


def test_a_value_that_exists_is_replaced() -> None:
    assert operation(change(PatchAction.SET, "spec", "region", value="r2"), {"spec": {"region": "r1"}}) == {
        "op": "replace",
        "path": "/spec/region",
        "value": "r2",
    }


def test_missing_objects_are_added_together_with_the_value() -> None:
    found = operation(
        change(PatchAction.SET, "metadata", "labels", "a/b", value="x"), {"metadata": {"labels": None}}
    )

    assert found == {"op": "add", "path": "/metadata/labels", "value": {"a/b": "x"}}


def test_an_item_is_appended_or_starts_the_list() -> None:
    add = change(PatchAction.APPEND, "spec", "taints", value={"key": "a"})

    assert operation(add, {"spec": {"taints": []}}) == {
        "op": "add",
        "path": "/spec/taints/-",
        "value": {"key": "a"},
    }
    assert operation(add, {"spec": {}}) == {"op": "add", "path": "/spec/taints", "value": [{"key": "a"}]}


def test_what_does_not_exist_is_not_removed() -> None:
    assert operation(change(PatchAction.REMOVE, "spec", "taints", 1), {"spec": {"taints": [{}]}}) is None


def test_an_index_in_a_list_that_is_too_short_cannot_be_set() -> None:
    assert (
        operation(change(PatchAction.SET, "spec", "taints", 1, "key", value="x"), {"spec": {"taints": [{}]}})
        is None
    )


def test_pointers_escape_slashes_and_tildes() -> None:
    assert pointer(("metadata", "labels", "a/b~c", 3)) == "/metadata/labels/a~1b~0c/3"


def test_two_edits_of_one_value_exclude_each_other() -> None:
    one, other = (
        change(PatchAction.SET, "spec", "region", value="a"),
        change(PatchAction.SET, "spec", "region", value="b"),
    )

    assert not compatible(one, other)


def test_the_edit_of_an_object_excludes_edits_inside_it() -> None:
    whole, inside = (
        change(PatchAction.REMOVE, "spec", "taints"),
        change(PatchAction.REMOVE, "spec", "taints", 0),
    )

    assert not compatible(whole, inside)
    assert compatible(inside, change(PatchAction.REMOVE, "spec", "taints", 1))
    assert compatible(inside, change(PatchAction.APPEND, "spec", "taints", value={}))


def test_equal_items_are_not_appended_twice() -> None:
    one = change(PatchAction.APPEND, "spec", "taints", value={"key": "a"})

    assert not compatible(one, change(PatchAction.APPEND, "spec", "taints", value={"key": "a"}))
    assert compatible(one, change(PatchAction.APPEND, "spec", "taints", value={"key": "b"}))


def test_items_are_removed_from_the_end_so_that_every_index_is_that_of_the_object_as_read() -> None:
    manifest = {"spec": {"taints": ["a", "b", "c"]}}
    edits = [change(PatchAction.REMOVE, "spec", "taints", index) for index in (0, 2)]

    found = patched(edits, {CLUSTER: manifest})

    assert found is not None
    assert found.manifests[CLUSTER] == {"spec": {"taints": ["b"]}}
    assert [each["path"] for _, each in found.operations] == ["/spec/taints/2", "/spec/taints/0"]


def test_the_object_as_read_is_not_changed() -> None:
    manifest = {"spec": {"taints": ["a"], "region": "r"}}
    before = copy.deepcopy(manifest)

    patched(
        [
            change(PatchAction.REMOVE, "spec", "taints", 0),
            change(PatchAction.SET, "spec", "region", value="q"),
        ],
        {CLUSTER: manifest},
    )

    assert manifest == before


_KEYS = st.sampled_from(["a", "b", "c/d", "~"])
_VALUES = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=10,
)
_PATHS = st.lists(_KEYS | st.integers(0, 2), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    manifest=st.dictionaries(_KEYS, _VALUES, max_size=4),
    paths=st.lists(st.tuples(st.sampled_from(list(PatchAction)), _PATHS), min_size=1, max_size=3),
)
def test_the_printed_patches_give_the_same_object_in_another_implementation(
    manifest: dict[str, Any], paths: list[tuple[PatchAction, list[str | int]]]
) -> None:
    edits: list[Edit] = []
    for action, path in paths:
        made = change(action, *path, value="x")
        if all(compatible(made, each) for each in edits):
            edits.append(made)

    found = patched(edits, {CLUSTER: manifest})

    if found is not None:
        assert applied(manifest, [each for _, each in found.operations]) == found.manifests[CLUSTER]


def test_costs_of_sets_do_not_depend_on_the_order_of_their_edits() -> None:
    edits = [SimpleNamespace(cost=cost) for cost in (0.1, 0.2, 0.3)]

    found = {_priority(cast("Any", each), 0.3) for each in itertools.permutations(edits)}

    assert len(found) == 1
    assert len({sum(one.cost for one in each) for each in itertools.permutations(edits)}) > 1


def test_which_of_two_changes_is_left_out_does_not_depend_on_their_order() -> None:
    either = [change(PatchAction.SET, "spec", name, value="1") for name in ("zone", "region")]

    def outcome(tried: Iterable[Edit]) -> Any:
        return SimpleNamespace(patched=SimpleNamespace(operations=[(each, None) for each in ordered(tried)]))

    objects: Any = SimpleNamespace(outcome=outcome)
    goal: Any = SimpleNamespace(holds=lambda found: bool(found.patched.operations))
    answers = [irreducible(each, objects, goal, lambda: True) for each in itertools.permutations(either)]

    assert [each.edits if each is not None else () for each in answers] == [(either[0],)] * 2
