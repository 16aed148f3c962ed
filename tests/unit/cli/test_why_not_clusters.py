"""The command why-not about the clusters of a region, a zone or a provider, or with a label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.whynot.clusters import WhyNotClusters
from karmada_scheduler.command import main
from karmada_scheduler.testing import binding, cluster
from tests.document_schema import document_schema
from tests.unit.cli.test_why_not import write
from tests.unit.views.test_schema import problems


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two tainted clusters of a region, one that the policy does not name, and one with the replicas."""
    clusters = [
        cluster("m1").region("eu").labels(tier="prod").taint("a:NoSchedule").taint("b:NoSchedule"),
        cluster("m2").region("eu").provider("aws").zones("eu-1a", "eu-1b").taint("a:NoSchedule"),
        cluster("m3").region("eu").labels(region="other"),
        cluster("m4").region("us").labels(tier="prod"),
    ]
    web = binding("web").replicas(2, cpu=1).dynamic_weight().names("m1", "m2", "m4").on(m4=2).applied()
    return write(tmp_path, clusters, [web.last_scheduled("2026-11-22T10:00:00Z")])


def asked(
    capsys: pytest.CaptureFixture[str], files: list[str], where: str, status: int = 0
) -> dict[str, Any]:
    """Return the answer as JSON; it follows the schema."""
    assert main(["why-not", "web-deployment", where, *files, "--timeout=60s", "-o=json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    schema = document_schema(WhyNotClusters)
    assert list(problems(found, schema, schema)) == []
    return found


def test_clusters_are_grouped_by_cause_and_the_one_that_needs_the_least_has_its_changes(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(capsys, files, "region=eu")

    groups = [(group["code"], group["names"]) for group in found["groups"]]
    assert groups == [("UntoleratedTaint", ["m1", "m2"]), ("AffinityMismatch", ["m3"])]
    assert (found["kind"], found["present"], found["searched"]) == ("WhyNotClusters", [], 3)
    assert found["answer"]["cluster"] == "m3", "m1 would need two tolerations"
    main(["why-not", "web-deployment", "m3", *files, "--timeout=60s", "-o=json"])
    one = json.loads(capsys.readouterr().out)
    assert found["answer"]["causes"] == one["causes"]
    for field in ("edits", "result"):  # patches have the time
        assert [each[field] for each in found["answer"]["remedies"]] == [
            each[field] for each in one["remedies"]
        ]


def test_the_text_counts_the_clusters_and_names_what_refuses_them(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", "web-deployment", "region=eu", *files]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0 of 3 clusters with region=eu have replicas of default/web-deployment"
    assert lines[1].endswith("(likewise m2)")
    assert "Of 3 clusters that were searched, m3 needs the least." in lines


@pytest.mark.parametrize(
    ("where", "clusters"),
    [
        ("zone=eu-1b", ["m2"]),
        ("provider=aws", ["m2"]),
        ("tier=prod", ["m1", "m4"]),
    ],
)
def test_clusters_have_a_zone_a_provider_or_a_label_in_common(
    files: list[str], where: str, clusters: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(capsys, files, where)["clusters"] == clusters


def test_where_a_cluster_has_replicas_nothing_is_searched(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(capsys, files, "tier=prod")

    assert (found["present"], found["searched"], found["answer"]["holds"]) == (["m4"], 0, True)


def test_what_the_next_decision_places_is_not_what_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(
        tmp_path, [cluster("m1").region("eu")], [binding("web").replicas(2, cpu=1).dynamic_weight()]
    )

    found = asked(capsys, files, "region=eu", status=1)

    assert (found["present"], found["atOnce"]) == ([], ["m1"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["web-deployment", "eu"], "eu is a region: why-not web-deployment region=eu"),
        (["web-deployment", "eu-1a"], "eu-1a is a zone: why-not web-deployment zone=eu-1a"),
        (["--cluster=aws"], "aws is a provider: why-not NAME provider=aws"),
        (["web-deployment", "zone=eu-1c"], "no cluster has zone=eu-1c; nearest: zone=eu-1"),
        (["web-deployment", "teir=prod"], "no cluster has teir=prod; nearest: tier=prod"),
        (["web-deployment", "region=other"], "no cluster has region=other"),
        (["web-deployment", "region=eu", "--off"], "ask about one cluster, not about region=eu"),
        (["--cluster=region=eu"], "ask about one cluster, not about region=eu"),
    ],
)
def test_what_names_no_clusters_has_no_answer_but_a_hint(
    files: list[str], words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why-not", *words, *files]) == 2

    assert error in capsys.readouterr().err
