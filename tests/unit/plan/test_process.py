"""``plan --from``: the rules before the change are those of a running scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.fleet import process_http
from karmada_scheduler.testing import BindingBuilder, cluster
from tests.unit.plan import fleet
from tests.unit.plan.conftest import Run
from tests.unit.plan.test_classes import settled, web

URL = "http://localhost:10353"
PAYS = """\
from karmada_scheduler.framework import SUCCESS, FilterContext, Result


class Pays:
    name = "Pays"

    def filter(self, context: FilterContext, /) -> Result:
        return SUCCESS if context.cluster.name == "m1" else Result.unschedulable("the team pays for m1 only")
"""


def configuration(*profiles: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"featureGates": {}, "profiles": list(profiles), "plugins": ["*"], "file": None, **more}


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The configuration that the process says it has."""
    state = configuration({"schedulerName": "default-scheduler", "plugins": {"filter": ["Pays"]}})

    def get(_url: str, _path: str) -> tuple[int, Mapping[str, Any]]:
        return 200, {"process": "karmada-pyscheduler-1", "configuration": state}

    monkeypatch.setattr(process_http, "get", get)
    return state


def files(tmp_path: Path, *bindings: BindingBuilder) -> list[str]:
    clusters = [cluster("m1").manifest(), cluster("m2").manifest()]
    return fleet.write(tmp_path, clusters=clusters, bindings=[each.manifest() for each in bindings])


def test_plugins_of_the_process_whose_code_is_missing_are_noted_and_their_refusals_hold(
    run: Run, running: dict[str, Any], tmp_path: Path
) -> None:
    assert running["plugins"] == ["*"]
    refused = web().condition(
        type="Scheduled",
        status="False",
        reason="NoClusterFit",
        message="0/2 clusters are available: 2 the team pays for m1 only.",
    )
    fields = run(
        "--cordon", "m1", "--from", URL, "-o", "json", "--fail-on", "none", of=files(tmp_path, refused)
    ).fields

    assert fields["counts"]["held"] == 1
    assert fields["bindings"][0]["held"]["by"] == "plugin"
    assert any("their code is not here: Pays (--current-plugin-dir)" in each for each in fields["notes"])


def test_with_the_code_of_its_plugins_the_plan_decides_as_the_process_does(
    run: Run, running: dict[str, Any], tmp_path: Path
) -> None:
    assert running["plugins"] == ["*"]
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "pays.py").write_text(PAYS)
    fields = run(
        "--without", "m1", "--from", URL, f"--current-plugin-dir={tmp_path / 'plugins'}", "-o", "json",
        "--fail-on", "none", of=files(tmp_path, settled(web(), m1=4)),
    ).fields  # fmt: skip

    assert fields["counts"]["moved"] == 0
    assert fields["counts"]["unplaced"] == 1


def test_bindings_of_other_schedulers_are_decided_by_their_rules_or_not_judged(
    run: Run, running: dict[str, Any], tmp_path: Path
) -> None:
    running["profiles"] = [{"schedulerName": "my-scheduler"}]
    running["schedulerName"] = "my-scheduler"
    of = files(
        tmp_path,
        settled(web("a").scheduler("my-scheduler"), m1=4),
        settled(web("b"), m1=4),
        settled(web("c").scheduler("third"), m1=4),
    )

    ran = run("--without", "m1", "--from", URL, "-o", "json", of=of)

    assert (ran.status, ran.fields["counts"]["moved"], ran.fields["counts"]["not-judged"]) == (1, 2, 1)
    assert ran.fields["counts"]["unchanged"] == 0
    assert [each["message"] for each in ran.fields["failures"]] == [
        "decided by third, whose plugins are not known here: --from"
    ]
    assert any("rules of a stock karmada-scheduler" in note for note in ran.fields["notes"])
    assert "2 moved, 0 unplaced, 0 stuck, 1 not judged." in run("--without", "m1", "--from", URL, of=of).out


def test_an_upgrade_is_planned_from_the_decisions_of_the_process_to_the_new_ones(
    run: Run, running: dict[str, Any], tmp_path: Path
) -> None:
    running["decisionsOf"] = "1.17"
    gpus = cluster("m1").allocatable({"cpu": 9, "pods": 9, "nvidia.com/gpu": 2}).grade(0, nodes=2, cpu=4)
    request = {"cpu": 1, "nvidia.com/gpu": 1}
    placed = settled(web("placed", replicas=2).request(request), m1=2)
    grown = settled(web("grown", replicas=2).request(request), m1=1)
    manifests = [each.manifest() for each in (placed, grown)]
    flags = fleet.write(tmp_path, clusters=[gpus.manifest()], bindings=manifests)

    fields = run(*flags, "--from", URL, "--decisions-of=1.18", "-o", "json").fields

    assert [each["text"] for each in fields["changes"]] == ["1.17 -> 1.18"]
    assert [(each["name"], each["effect"]) for each in fields["bindings"]] == [("grown-deployment", "stuck")]
    same = run(*flags, "--from", URL, "--decisions-of=1.17")
    assert (same.status, "the decisions are those of 1.17 already" in same.err) == (2, True)
    contradicted = run(*flags, "--from", URL, "--decisions-of=1.18", "--current-decisions-of=1.18")
    assert "but it is 1.17 in the process" in contradicted.err
