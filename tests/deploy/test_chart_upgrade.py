"""An upgrade to a version of the chart that has a new value."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.deploy.chart import CHART, HelmError, helm
from tests.deploy.programs import HELM_VERSIONS
from tools.controlplane import ControlPlane
from tools.controlplane.members import Member

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("major", HELM_VERSIONS)
def test_an_upgrade_keeps_the_values_that_were_set_and_takes_the_new_defaults(
    host: Member, plane: ControlPlane, tmp_path: Path, major: int
) -> None:
    older = tmp_path / CHART.name
    older.mkdir()
    shutil.copy(CHART / "Chart.yaml", older)
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    known = {name: value for name, value in defaults.items() if name != "metrics"}
    (older / "values.yaml").write_text(yaml.safe_dump(known))

    def release(verb: str, *arguments: str) -> str:
        options = ("--namespace=karmada-system",)
        return helm(verb, *arguments, *options, kubeconfig=host.kubeconfig, major=major)

    release("install", "upgraded", str(older), "--set=replicas=3,image.tag=mine")
    try:
        with pytest.raises(HelmError, match="missing property 'metrics'"):
            release("upgrade", "upgraded", str(CHART), "--reuse-values")
        release("upgrade", "upgraded", str(CHART), "--reset-then-reuse-values")
        values = json.loads(release("get", "values", "upgraded", "--all", "--output=json"))
        assert (values["replicas"], values["image"]["tag"]) == (3, "mine")
        assert values["metrics"] == defaults["metrics"]
        _upgrade_after_a_patch(host, plane, release, conflicts=major == 4)
    finally:
        release("uninstall", "upgraded")


def _upgrade_after_a_patch(
    host: Member, plane: ControlPlane, release: Callable[..., str], *, conflicts: bool
) -> None:
    """Helm 4 applies on the server side, and overwrites no field of another manager without --force-conflicts."""
    patch = ("--namespace=karmada-system", "patch", "deployment", "upgraded", "--type=merge")
    plane.kubectl(*patch, '--patch={"spec":{"replicas":5}}', kubeconfig=host.kubeconfig)
    upgrade = ("upgrade", "upgraded", str(CHART), "--reset-then-reuse-values", "--set=replicas=4")
    if conflicts:
        with pytest.raises(HelmError, match=r"conflict with \"kubectl-patch\".*\.spec\.replicas"):
            release(*upgrade)
        release(*upgrade, "--force-conflicts")
    else:
        release(*upgrade)
    path = "/apis/apps/v1/namespaces/karmada-system/deployments/upgraded"
    assert host.client.get(path)["spec"]["replicas"] == 4
