"""A remedy never says that a cluster is where it is not: a label of a place that no cluster has becomes a fieldSelector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler import command
from karmada_scheduler.testing import binding, cluster


def remedies(folder: Path, capsys: pytest.CaptureFixture[str], affinity: dict[str, Any]) -> list[str]:
    """Return the first edits of the remedies, in words."""
    placement: dict[str, Any] = {"clusterAffinity": affinity}
    if "terms" in affinity:
        placement = {"clusterAffinities": [{"affinityName": "first", **affinity["terms"]}]}
    asked = binding("web", namespace="shop").replicas(2).placement(placement)
    asked.condition(type="Scheduled", status="False", reason="NoClusterFit", message="0/2 fit")
    clusters = [cluster("m1").region("eu").provider("aws"), cluster("m2").region("us").provider("gcp")]
    files = []
    for kind, builders in (("clusters", clusters), ("bindings", [asked])):
        path = folder / f"{kind}.yaml"
        path.write_text("\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders))
        files.append(f"--{kind}={path}")
    command.main(["explain", "web-deployment", "-n", "shop", *files, "-o", "json", "--timeout=10s"])
    found = json.loads(capsys.readouterr().out)["remedies"]
    return [edit["text"] for remedy in found for edit in remedy["edits"][:1]]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        ({"labelSelector": {"matchLabels": {"region": "eu"}}}, "fieldSelector region eu"),
        (
            {
                "labelSelector": {
                    "matchExpressions": [
                        {"key": "topology.kubernetes.io/region", "operator": "In", "values": ["us", "ap"]}
                    ]
                }
            },
            "fieldSelector region us or ap",
        ),
        ({"terms": {"labelSelector": {"matchLabels": {"provider": "gcp"}}}}, "fieldSelector provider gcp"),
    ],
)
def test_a_label_that_means_a_field_is_selected_by_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], affinity: dict[str, Any], expected: str
) -> None:
    found = remedies(tmp_path, capsys, affinity)
    assert found[0] == f"{expected} instead of a label, which no cluster has"


@pytest.mark.parametrize("key", ["region", "topology.kubernetes.io/region"])
def test_no_cluster_gets_the_label_of_a_place_where_it_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    found = remedies(tmp_path, capsys, {"labelSelector": {"matchLabels": {key: "ap"}}})
    assert not [text for text in found if text.startswith("label ")]
