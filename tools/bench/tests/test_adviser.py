"""The benchmark of the adviser measures what its report describes; it is never timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import adviser


def test_a_fleet_is_written_once_and_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adviser, "_QUESTIONS", 2)
    for only, figure in (
        ("explain", "ms CPU"),
        ("why-not", " answered"),
        ("plan, cordon", " MiB "),
    ):
        adviser.main(
            ["--clusters", "60", "--bindings-per-cluster", "1", "--keep", str(tmp_path), "--only", only]
        )
        assert figure in capsys.readouterr().out
    assert len(adviser._items(tmp_path / "60", "bindings")) == 60
