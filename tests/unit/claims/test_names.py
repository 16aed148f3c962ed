"""Whose binding a name is: karmada v1.18.2 pkg/detector/detector.go ApplyPolicy, pkg/util/names/names.go."""

from __future__ import annotations

import pytest

from karmada_advisor.claims.model import Waits
from karmada_advisor.claims.state import read_binding
from karmada_advisor.claims.template import CLAIMED_BY_LABEL, read_template, template_of
from karmada_scheduler.api.well_known import MANAGED_BY_LABEL
from tests.unit.claims.objects import (
    Cluster,
    Manifest,
    by_name,
    claimed_by,
    cluster_with,
    deployment,
    goes_to,
    only,
    policy,
)


def of_group(group: str, kind: str = "Deployment") -> Manifest:
    made = deployment()
    return {**made, "apiVersion": f"{group}/v1", "kind": kind, "metadata": {**made["metadata"], "uid": ""}}


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_of_two_templates_of_one_kind_and_name_the_second_gets_no_binding(kind: str) -> None:
    """Their API groups differ, and the name of a binding has none."""
    shop = Cluster()
    first, second = of_group("apps", kind), of_group("example.io", kind)
    for name, template in (("own", first), ("other", second)):
        selector = by_name(apiVersion=template["apiVersion"], kind=kind)
        result = shop.apply(policy(name, selector), template)
    waits = {key.group: found.waits for key, found in result.templates.items()}
    assert waits == {"apps": Waits.NOTHING, "example.io": Waits.NAME}
    [kept] = result.by_binding.values()
    assert (kept.template.group, kept.policy_after and kept.policy_after.name) == ("apps", "own")
    assert kept.binding_after is kept.binding_before


def test_a_new_version_of_a_kind_keeps_the_binding() -> None:
    shop = cluster_with(policy("own"), deployment())
    [stored] = shop.bindings.values()
    assert read_binding(stored).is_of(read_template({**deployment(), "apiVersion": "apps/v2"}))
    assert not read_binding(stored).is_of(read_template(of_group("example.io")))


@pytest.mark.parametrize(("length", "waits"), [(242, Waits.NOTHING), (243, Waits.NAME)])
def test_a_binding_has_a_name_of_at_most_253_characters(length: int, waits: Waits) -> None:
    name = "w" * length
    result = Cluster().apply(policy("own", by_name(name)), deployment(name))
    assert (claimed_by(result), only(result).waits) == ("own", waits)
    assert (goes_to(result) is None) == (waits is Waits.NAME)


def test_what_a_multi_cluster_service_propagates_follows_no_policy() -> None:
    shop = cluster_with(policy("own"), deployment())
    taken = shop.apply(deployment(labels={CLAIMED_BY_LABEL: "MultiClusterService"}))
    assert only(taken).waits is Waits.CONTROLLER
    edited = only(shop.apply(policy("own", to="m2")))
    assert (edited.waits, edited.binding_after) == (Waits.CONTROLLER, edited.binding_before)


def test_a_template_that_was_not_read_is_propagated_by_what_manages_its_binding() -> None:
    shop = Cluster()
    key = only(shop.apply(policy("own"), deployment())).binding
    binding = shop.bindings[key]
    labels = {**binding["metadata"]["labels"], MANAGED_BY_LABEL: "MultiClusterService"}
    managed = {**binding, "metadata": {**binding["metadata"], "labels": labels}}
    assert template_of(managed).managed_by
    assert not template_of(binding).managed_by
