"""The difference of two versions of an object, field by field, and how it is shown at any width."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.views.plan_words import change_lines, field_texts
from karmada_advisor.views.text import Style, lines
from karmada_advisor.whatif.plan.objects import ChangeShown, FieldChange
from karmada_advisor.whatif.plan.versions import changed_fields


def changed(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [str(each) for each in changed_fields({"spec": old}, {"spec": new})]


def selector(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": "shop", **more}


def test_a_mistyped_name_is_one_field() -> None:
    old, new = [selector("s12-many"), selector("other")], [selector("s12-mny"), selector("other")]
    assert changed({"resourceSelectors": old}, {"resourceSelectors": new}) == [
        "spec.resourceSelectors[0].name: s12-many -> s12-mny"
    ]


def test_an_item_that_moves_in_a_list_is_not_changed_but_the_order_is() -> None:
    old, new = [selector("a"), selector("b")], [selector("b"), selector("a")]
    [found] = changed({"resourceSelectors": old}, {"resourceSelectors": new})
    assert found.startswith("spec.resourceSelectors: [")


def test_the_order_of_affinity_terms_is_shown_by_their_names() -> None:
    old = [{"affinityName": "eu", "clusterNames": ["m1"]}, {"affinityName": "us", "clusterNames": ["m2"]}]
    assert changed({"clusterAffinities": old}, {"clusterAffinities": old[::-1]}) == [
        'spec.clusterAffinities: ["eu","us"] -> ["us","eu"]'
    ]


def test_an_item_before_the_others_is_added_and_the_others_stay() -> None:
    old, new = [selector("a")], [{"apiVersion": "v1", "kind": "ConfigMap"}, selector("a")]
    assert changed({"resourceSelectors": old}, {"resourceSelectors": new}) == [
        '+ spec.resourceSelectors[0]: {"apiVersion":"v1","kind":"ConfigMap"}'
    ]


def test_items_are_paired_by_their_names() -> None:
    old = [{"spreadByField": "region", "minGroups": 2}, {"spreadByField": "cluster", "minGroups": 1}]
    new = [{"spreadByField": "cluster", "minGroups": 1}, {"spreadByField": "region", "minGroups": 3}]
    assert changed({"spreadConstraints": old}, {"spreadConstraints": new}) == [
        "spec.spreadConstraints[region].minGroups: 2 -> 3"
    ]


def test_items_with_one_name_stand_by_their_index() -> None:
    old = [{"key": "region", "operator": "In", "values": ["eu"]}]
    new = [*old, {"key": "region", "operator": "NotIn", "values": ["us"]}]
    assert changed({"matchExpressions": old}, {"matchExpressions": new}) == [
        "+ spec.matchExpressions[1]: region NotIn [us]"
    ]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (["m1", "m2"], ["m2", "m3"], ["- spec.clusterNames: m1", "+ spec.clusterNames: m3"]),
        (["m1", "m1"], ["m1"], ["- spec.clusterNames: m1"]),
        (None, ["m1"], ["+ spec.clusterNames: m1"]),
        (["m1"], None, ["- spec.clusterNames: m1"]),
        (["m1", "m2"], ["m2", "m1"], ['spec.clusterNames: ["m1","m2"] -> ["m2","m1"]']),
    ],
)
def test_names_in_a_list_are_added_and_removed(old: Any, new: Any, shown: list[str]) -> None:
    assert changed({"clusterNames": old}, {"clusterNames": new}) == shown


def test_a_field_is_added_removed_or_gets_another_type() -> None:
    assert changed({"a": 1, "b": {"c": ""}}, {"b": {"c": "x"}, "d": False}) == [
        "- spec.a: 1",
        'spec.b.c: "" -> x',
        "+ spec.d: false",
    ]
    assert changed({"a": [1]}, {"a": {"b": 1}}) == ['spec.a: [1] -> {"b":1}']


def test_a_label_with_dots_stands_in_brackets() -> None:
    old = {"metadata": {"labels": {"a.io/b": "1"}}}
    [found] = changed_fields(old, {"metadata": {"labels": {"a.io/b": "2"}}})
    assert str(found) == "metadata.labels[a.io/b]: 1 -> 2"


def shown(change: ChangeShown, style: Style) -> list[str]:
    return [*lines(change_lines(change, style), style)]


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_the_difference_is_never_cut_off(width: int) -> None:
    long = "x" * 500
    field = FieldChange("spec.resourceSelectors[0].name", f"{long}-many-{long}", f"{long}-mny-{long}")
    text = "\n".join(shown(ChangeShown("~", "PropagationPolicy/p", "", (field,)), Style(width)))
    assert "-many-" in text
    assert "-mny-" in text
    assert "-many-" in field_texts(field)[1]
    assert long not in field_texts(field)


def test_many_fields_are_counted_and_shown_with_all() -> None:
    fields = tuple(FieldChange(f"spec.f{number}", number, -number) for number in range(1, 12))
    change = ChangeShown("~", "PropagationPolicy/p", "", fields)
    assert shown(change, Style())[-1] == "      and 3 more fields (--all)"
    assert shown(change, Style(unfolded=True))[-1] == "      spec.f11: 11 -> -11"


def test_a_hostile_value_cannot_leave_its_line() -> None:
    field = FieldChange("spec.a\x1b[31m", "x\n+ y", "\x1b[2J")
    text = "\n".join(shown(ChangeShown("~", "Cluster/m1", "", (field,)), Style()))
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2
