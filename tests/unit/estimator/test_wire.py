"""The wire format: field numbers, both forms of every Kubernetes object, quantities as text."""

import time
from typing import Any

import pytest

from karmada_pyscheduler.estimator import wire
from karmada_pyscheduler.estimator.pb import estimator_pb2 as pb
from karmada_pyscheduler.estimator.wire import replicas_request, sets_request, written
from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements

REQUESTS = ReplicaRequirements(
    {"cpu": quantity.parse("500m")},
    node_claim={
        "hardNodeAffinity": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
                    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                }
            ]
        },
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
            {"key": "k", "value": "v"},
        ],
    },
    namespace="shop",
    priority_class_name="high",
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        # What Go prints for the same text (k8s.io/apimachinery v0.35.3).
        *((text, text) for text in "0 1 1500m 1Gi 1536Mi 1000Ki 1023 1000001 1Ki 1025 5e3 100n -5 -2Gi".split()),
        ("2000m", "2"),
        ("1000", "1k"),
        ("100000", "100k"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.001Ki", "1024m"),
        ("2048", "2048"),
        ("12e4", "120e3"),
        ("1e1", "10"),
        ("1e-1", "100e-3"),
        ("0.1", "100m"),
        ("1e20", "100e18"),
        ("8Ei", "9223372036854775807"),
    ],
)  # fmt: skip
def test_quantities_are_written_as_kubernetes_writes_them(text: str, canonical: str) -> None:
    assert written(quantity.parse(text)) == canonical


def test_a_request_for_replicas_has_upstreams_fields() -> None:
    request = pb.MaxAvailableReplicasRequest.FromString(replicas_request(REQUESTS).encode("m1", ()))
    assert request.cluster == "m1"
    wanted = request.replica_requirements
    assert (wanted.namespace, wanted.priority_class_name) == ("shop", "high")
    assert wanted.resource_request["cpu"].string == "500m"
    assert pb.Quantity.FromString(wanted.resource_request_bytes["cpu"]).string == "500m"
    assert dict(wanted.node_claim.node_selector) == {"disk": "ssd"}


def test_node_claims_are_encoded_in_both_forms() -> None:
    request = pb.MaxAvailableReplicasRequest.FromString(replicas_request(REQUESTS).encode("m1", ()))
    claim = request.replica_requirements.node_claim
    assert pb.NodeSelector.FromString(claim.node_affinity_bytes) == claim.node_affinity
    (term,) = claim.node_affinity.node_selector_terms
    assert [(each.key, each.operator, list(each.values)) for each in term.match_expressions] == [
        ("zone", "In", ["a", "b"])
    ]
    assert [each.key for each in term.match_fields] == ["metadata.name"]
    assert [pb.Toleration.FromString(each) for each in claim.tolerations_bytes] == list(claim.tolerations)
    seconds = [(each.HasField("toleration_seconds"), each.value) for each in claim.tolerations]
    assert seconds == [(True, ""), (False, "v")]


def test_without_requirements_the_field_is_missing() -> None:
    request = pb.MaxAvailableReplicasRequest.FromString(replicas_request(None).encode("m1", ()))
    assert not request.HasField("replica_requirements")
    request = pb.MaxAvailableReplicasRequest.FromString(
        replicas_request(ReplicaRequirements()).encode("m1", ())
    )
    assert request.HasField("replica_requirements")
    assert not request.replica_requirements.HasField("node_claim")


def test_a_request_for_sets_has_all_components_and_the_namespace() -> None:
    question = sets_request([Component("jm", 1, REQUESTS), Component("tm", 3)], "shop")
    request = pb.MaxAvailableComponentSetsRequest.FromString(question.encode("m1", ()))
    assert (request.cluster, request.namespace) == ("m1", "shop")
    first, second = request.components
    assert (first.name, first.replicas, first.replica_requirements.priority_class_name) == ("jm", 1, "high")
    assert (second.name, second.replicas) == ("tm", 3)
    assert not second.HasField("replica_requirements")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_assumed_workloads_are_encoded_in_order(count: int) -> None:
    """Case A2."""
    assumed = [AssumedWorkload(f"ns{n}", (Component(f"c{n}", n, REQUESTS),)) for n in range(count)]
    requests: list[Any] = [
        pb.MaxAvailableReplicasRequest.FromString(replicas_request(REQUESTS).encode("m1", assumed)),
        pb.MaxAvailableComponentSetsRequest.FromString(sets_request((), "ns").encode("m1", assumed)),
    ]
    for request in requests:
        assert [(each.namespace, each.components[0].name) for each in request.assumed_workloads] == [
            (f"ns{n}", f"c{n}") for n in range(count)
        ]


def test_encoded_workloads_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_ENCODED", 2)
    monkeypatch.setattr(wire, "_encoded", {})
    assumed = [AssumedWorkload(f"ns{n}", (Component("c", n, REQUESTS),)) for n in range(5)]
    for number, each in enumerate(assumed):
        replicas_request(REQUESTS).encode("m1", [each])
        assert len(wire._encoded) == 1 + number % 2


def test_requests_are_encoded_as_upstream_does() -> None:
    """Every byte by hand: a field number is what both sides have to agree on."""
    question = replicas_request(ReplicaRequirements({"cpu": quantity.parse("1")}, namespace="n"))
    entry = b"\x0a\x03cpu\x12\x03\x0a\x011"  # key "cpu", value Quantity{string: "1"}, typed or as bytes alike
    requirements = b"\x12\x0a" + entry + b"\x1a\x01n" + b"\x2a\x0a" + entry
    expected = b"\x0a\x02m1" + b"\x12" + bytes([len(requirements)]) + requirements
    assert question.encode("m1", ()) == expected


def test_equal_requests_have_equal_encodings() -> None:
    one = ReplicaRequirements({"cpu": quantity.parse("1"), "memory": quantity.parse("1Gi")})
    other = ReplicaRequirements({"memory": quantity.parse("1Gi"), "cpu": quantity.parse("1")})
    assert replicas_request(one) == replicas_request(other)


@pytest.mark.parametrize("answer", [0, 12, -1, 2**31 - 1])
def test_responses_are_decoded(answer: int) -> None:
    replicas = pb.MaxAvailableReplicasResponse(max_replicas=answer).SerializeToString()
    sets = pb.MaxAvailableComponentSetsResponse(max_sets=answer).SerializeToString()
    assert replicas_request(None).decode(replicas) == answer
    assert sets_request((), "").decode(sets) == answer


def test_an_unreadable_response_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        replicas_request(None).decode(b"\xff\xff\xff")


def test_the_error_for_an_invalid_node_claim_names_it() -> None:
    with pytest.raises(ValueError, match="nodeClaim"):
        replicas_request(ReplicaRequirements(node_claim={"tolerations": [{"key": 5}]}))
    with pytest.raises(ValueError, match="nodeClaim"):
        replicas_request(ReplicaRequirements(node_claim={"hardNodeAffinity": "x"}))


@pytest.mark.parametrize("answer", [-2, -(2**31)])
def test_a_number_below_minus_one_is_an_error(answer: int) -> None:
    replicas = pb.MaxAvailableReplicasResponse(max_replicas=answer).SerializeToString()
    sets = pb.MaxAvailableComponentSetsResponse(max_sets=answer).SerializeToString()
    for question, payload in ((replicas_request(None), replicas), (sets_request((), ""), sets)):
        with pytest.raises(ValueError, match=f"it answered {answer}, which is no number of replicas"):
            question.decode(payload)


def test_a_number_of_thousands_of_digits_is_written_fast() -> None:
    begin = time.process_time()
    assert written(quantity.parse("1234567890123456789e5000")) == "123456789012345678900e4998"
    assert time.process_time() - begin < 0.05
