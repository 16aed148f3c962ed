"""The nearest existing name or value."""

from __future__ import annotations

import pytest

from karmada_scheduler.api.names import FleetValues, LabelValue, nearest, nearest_value
from karmada_scheduler.testing import cluster

FLEET = FleetValues(
    [
        cluster("a").label("pool", "gpus").region("eu-west-1").provider("aws").build(),
        cluster("b").label("pool", "cpu").region("us-east-1").zones("us-east-1a").build(),
    ]
)


def test_the_nearest_name_may_differ_in_case() -> None:
    assert nearest("EU-West-1", ["eu-west-1", "us-east-1"]) == "eu-west-1"


@pytest.mark.parametrize(("value", "near"), [("gpu", "gpus"), ("cpu", ""), ("edge", "")])
def test_a_value_that_exists_or_that_nothing_is_like_has_no_nearest_one(value: str, near: str) -> None:
    assert nearest_value(value, ["gpus", "cpu"]) == near


def test_the_nearest_label_has_a_near_value_or_a_near_key() -> None:
    assert FLEET.label("pool", "gpu") == LabelValue("pool", "gpus")
    assert FLEET.label("pools", "gpus") == LabelValue("pool", "gpus")
    assert FLEET.label("pool", "cpu") is None
    assert FLEET.label("team", "gpus") is None


def test_the_nearest_region_and_zone_are_those_of_clusters() -> None:
    assert FLEET.field("region", "eu-wst-1") == "eu-west-1"
    assert FLEET.field("zone", "us-east-1b") == "us-east-1a"
    assert FLEET.field("provider", "aws") == ""
    assert FLEET.field("rack", "r1") == ""
