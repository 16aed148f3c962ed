"""The index of bindings: after any changes it is the one that is built from scratch, and it selects what the filters name."""

from __future__ import annotations

import random

import pytest

from karmada_advisor.state.model import StateName
from karmada_advisor.state.reading import Facts
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.indexed_binding import Filter, IndexedBinding, RowCursor, indexed
from karmada_advisor.web.request_query import AskedPage, bindings_page
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.testing import BindingBuilder, binding

DONE = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "scheduled"}
FAILED = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit"}
FILTERS = (
    Filter(),
    Filter(text="WEB-1"),
    Filter(text="e"),
    Filter(text="\n"),
    Filter(text="b/", namespace="b"),
    Filter(namespace="a", state="placed"),
    Filter(state="not placed"),
    Filter(state="no such state"),
    Filter(policy="gold"),
    Filter(policy="a/gold", state="placed"),
    Filter(reason="NoClusterFit"),
    Filter(cluster="m1"),
    Filter(cluster="m2", namespace="b", text="web-2"),
    Filter(cluster="nowhere"),
)


def _made(dice: random.Random, name: str) -> BindingBuilder:
    made = binding(name, namespace=dice.choice(["a", "b", "c", ""])).replicas(3)
    made.resource_version(str(dice.randrange(10**6)))
    if dice.random() < 0.7:
        made.on(**{each: dice.randint(1, 3) for each in dice.sample(["m1", "m2", "m3"], dice.randint(1, 3))})
    if dice.random() < 0.5:
        made.annotation("propagationpolicy.karmada.io/name", dice.choice(["gold", "tin"]))
        made.annotation("propagationpolicy.karmada.io/namespace", "a")
    if dice.random() < 0.5:
        made.last_scheduled(f"2026-11-22T{dice.randrange(10, 24)}:00:00Z")
    if dice.random() < 0.3:
        clusters = [{"name": dice.choice(["m1", "m2"]), "replicas": 1}]
        made.manifest()["spec"]["requiredBy"] = [{"namespace": "a", "name": "app", "clusters": clusters}]
    made.scheduler(dice.choice(["", "my-scheduler"]))
    condition = dice.choice([DONE, FAILED | {"message": dice.choice(["one", "two"])}])
    return made.condition(**condition).observed_generation(1)


def _one(dice: random.Random) -> IndexedBinding:
    made = _made(dice, f"web-{dice.randrange(12)}")
    return indexed(made.build(), made.manifest(), Facts())


def _shown(index: BindingIndex) -> dict[str, object]:
    """Return everything that an index says, its number of changes aside."""
    return {
        "rows": list(index.rows),
        "namespaces": {each: list(index.of_namespace(each)) for each in ("", *index.namespaces)},
        "counts": {each: +index.counts(each) for each in ("", *index.namespaces)},
        "replicas": {each: index.replicas(each) for each in ("", *index.namespaces)},
        "schedulers": dict(index.by_scheduler),
        "stamps": {each: index.stamp(each) for each in ("", *index.namespaces)},
        "clusters": {each: (list(index.on(each)), index.replicas_on(each)) for each in ("m1", "m2", "m3")},
        "groups": dict(index.groups),
        "newest": index.newest(5),
        "filters": [list(index.select(each)) for each in FILTERS],
    }


@pytest.mark.parametrize("seed", range(8))
def test_an_index_after_any_changes_equals_one_that_is_built_from_scratch(seed: int) -> None:
    dice = random.Random(seed)
    index, kept = BindingIndex(_first(dice)), dict[BindingKey, IndexedBinding]()
    kept = {each.key: each for each in index.rows}
    for _ in range(60):
        if kept and dice.random() < 0.4:
            key = dice.choice(list(kept))
            index.remove(key)
            del kept[key]
        else:
            row = _one(dice)
            index.put(row)
            kept[row.key] = row
        assert _shown(index) == _shown(BindingIndex(kept.values()))
        assert len(index) == len(kept)


def _first(dice: random.Random) -> list[IndexedBinding]:
    return list({row.key: row for row in (_one(dice) for _ in range(10))}.values())


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_a_selection_has_those_for_which_the_filter_holds_in_the_order_of_lists(wanted: Filter) -> None:
    dice = random.Random("select")
    rows = {row.key: row for row in (_one(dice) for _ in range(200))}
    index = BindingIndex(rows.values())
    assert list(index.select(wanted)) == sorted(row for row in rows.values() if wanted.holds(row))


def test_a_copy_that_another_binding_requires_is_on_its_cluster() -> None:
    made = binding("settings", namespace="a").placement(None)
    made.manifest()["spec"]["requiredBy"] = [{"namespace": "a", "name": "app", "clusters": [{"name": "m1"}]}]
    row = indexed(made.build(), made.manifest(), Facts())
    index = BindingIndex([row])

    assert (list(index.on("m1")), list(index.select(Filter(cluster="m1")))) == ([row], [row])
    assert not list(index.on("m2"))


def test_a_change_that_concerns_no_other_namespace_leaves_their_stamps() -> None:
    made = [binding("web", namespace=each).resource_version("1") for each in ("a", "b")]
    index = BindingIndex(indexed(each.build(), each.manifest(), Facts()) for each in made)
    before = {each: index.stamp(each) for each in ("", "a", "b")}
    made[0].resource_version("2")
    index.put(indexed(made[0].build(), made[0].manifest(), Facts()))
    assert index.stamp("b") == before["b"]
    assert (index.stamp("a") != before["a"], index.stamp() != before[""]) == (True, True)


def test_a_binding_of_which_json_has_no_form_has_a_stamp_all_the_same() -> None:
    made = binding("web")
    rows = [
        indexed(made.build(), {**made.manifest(), "x": value}, Facts()) for value in (2**70, "\ud800", {1: 2})
    ]
    assert len({row.stamp for row in rows}) == 3


def test_a_page_begins_after_a_cursor_whose_binding_has_moved_to_another_state() -> None:
    made = [binding(f"web-{number}").replicas(1) for number in range(4)]
    index = BindingIndex(indexed(each.build(), each.manifest(), Facts()) for each in made)
    first = bindings_page(index.rows, AskedPage(limit=2))
    moved = made[1].on(m1=1).condition(**DONE).observed_generation(1)
    index.put(indexed(moved.build(), moved.manifest(), Facts()))
    rest = bindings_page(index.rows, AskedPage(after=first.after, limit=2))
    assert [row.name for row in rest.rows] == ["web-2-deployment", "web-3-deployment"]
    assert [row.state for row in index.rows][-1] is StateName.PLACED
    assert RowCursor.parse(str(index.rows[0].cursor)) == index.rows[0].cursor
