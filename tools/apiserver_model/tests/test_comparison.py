"""The comparison of two servers: what counts as equal, and what does not."""

from __future__ import annotations

import copy

from tools.apiserver_model import Object
from tools.apiserver_model.comparison import DecodedResponse, Run, Step, compared, play
from tools.apiserver_model.random_requests import RandomRequests
from tools.apiserver_model.tests.client import WEB, binding


def response(version: int, uid: str, **changes: object) -> DecodedResponse:
    found = binding(uid=uid, resourceVersion=str(version), creationTimestamp=f"{version}")
    return DecodedResponse(200, {**found, **changes})


def lines(one: list[DecodedResponse], other: list[DecodedResponse]) -> list[str]:
    steps = [Step("GET", WEB)] * len(one)
    runs = [Run(each, [], prefix="s1-") for each in (one, other)]
    return compared(runs[0], runs[1], steps)


ONE = "00000000-0000-0000-0000-000000000001"
TWO = "00000000-0000-0000-0000-000000000002"


def test_other_uids_times_and_versions_are_equal_if_their_order_is() -> None:
    assert lines([response(5, ONE), response(9, TWO)], [response(101, "uid-7"), response(102, "uid-3")]) == []


def test_a_new_version_that_the_other_server_does_not_give_is_a_difference() -> None:
    (found,) = lines([response(5, ONE), response(9, ONE)], [response(101, "uid-1"), response(101, "uid-1")])
    assert "metadata.resourceVersion: 1, in the model 0" in found


def test_another_uid_than_before_is_a_difference() -> None:
    (found,) = lines([response(5, ONE), response(9, TWO)], [response(101, "uid-1"), response(102, "uid-1")])
    assert "metadata.uid" in found


def test_other_values_missing_fields_and_statuses_are_differences() -> None:
    (found,) = lines([response(5, ONE)], [response(101, "uid-1", spec={"replicas": 2})])
    assert "spec.replicas: 1, in the model 2" in found
    (found,) = lines([response(5, ONE, status={})], [response(101, "uid-1")])
    assert "status: only real" in found
    (found,) = lines([response(5, ONE)], [DecodedResponse(404, {"kind": "Status", "message": "gone"})])
    assert found.endswith("in the model 404 gone")


def test_fields_that_only_the_real_server_has_are_defaults_of_some_kinds() -> None:
    def of(kind: str, spec: Object) -> DecodedResponse:
        return DecodedResponse(200, {"kind": kind, "metadata": {"resourceVersion": "5"}, "spec": spec})

    real = of("Deployment", {"replicas": 1, "paused": False})
    assert lines([real], [of("Deployment", {"replicas": 1})]) == []
    assert len(lines([real], [of("Deployment", {"replicas": 2})])) == 1
    assert len(lines([of("Lease", {"a": 1, "b": 2})], [of("Lease", {"a": 1})])) == 1


def test_a_missing_event_is_a_difference() -> None:
    event = {"type": "ADDED", "object": response(5, ONE).body}
    real, modelled = Run([], [event], prefix="s1-"), Run([], [], prefix="s1-")
    assert compared(real, modelled, []) == ["1 events, in the model 0"]


def test_steps_refer_to_earlier_responses() -> None:
    sent = []

    def send(step: Step) -> DecodedResponse:
        sent.append(copy.deepcopy(step))
        return response(len(sent), ONE)

    reference = {"$object": 0, "patch": {"metadata": {"uid": None}, "spec": {"replicas": 4}}}
    play(
        [
            Step("GET", WEB),
            Step("PATCH", WEB, body={"metadata": {"resourceVersion": "$version:0", "uid": "$uid:0"}}),
            Step("PUT", WEB, body=reference),
        ],
        send,
    )
    assert sent[1].body == {"metadata": {"resourceVersion": "1", "uid": ONE}}
    assert sent[2].body["spec"] == {"replicas": 4}
    assert "uid" not in sent[2].body["metadata"]


def test_a_number_always_gives_the_same_sequence() -> None:
    assert RandomRequests(7).steps == RandomRequests(7).steps
    assert RandomRequests(7).steps != RandomRequests(8).steps
