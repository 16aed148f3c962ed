"""Everything that docs/writing-plugins.md shows is written, run and compared with the page.

What starts a scheduler needs a control plane: tests/e2e/test_plugin_examples.py.
"""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from karmada_scheduler import command as cli
from karmada_scheduler.framework.extension_points import NORMALIZE_SCORE, PRE_FILTER_EXTENSIONS, Point
from karmada_scheduler.testing import binding, cluster
from tests.docs.documents import Command, File, read

DOCUMENT = Path(__file__).parents[2] / "docs" / "writing-plugins.md"
README = Path(__file__).parents[2] / "README.md"
SCREEN = 40


def test_the_readme_shows_the_same_plugin() -> None:
    [shown] = [part for part in read(README) if isinstance(part, File)]
    assert shown == next(part for part in read(DOCUMENT) if isinstance(part, File))


def test_the_first_plugin_runs_within_the_first_screen() -> None:
    first = DOCUMENT.read_text().split("Change the file while the scheduler runs")[0]
    assert len(first.splitlines()) <= SCREEN
    assert "--kubeconfig" in first


def test_the_table_has_every_extension_point() -> None:
    text = DOCUMENT.read_text()
    for point in Point:
        assert f"| {point.label} | `{point.methods[0]}" in text
    for method in (*PRE_FILTER_EXTENSIONS, "normalize_score", "unreserve"):
        assert f"`{method}`" in text
    assert NORMALIZE_SCORE == "ScoreExtensionNormalize"


def test_all_commands_of_the_document_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    clusters = [
        cluster("m1").labels(tier="prod").capacity(cpu=8).manifest(),
        cluster("m2").capacity(cpu=4).manifest(),
    ]
    bindings = [
        binding("web", namespace="test").replicas(2).manifest(),
        binding("api", namespace="prod").replicas(2).manifest(),
    ]
    for name, items in (("clusters", clusters), ("bindings", bindings)):
        text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
        Path(f"{name}.yaml").write_text(text)
    ran = []
    for part in read(DOCUMENT):
        if isinstance(part, File):
            part.write_into(tmp_path)
        elif "--kubeconfig" not in part.line:
            output = _output_of(part, capsys)
            assert not part.missing_in(output), f"$ {part.line}\n{output}"
            ran.append(part.line.split()[0])
    assert ran == ["karmada-pyscheduler", "python", "karmada-pyscheduler", "pytest"]


def _output_of(command: Command, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command, in this process where that can be."""
    program, *arguments = shlex.split(command.line)
    if program == "karmada-pyscheduler":
        assert cli.main(arguments) == 0
    elif program == "python":
        script, *rest = arguments
        main = runpy.run_path(script)["command"]
        assert main(rest) == 0
    else:
        finished = subprocess.run(
            [sys.executable, "-m", program, "-p", "no:asyncio", "-p", "no:cacheprovider", *arguments],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return finished.stdout + finished.stderr
    return capsys.readouterr().out
