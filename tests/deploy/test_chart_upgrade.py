"""An upgrade to a version of the chart that has a new value."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.deploy.chart import CHART, HelmError, helm
from tools.controlplane.members import Member

pytestmark = pytest.mark.e2e


def test_an_upgrade_keeps_the_values_that_were_set_and_takes_the_new_defaults(
    host: Member, tmp_path: Path
) -> None:
    older = tmp_path / CHART.name
    older.mkdir()
    shutil.copy(CHART / "Chart.yaml", older)
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    known = {name: value for name, value in defaults.items() if name != "metrics"}
    (older / "values.yaml").write_text(yaml.safe_dump(known))

    def release(verb: str, *arguments: str) -> str:
        return helm(verb, *arguments, "--namespace=karmada-system", kubeconfig=host.kubeconfig)

    release("install", "upgraded", str(older), "--set=replicas=3,image.tag=mine")
    try:
        with pytest.raises(HelmError, match="nil pointer"):
            release("upgrade", "upgraded", str(CHART), "--reuse-values")
        release("upgrade", "upgraded", str(CHART), "--reset-then-reuse-values")
        values = json.loads(release("get", "values", "upgraded", "--all", "--output=json"))
        assert (values["replicas"], values["image"]["tag"]) == (3, "mine")
        assert values["metrics"] == defaults["metrics"]
    finally:
        release("uninstall", "upgraded")
