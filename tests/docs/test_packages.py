"""The packages of docs/examples: installed, found, and as their READMEs describe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import Command, read
from tests.docs.packages import EXAMPLES, install

NAMES = ("testfilter", "spacecloud")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the packages installed."""
    return {**os.environ, **install(*NAMES, into=tmp_path_factory.mktemp("site-packages"))}


def run(*command: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_of_an_example_package_is_right(name: str, environment: dict[str, str]) -> None:
    commands = [part for part in read(EXAMPLES / name / "README.md") if isinstance(part, Command)]
    assert commands[0] == Command("pip install .", ())
    for command in commands[1:]:
        program, *arguments = command.line.split()
        assert program == "karmada-pyscheduler"
        finished = run("-m", "karmada_scheduler", *arguments, cwd=EXAMPLES / name, environment=environment)
        assert finished.returncode == 0, finished.stderr
        assert not command.missing_in(finished.stdout), finished.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_tests_of_an_example_package_pass(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    for each in (f"test_{name}.py", "config.yaml", "pyproject.toml"):
        (tmp_path / each).write_bytes((EXAMPLES / name / each).read_bytes())
    plugins = ("-p", "no:asyncio", "-p", "no:cacheprovider")
    finished = run("-m", "pytest", "-q", *plugins, cwd=tmp_path, environment=environment)
    assert finished.returncode == 0, finished.stdout
