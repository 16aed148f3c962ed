"""The examples under manifests/ are accepted as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.controlplane import ControlPlane

EXAMPLES = sorted((Path(__file__).parents[2] / "manifests" / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted_with_strict_validation(controlplane: ControlPlane, path: Path) -> None:
    controlplane.kubectl("create", "namespace", "demo")
    try:
        answer = controlplane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(path))
        assert answer.count("(server dry run)") == 7
    finally:
        controlplane.client.delete("/api/v1/namespaces/demo")
