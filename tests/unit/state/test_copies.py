"""Copies that other bindings require count as those that a scheduler assigns."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.state.model import BindingState, StateName
from karmada_advisor.state.reading import Facts, state_of
from karmada_advisor.state.stored import copies_of, others_on
from karmada_advisor.views.state import headline
from karmada_scheduler.testing import BindingBuilder, binding
from tests.unit.state.test_reading import ready

APP = {"namespace": "shop", "name": "app-deployment", "clusters": [{"name": "m2", "replicas": 2}]}


def settings(*requirers: dict[str, Any]) -> BindingBuilder:
    """Return the binding of a ConfigMap without a placement."""
    made = binding("settings", namespace="shop").placement(None)
    made.manifest()["spec"]["requiredBy"] = list(requirers)
    return made


def read(made: BindingBuilder, **status: Any) -> BindingState:
    made.manifest()["status"].update(status)
    return state_of(made.build(), made.manifest(), Facts(cluster_of=ready))


def test_a_follower_is_placed_where_others_require_it() -> None:
    found = read(settings(APP))

    assert headline(found) == "PLACED   m2; required by shop/app-deployment"
    assert (found.is_good, found.rows[0].required_by) == (True, ("shop/app-deployment",))


def test_a_copy_that_another_binding_requires_is_distinguished_from_that_of_the_placement() -> None:
    made = binding("settings", namespace="shop").duplicated().on("m1").applied().observed_generation(1)
    made.manifest()["spec"]["requiredBy"] = [APP]

    assert headline(read(made)) == "PLACED   m1, m2; m2 is required by shop/app-deployment"
    assert "m2" in copies_of(made.build(), made.manifest())


@pytest.mark.parametrize(
    ("purge_mode", "others"),
    [("Gracefully", ("m2", "m3")), ("", ("m2", "m3")), ("Directly", ("m2",)), ("Immediately", ("m2",))],
)
def test_a_cluster_has_a_copy_that_others_require_or_whose_eviction_has_not_ended(
    purge_mode: str, others: tuple[str, ...]
) -> None:
    made = settings(APP).evicted_from("m3")
    made.manifest()["spec"]["gracefulEvictionTasks"][0]["purgeMode"] = purge_mode

    assert others_on(made.manifest()) == others


def test_a_follower_that_a_member_refuses_is_not_running() -> None:
    refused = {"clusterName": "m2", "applied": False, "appliedMessage": "denied"}

    assert (
        headline(read(settings(APP), aggregatedStatus=[refused]))
        == "PLACED, not running   m2; not applied on m2: denied"
    )


@pytest.mark.parametrize(
    ("requirers", "labels", "text"),
    [
        ((), {"resourcebinding.karmada.io/depended-by-7f9fb9dff": "x"}, "it is left over"),
        ((), {}, "no other binding requires it"),
        (({**APP, "clusters": []},), {}, "follows shop/app-deployment, which had no cluster"),
    ],
)
def test_without_a_copy_it_is_left_over_or_waits_for_the_binding_that_it_follows(
    requirers: tuple[dict[str, Any], ...], labels: dict[str, str], text: str
) -> None:
    made = settings(*requirers)
    made.manifest()["metadata"]["labels"] = labels

    found = read(made)

    assert found.name is StateName.NO_PLACEMENT
    assert text in found.text
