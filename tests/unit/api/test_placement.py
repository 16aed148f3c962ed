from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import pytest

from karmada_scheduler.api import placement as placement_module
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import Placement

FULL: dict[str, Any] = {
    "clusterAffinity": {
        "labelSelector": {
            "matchLabels": {"a": "1", "b": "2"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["x"]},
                {"key": "d", "operator": "Exists"},
            ],
        },
        "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["r"]}]},
        "clusterNames": ["m1"],
        "exclude": ["m2"],
    },
    "clusterAffinities": [
        {
            "affinityName": "primary",
            "clusterNames": ["m1"],
            "overflowAffinities": [{"affinityName": "more", "clusterNames": ["m2"]}],
        }
    ],
    "clusterTolerations": [
        {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 0}
    ],
    "spreadConstraints": [
        {"spreadByField": "cluster", "maxGroups": 3, "minGroups": 1},
        {"spreadByLabel": "l"},
    ],
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {
            "staticWeightList": [{"targetCluster": {"clusterNames": ["m1"]}, "weight": 2}],
            "dynamicWeight": "AvailableReplicas",
        },
    },
    "workloadAffinity": {"affinity": {"groupByLabelKey": "app"}, "antiAffinity": {"groupByLabelKey": "tier"}},
}


def test_a_placement_is_written_in_gos_key_order() -> None:
    written = Placement.from_manifest(dict(reversed(FULL.items()))).to_json()
    assert written == json.dumps(FULL, separators=(",", ":"))
    assert Placement.from_json(written) == Placement.from_manifest(FULL)


@pytest.mark.parametrize(
    "placement",
    [
        {},
        {"clusterAffinity": {}},
        {"replicaScheduling": {}},
        {"replicaScheduling": {"weightPreference": {}}},
        {"clusterAffinity": {"labelSelector": {}, "fieldSelector": {}}},
        {
            "replicaScheduling": {
                "weightPreference": {"staticWeightList": [{"targetCluster": {}, "weight": 0}]}
            }
        },
        {"clusterAffinities": [{"affinityName": ""}]},
        {"workloadAffinity": {}},
        {"clusterTolerations": [{}]},
        {"spreadConstraints": [{}]},
    ],
    ids=str,
)
def test_empty_objects_are_written(placement: dict[str, Any]) -> None:
    assert Placement.from_manifest(placement).to_json() == json.dumps(placement, separators=(",", ":"))


def test_characters_are_escaped_as_go_does() -> None:
    names = ["a<b>&c", 'quote"back\\', "tab\t", "\u2028\u2029", "ü", "\x01", "\x7f"]
    written = Placement.from_manifest({"clusterAffinity": {"clusterNames": names}}).to_json()
    assert written == (
        '{"clusterAffinity":{"clusterNames":["a\\u003cb\\u003e\\u0026c","quote\\"back\\\\","tab\\t",'
        '"\\u2028\\u2029","ü","\\u0001","\x7f"]}}'
    )
    assert (
        Placement.from_json(written).cluster_affinity
        == Placement.from_manifest(json.loads(written)).cluster_affinity
    )


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        pytest.param({"clusterTolerations": []}, {}, True, id="empty-list-is-missing"),
        pytest.param(
            {"clusterAffinity": {"clusterNames": []}}, {"clusterAffinity": {}}, True, id="empty-inner-list"
        ),
        pytest.param({"clusterAffinity": {}}, {}, False, id="empty-object-is-not-missing"),
        pytest.param({"clusterAffinity": None}, {}, True, id="null-is-missing"),
        pytest.param(
            {"spreadConstraints": [{"minGroups": 0}]}, {"spreadConstraints": [{}]}, True, id="zero-is-missing"
        ),
        pytest.param({"unknown": 1}, {}, True, id="unknown-fields-are-ignored"),
        pytest.param(
            {"clusterAffinity": {"clusterNames": ["a", "b"]}},
            {"clusterAffinity": {"clusterNames": ["b", "a"]}},
            False,
            id="order-counts",
        ),
        pytest.param(
            {"clusterAffinities": [{"affinityName": "a", "overflowAffinities": []}]},
            {"clusterAffinities": [{"affinityName": "a"}]},
            True,
            id="empty-overflow-list-is-missing",
        ),
        pytest.param(
            {"clusterTolerations": [{"tolerationSeconds": 0}]},
            {"clusterTolerations": [{}]},
            False,
            id="zero-seconds-are-not-forever",
        ),
    ],
)
def test_placements_are_compared_by_structure(
    one: dict[str, Any], other: dict[str, Any], equal: bool
) -> None:
    left, right = Placement.from_manifest(one), Placement.from_manifest(other)
    assert (left == right) is equal
    assert (hash(left) == hash(right)) is equal


def test_equal_placements_are_parsed_once() -> None:
    assert Placement.from_manifest(json.loads(json.dumps(FULL))) is Placement.from_manifest(FULL)


def test_null_reads_as_the_empty_placement() -> None:
    assert Placement.from_json("null") == Placement()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not JSON: "),
        ("[]", "expected an object, got list []"),
        ('{"clusterTolerations":{}}', "clusterTolerations: expected a list, got dict {}"),
        (
            '{"clusterAffinity":{"clusterNames":[1]}}',
            "clusterAffinity.clusterNames[0]: expected a string, got int 1",
        ),
        (
            '{"spreadConstraints":[{"minGroups":"2"}]}',
            "spreadConstraints[0].minGroups: expected an integer, got str '2'",
        ),
    ],
)
def test_an_invalid_annotation_is_an_error_with_the_reason(document: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Placement.from_json(document)
    assert str(caught.value).startswith(message)


def test_placements_that_were_applied_once_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parsed placement has several KB; 8,192 of them filled up with each change of a policy, by 50 MB."""
    monkeypatch.setattr(
        placement_module, "_cached", lambda content: read_object(Placement, json.loads(content), "")
    )
    applied = [
        weakref.ref(Placement.from_json(json.dumps({"clusterAffinity": {"clusterNames": [f"m{number}"]}})))
        for number in range(2000)
    ]
    gc.collect()
    assert sum(each() is not None for each in applied) <= 256
