"""The ConfigMaps under manifests/examples/host hold plugins and configurations that the scheduler takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from karmada_scheduler import command
from tests.deploy.chart import ROOT

EXAMPLES = ROOT / "manifests" / "examples" / "host"


def _files(name: str, folder: Path) -> Path:
    """Write a ConfigMap's data as files, as its volume would have them."""
    for key, text in yaml.safe_load((EXAMPLES / name).read_text())["data"].items():
        (folder / key).write_text(text)
    return folder


def test_the_plugin_is_found_and_enabled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["plugins", f"--plugin-dir={_files('plugin.yaml', tmp_path)}"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("NotInMaintenance")]
    assert "Filter" in line


@pytest.mark.parametrize("name", ["two-profiles.yaml", "extender.yaml"])
def test_the_configuration_is_accepted(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = _files(name, tmp_path) / "config.yaml"
    assert command.main(["plugins", f"--config={config}", "--scheduler-name=my-scheduler"]) == 0
    assert "Error" not in capsys.readouterr().err
