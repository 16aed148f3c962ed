"""The check of claims: its cases, and that it sees what differs."""

from __future__ import annotations

import copy

import pytest

from karmada_advisor.claims.model import Claims, Event
from tests.checks.claims.cases import Case, CaseGenerator
from tests.checks.claims.compare import Ids, differences, events_of, is_alternative, options, predicted
from tools.manifests import Manifest

GATES = {"PropagationPolicyPreemption": True}


def claims_of(case: Case) -> Claims:
    events: list[Event] = [
        event for move in case.setup for event in events_of(move, [_stored(each) for each in move.objects])
    ]
    return predicted(([], [], []), events, options(GATES))


def _stored(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "uid": "uid"}}


@pytest.fixture(scope="module")
def claims() -> Claims:
    """The claims of the first case with two bindings."""
    for number in range(100):
        found = claims_of(CaseGenerator(1, number).case())
        if sum(each.binding_after is not None for each in found.templates.values()) > 1:
            return found
    raise AssertionError("no case has two bindings")


def as_on_the_server(claims: Claims) -> tuple[list[Manifest], list[Manifest]]:
    """Return templates and bindings that are as predicted."""
    templates = [
        {
            "apiVersion": key.api_version,
            "kind": key.kind,
            "metadata": {
                "namespace": key.namespace,
                "name": key.name,
                "labels": each.claim_after.labels(),
                "annotations": each.claim_after.annotations(),
            },
        }
        for key, each in claims.templates.items()
    ]
    bindings = [
        copy.deepcopy(dict(each.binding_after))
        for each in claims.templates.values()
        if each.binding_after is not None
    ]
    return templates, bindings


def test_equal_seeds_draw_equal_cases() -> None:
    assert CaseGenerator(7, 3).case() == CaseGenerator(7, 3).case()
    assert CaseGenerator(7, 3).case() != CaseGenerator(8, 3).case()


def test_no_two_objects_of_a_case_have_the_same_name() -> None:
    for number in range(50):
        case = CaseGenerator(2, number).case()
        created = [
            (each["kind"], each["metadata"]["name"])
            for move in (*case.setup, *case.change)
            if move.verb == "create"
            for each in move.objects
        ]
        assert len(set(created)) == len(created)


def test_what_is_as_predicted_has_no_differences(claims: Claims) -> None:
    templates, bindings = as_on_the_server(claims)
    assert differences(claims, templates, bindings, Ids()) == []


def test_another_claim_of_a_template_is_a_difference(claims: Claims) -> None:
    templates, bindings = as_on_the_server(claims)
    templates[0]["metadata"]["labels"] = {"propagationpolicy.karmada.io/permanent-id": "another"}
    (found,) = differences(claims, templates, bindings, Ids())
    assert found.field == "claim of the template"


def test_another_value_in_a_spec_is_a_difference(claims: Claims) -> None:
    templates, bindings = as_on_the_server(claims)
    bindings[0]["spec"]["placement"] = {"clusterAffinity": {"clusterNames": ["elsewhere"]}}
    (found,) = differences(claims, templates, bindings, Ids())
    assert (found.field, is_alternative(claims, templates, bindings)) == ("spec.placement", False)


def test_a_missing_binding_is_a_difference(claims: Claims) -> None:
    templates, bindings = as_on_the_server(claims)
    (found,) = differences(claims, templates, bindings[1:], Ids())
    assert (found.field, found.predicted, found.real) == ("binding exists", True, False)


def test_an_unexpected_binding_is_a_difference(claims: Claims) -> None:
    templates, bindings = as_on_the_server(claims)
    bindings.append({**bindings[0], "metadata": {**bindings[0]["metadata"], "name": "unexpected"}})
    (found,) = differences(claims, templates, bindings, Ids())
    assert (found.predicted, found.real) == (False, True)


def test_ids_of_one_policy_are_equal_to_its_predicted_name() -> None:
    ids = Ids()
    policy = {
        "kind": "PropagationPolicy",
        "metadata": {
            "namespace": "a",
            "name": "p",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "1234"},
        },
    }
    ids.learn([policy])
    assert ids.name("1234") == ids.name("a/p#3") == "a/p"
