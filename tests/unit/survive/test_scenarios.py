"""The acceptance scenarios: each is a file with a fleet, what is lost, and what becomes of each binding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.commands import run

FILES: Final = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
_GUARD: Final = """
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: PlacementGuard}]}
  pluginConfig:
  - name: PlacementGuard
    args: {nothingFits: keep}
"""


def _runs() -> list[Any]:
    return [
        pytest.param(path, number, id=f"{path.stem}-{number}")
        for path in FILES
        for number in range(len(yaml.safe_load(path.read_text())["runs"]))
    ]


def test_there_is_a_file_for_each_scenario() -> None:
    assert [path.stem[:2] for path in FILES] == [f"{number:02}" for number in range(1, 16)]


@pytest.mark.parametrize(("path", "number"), _runs())
def test_a_loss_does_what_the_scenario_says(path: Path, number: int, tmp_path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    asked = scenario["runs"][number]
    flags = [asked["lost"], "--domain=cluster", "--all", "-o=json", *asked.get("flags", ())]
    for name in ("clusters", "bindings"):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": scenario[name]}))
        flags += [f"--{name}", str(file)]
    if asked.get("guard"):
        (tmp_path / "config.yaml").write_text(_GUARD)
        flags += ["--config", str(tmp_path / "config.yaml")]

    ran = run("survive", *flags)

    assert ran.err == ""
    report = ran.fields
    found = {each["name"].removesuffix("-deployment"): each["losses"] for each in report["bindings"]}
    for name, expected in asked["expected"].items():
        [loss] = found.pop(name)
        shown = loss | {"after": {each["name"]: each["replicas"] for each in loss["after"]}}
        assert {key: shown[key] for key in expected} == expected
    assert found == {}
    [domain] = report["domains"]
    assert domain["chosen"]["sweptReplicas"] == asked.get("sweptReplicas", 0)
    is_dark = any(each["dark"] for each in asked["expected"].values())
    assert (ran.status, domain["isSpof"]) == (int(is_dark), is_dark)
