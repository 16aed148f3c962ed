"""The benchmark of the commands measures what its report describes; it is never timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import commands
from tools.bench.commands import Bound


def test_a_fleet_is_written_once_and_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_QUESTIONS", 2)
    monkeypatch.setattr(commands, "EXAMPLES", tmp_path)  # starts are not measured here
    for only, figure in (
        ("explain, 60", "ms CPU"),
        ("why-not, 60", " answered"),
        ("plan, cordon, 60", " MiB "),
    ):
        commands.main(
            ["--clusters", "60", "--bindings-per-cluster", "1", f"--keep={tmp_path}", f"--only={only}"]
        )
        assert figure in capsys.readouterr().out
    assert len(commands._items(tmp_path / "60", "bindings")) == 60


def test_what_takes_too_much_is_marked() -> None:
    text, holds = commands._process(["--version"], Bound(seconds=1e-6), 1)
    assert " MiB" in text
    assert not holds
    assert commands._process(["--version"], Bound(), 1)[1]
