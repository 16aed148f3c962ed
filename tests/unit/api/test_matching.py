from __future__ import annotations

import pytest

from karmada_scheduler.api.matching import (
    AllZonesSelector,
    FieldSelector,
    InvalidExpression,
    LabelSelector,
    Requirement,
    Taint,
    Toleration,
    is_label_key,
    is_label_value,
)
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity
from karmada_scheduler.testing import cluster

FOO_BAR = {"matchLabels": {"foo": "bar"}}
CLUSTER1 = (
    cluster("cluster1")
    .labels(foo="bar")
    .zones("zone1", "zone2", "zone3")
    .region("region1")
    .provider("provider1")
).build()


def field(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


ALL_ZONES = ("zone1", "zone2", "zone3")


@pytest.mark.parametrize(
    ("affinity", "matches"),
    [
        pytest.param(
            {"exclude": ["cluster1"], "clusterNames": ["cluster1"]}, False, id="excluded-though-named"
        ),
        pytest.param(
            {"exclude": ["cluster1"], "labelSelector": FOO_BAR}, False, id="excluded-though-labelled"
        ),
        pytest.param(
            {"exclude": ["cluster1"], "fieldSelector": field("zone", "In", *ALL_ZONES)},
            False,
            id="excluded-in-zone",
        ),
        pytest.param({"clusterNames": ["cluster1"]}, True, id="named"),
        pytest.param({"clusterNames": ["cluster2"]}, False, id="another-named"),
        pytest.param({"clusterNames": ["cluster1"], "labelSelector": FOO_BAR}, True, id="named-and-labelled"),
        pytest.param(
            {"clusterNames": ["cluster1"], "labelSelector": {"matchLabels": {"foo": "unmatched"}}},
            False,
            id="named-with-other-label",
        ),
        *(
            pytest.param(
                base | {"fieldSelector": field(key, operator, *values)},
                operator == "In",
                id=f"{name}-{key}-{operator}",
            )
            for name, base in (
                ("named", {"clusterNames": ["cluster1"]}),
                ("labelled", {"labelSelector": FOO_BAR}),
            )
            for key, values in (("zone", ALL_ZONES), ("provider", ("provider1",)), ("region", ("region1",)))
            for operator in ("In", "NotIn")
        ),
        pytest.param({"labelSelector": FOO_BAR}, True, id="labelled"),
        pytest.param({"labelSelector": {"matchLabels": {"foo": "unmatched"}}}, False, id="other-label"),
        pytest.param({}, True, id="empty-means-all"),
        pytest.param({"labelSelector": {"matchLabels": {"": "bar"}}}, False, id="invalid-label-key"),
        pytest.param({"labelSelector": {"matchExpressions": [{"key": ""}]}}, False, id="invalid-expression"),
        pytest.param({"fieldSelector": field("zone", "In", "zone2")}, True, id="one-of-its-zones"),
        pytest.param({"fieldSelector": field("region", "In", "region2")}, False, id="another-region"),
        pytest.param({"fieldSelector": field("provider", "In", "provider2")}, False, id="another-provider"),
        pytest.param({"fieldSelector": field("metadata.name", "In", "cluster1")}, False, id="unknown-field"),
        pytest.param(
            {"fieldSelector": field("metadata.name", "NotIn", "x")}, True, id="unknown-field-not-in"
        ),
        pytest.param(
            {
                "fieldSelector": field("zone", "In", *ALL_ZONES),
                "labelSelector": FOO_BAR,
                "clusterNames": ["cluster1"],
            },
            True,
            id="all-parts-right",
        ),
        pytest.param(
            {
                "fieldSelector": field("zone", "In", *ALL_ZONES),
                "labelSelector": FOO_BAR,
                "clusterNames": ["cluster2"],
            },
            False,
            id="all-parts-right-but-the-name",
        ),
        pytest.param({"fieldSelector": {}}, True, id="empty-field-selector"),
        pytest.param({"labelSelector": {}}, True, id="empty-label-selector"),
        pytest.param({"fieldSelector": field("zone", "NotIn")}, True, id="zone-not-in-nothing"),
        pytest.param({"fieldSelector": field("zone", "In")}, False, id="zone-in-nothing"),
        pytest.param(
            {"fieldSelector": field("region", "In", "region1", "bad value!")}, False, id="invalid-value"
        ),
        pytest.param(
            {"labelSelector": field("foo", "Gt", "1")}, False, id="greater-than-is-invalid-for-labels"
        ),
    ],
)
def test_an_affinity_matches_by_all_its_parts(affinity: dict[str, object], matches: bool) -> None:
    assert read_object(ClusterAffinity, affinity, "affinity").matches(CLUSTER1) is matches


def test_a_cluster_without_provider_matches_no_provider() -> None:
    bare = cluster("m1").build()
    not_in = ClusterAffinity(field_selector=FieldSelector((Requirement("provider", "NotIn", ("aws",)),)))
    within = ClusterAffinity(field_selector=FieldSelector((Requirement("provider", "In", ("aws",)),)))
    assert not_in.matches(bare)
    assert not within.matches(bare)


@pytest.mark.parametrize(
    ("operator", "values", "zones", "matches"),
    [
        ("In", ("foo",), (), False),
        ("In", ("foo",), ("foo", "bar"), True),
        ("In", ("foo", "bar"), ("foo", "bar"), True),
        ("NotIn", ("foo",), (), True),
        ("NotIn", ("foo",), ("foo", "bar"), False),
        ("Exists", (), (), False),
        ("DoesNotExist", (), (), True),
        ("Exists", ("ignored",), ("foo",), True),
        ("Gt", ("1",), ("2",), False),
        ("", (), ("foo",), False),
    ],
)
def test_zones_are_matched_as_a_list(
    operator: str, values: tuple[str, ...], zones: tuple[str, ...], matches: bool
) -> None:
    assert FieldSelector().matches_zones(Requirement("zone", operator, values), zones) is matches


@pytest.mark.parametrize(
    ("operator", "values", "zones", "matches"),
    [
        ("In", ("a", "b", "c"), ("a", "b"), True),
        ("In", ("a",), ("a", "b"), False),
        ("In", ("a",), (), False),
        ("NotIn", ("a",), ("a", "b"), False),
        ("NotIn", ("c",), ("a", "b"), True),
        ("Exists", (), ("a",), True),
        ("DoesNotExist", (), (), True),
        ("Gt", ("1",), ("2",), False),
    ],
)
def test_until_1_17_in_has_to_list_all_zones(
    operator: str, values: tuple[str, ...], zones: tuple[str, ...], matches: bool
) -> None:
    selector = AllZonesSelector((Requirement("zone", operator, values),))

    assert selector.matches(provider="", region="", zones=zones) is matches
    assert selector != FieldSelector(selector.match_expressions)


@pytest.mark.parametrize(
    ("requirement", "labels", "matches"),
    [
        pytest.param(Requirement("k", "In", ("a", "b")), {"k": "b"}, True, id="in"),
        pytest.param(Requirement("k", "In", ("a",)), {}, False, id="in-absent"),
        pytest.param(Requirement("k", "NotIn", ("a",)), {}, True, id="not-in-absent"),
        pytest.param(Requirement("k", "NotIn", ("a",)), {"k": "a"}, False, id="not-in-present"),
        pytest.param(Requirement("k", "Exists"), {"k": ""}, True, id="exists"),
        pytest.param(Requirement("k", "DoesNotExist"), {"k": ""}, False, id="does-not-exist"),
        pytest.param(Requirement("k", "Gt", ("1",)), {"k": "2"}, True, id="greater"),
        pytest.param(Requirement("k", "Lt", ("7",)), {"k": "7"}, False, id="less-is-strict"),
        pytest.param(Requirement("k", "Gt", ("1",)), {"k": "many"}, False, id="greater-of-no-number"),
        pytest.param(Requirement("k", "Gt", ("1",)), {}, False, id="greater-absent"),
        pytest.param(
            Requirement("k", "Gt", ("1",)), {"k": "0" * 5000 + "2"}, True, id="greater-of-many-zeros"
        ),
        pytest.param(Requirement("k", "Gt", ("1",)), {"k": "9" * 5000}, False, id="greater-of-many-digits"),
        pytest.param(Requirement("k", "Lt", ("1",)), {"k": "-02"}, True, id="less-below-zero"),
        pytest.param(Requirement("k", "Lt", ("1",)), {"k": "+000"}, True, id="less-of-nothing"),
    ],
)
def test_requirements_hold_by_operator(
    requirement: Requirement, labels: dict[str, str], matches: bool
) -> None:
    test = requirement.compile()
    assert test is not None
    assert test(labels) is matches


@pytest.mark.parametrize(
    "requirement",
    [
        pytest.param(Requirement("bad key", "Exists"), id="key"),
        pytest.param(Requirement("k", "In", ("bad value!",)), id="value"),
        pytest.param(Requirement("k", "In"), id="in-without-values"),
        pytest.param(Requirement("k", "NotIn"), id="not-in-without-values"),
        pytest.param(Requirement("k", "Exists", ("a",)), id="exists-with-values"),
        pytest.param(Requirement("k", "DoesNotExist", ("a",)), id="does-not-exist-with-values"),
        pytest.param(Requirement("k", "Gt", ("1", "2")), id="two-bounds"),
        pytest.param(Requirement("k", "Gt", ("many",)), id="bound-is-no-number"),
        pytest.param(Requirement("k", "Gt", (str(2**63),)), id="bound-beyond-64-bits"),
        pytest.param(Requirement("k", "Near", ("a",)), id="operator"),
    ],
)
def test_an_invalid_requirement_makes_the_selector_match_nothing(requirement: Requirement) -> None:
    assert requirement.compile() is None
    assert not LabelSelector((("foo", "bar"),), (requirement,)).matches({"foo": "bar", "k": "a"})
    assert not requirement.is_valid_for_labels
    invalid = InvalidExpression(("matchExpressions", 0), str(requirement))
    assert LabelSelector((("foo", "bar"),), (requirement,)).invalid == invalid
    fields = FieldSelector((Requirement("region", "Exists"), requirement))
    assert not fields.matches(provider="", region="eu", zones=())
    assert fields.invalid == InvalidExpression(("matchExpressions", 1), str(requirement))


@pytest.mark.parametrize(
    ("requirement", "valid"),
    [
        *((Requirement("region", operator, ("a",)), (True, True)) for operator in ("In", "NotIn")),
        *((Requirement("provider", operator), (True, True)) for operator in ("Exists", "DoesNotExist")),
        *((Requirement("region", operator, ("1",)), (False, True)) for operator in ("Gt", "Lt")),
        (Requirement("continent", "In", ("a",)), (True, False)),
        *((Requirement("zone", operator), (False, True)) for operator in ("In", "NotIn")),
        (Requirement("zone", "Exists", ("a",)), (False, True)),
        (Requirement("zone", "In", ("not a value",)), (False, True)),
        *((Requirement("zone", operator, ("1",)), (False, False)) for operator in ("Gt", "Prefix", "")),
    ],
)
def test_which_expressions_are_valid_depends_on_the_selector(
    requirement: Requirement, valid: tuple[bool, bool]
) -> None:
    assert (requirement.is_valid_for_labels, requirement.is_valid_for_fields) == valid
    invalid = InvalidExpression(("matchExpressions", 0), str(requirement))
    assert LabelSelector((), (requirement,)).invalid == (None if valid[0] else invalid)
    assert FieldSelector((requirement,)).invalid == (None if valid[1] else invalid)
    affinity = ClusterAffinity(LabelSelector((), (requirement,)), FieldSelector((requirement,)))
    fields = [
        name for name, is_valid in zip(("labelSelector", "fieldSelector"), valid, strict=True) if not is_valid
    ]
    assert affinity.invalid == (invalid.within((fields[0],), f"{fields[0]}: ") if fields else None)


@pytest.mark.parametrize(
    ("toleration", "valid"),
    [
        *((Toleration("k", operator), True) for operator in ("", "Equal", "Exists")),
        *((Toleration("k", operator), False) for operator in ("Gt", "Lt", "equal", "Like")),
        *((Toleration(effect=each), True) for each in ("", "NoSchedule", "NoExecute", "PreferNoSchedule")),
        *((Toleration(effect=each), False) for each in ("noExecute", "NoStart")),
    ],
)
def test_a_toleration_is_valid_by_its_operator_and_its_effect(toleration: Toleration, *, valid: bool) -> None:
    assert toleration.is_valid == valid


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("foo", True),
        ("example.com/foo", True),
        ("Foo_bar.baz-1", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("/foo", False),
        ("example.com/", False),
        ("a/b/c", False),
        ("Example.com/foo", False),
        ("-foo", False),
        ("x" * 254 + "/foo", False),
    ],
)
def test_label_keys_follow_kubernetes(key: str, valid: bool) -> None:
    assert is_label_key(key) is valid


@pytest.mark.parametrize(
    ("value", "valid"), [("", True), ("v-1", True), ("v!", False), ("v" * 64, False), ("-v", False)]
)
def test_label_values_follow_kubernetes(value: str, valid: bool) -> None:
    assert is_label_value(value) is valid


KEY1 = Taint("key1", "value1", "NoSchedule")
VALUELESS = Taint("k", "", "NoExecute")


@pytest.mark.parametrize(
    ("toleration", "key1", "valueless"),
    [
        pytest.param(Toleration("key1", "Equal", "value1", "NoSchedule"), True, False, id="equal"),
        pytest.param(Toleration("key1", "Exists"), True, False, id="exists"),
        pytest.param(Toleration("key1"), False, False, id="key-alone-means-empty-value"),
        pytest.param(Toleration(), False, True, id="empty-takes-any-taint-without-value"),
        pytest.param(Toleration(operator="Exists"), True, True, id="exists-alone-takes-all"),
        pytest.param(Toleration(operator="Exists", effect="NoExecute"), False, True, id="one-effect"),
        pytest.param(Toleration("key1", "Gt", "0"), False, False, id="greater-is-switched-off"),
        pytest.param(Toleration("key1", "Near", "value1"), False, False, id="unknown-operator"),
    ],
)
def test_a_toleration_matches_by_key_operator_value_and_effect(
    toleration: Toleration, key1: bool, valueless: bool
) -> None:
    assert (toleration.tolerates(KEY1), toleration.tolerates(VALUELESS)) == (key1, valueless)


@pytest.mark.parametrize(
    ("taint", "text"),
    [
        (Taint("key", "value", "NoSchedule"), "key=value:NoSchedule"),
        (Taint("key", "", "NoSchedule"), "key:NoSchedule"),
        (Taint("key", "value"), "key=value:"),
        (Taint("key"), "key"),
    ],
)
def test_taints_are_written_as_kubectl_writes_them(taint: Taint, text: str) -> None:
    assert str(taint) == text
