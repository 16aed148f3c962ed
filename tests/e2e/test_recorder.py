"""The recorder on a control plane of its own, and the replay of what it recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.conformance import __main__ as replay
from tools.conformance import record


def test_recorded_decisions_of_karmada_scheduler_are_reproduced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "recording.json.gz"
    scenario = ["--seed=2", "--clusters=5", "--bindings=20", "--runs=2"]

    assert record.main([*scenario, f"--out={out}", f"--folder={tmp_path / 'plane'}"]) == 0, (
        capsys.readouterr().err
    )
    assert replay.main([str(out)]) == 0, capsys.readouterr().out
    assert "5 clusters" in capsys.readouterr().out
