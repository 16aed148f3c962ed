"""The JSON Schema of why-not in the repository is that of the model, and the output follows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karmada_advisor.whynot.clusters import WhyNotCluster, WhyNotClusters
from karmada_advisor.whynot.model import WhyNot
from karmada_scheduler.testing import BindingBuilder, binding
from tests.document_schema import document_schema
from tests.unit.explain.fleet import billing, checkout, fleet
from tests.unit.views.test_schema import problems
from tests.unit.whynot.asking import ask

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"


def test_the_schemas_in_the_repository_are_those_of_the_models() -> None:
    assert json.loads((SCHEMAS / "whynot.v1alpha1.json").read_text()) == document_schema(WhyNot)
    assert json.loads((SCHEMAS / "whynotcluster.v1alpha1.json").read_text()) == document_schema(WhyNotCluster)
    assert json.loads((SCHEMAS / "whynotclusters.v1alpha1.json").read_text()) == document_schema(
        WhyNotClusters
    )


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (checkout(), ()),
        (checkout(), ("--replicas", "3")),
        (checkout().on(**{"us-east-1": 24}).applied(), ("--off",)),
        (billing(), ("--placed",)),
        (binding("web").replicas(2).suspended(), ("--as-new",)),
    ],
)
def test_the_output_follows_the_schema(asked: BindingBuilder, options: tuple[str, ...]) -> None:
    schema = document_schema(WhyNot)

    found = ask(asked, *fleet(), cluster="us-east-1", options=options).fields

    assert found["apiVersion"] == "explain.pyscheduler.karmada.io/v1alpha1"
    assert found["kind"] == "WhyNot"
    assert list(problems(found, schema, schema)) == []
    assert [each.get("primary", False) for each in found["causes"]].count(True) == (
        0 if found["nextHolds"] else 1
    )
