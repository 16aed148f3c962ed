"""docs/plan.md shows what ``plan`` prints, and the CI job of docs/examples/plan runs on its files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from karmada_advisor.cli.flags.what_if import plan_parser
from karmada_advisor.whatif.plan.model import CLASSES

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "plan.md").read_text()
EXAMPLE = ROOT / "docs" / "examples" / "plan"
GOLDEN = ROOT / "tests" / "unit" / "plan" / "golden"

# The flags for files and for the control plane are those of explain, which docs/explain.md has.
SHARED_FLAGS = {
    *("--help", "--output", "--clusters", "--bindings", "--policies", "--kubeconfig", "--context"),
    *("--cluster", "--user", "--capture", "--replay", "--request-timeout", "--workloads"),
    *("--explain-bind-address", "--namespace", "--filename", "--scheduler-name"),
    *("--enable-empty-workload-propagation", "--from-token-file", "--from-ca-file", "--from-server-name"),
}


def test_the_example_is_the_output() -> None:
    golden = (GOLDEN / "policies-100.txt").read_text()
    assert "".join(f"    {line}".rstrip() + "\n" for line in golden.splitlines()) in DOCUMENT


def test_every_class_is_documented() -> None:
    assert set(re.findall(r"^\| `([\w-]+)` \|", DOCUMENT, re.MULTILINE)) >= set(CLASSES)


def test_every_flag_of_the_change_is_documented() -> None:
    flags = set(re.findall(r"--[a-z-]+", plan_parser().format_help()))
    assert {
        each for each in flags - SHARED_FLAGS if f"`{each}" not in DOCUMENT and f"{each} " not in DOCUMENT
    } == set()


def job() -> list[str]:
    """Return the shell lines of the steps."""
    workflow = yaml.safe_load((EXAMPLE / ".github" / "workflows" / "plan.yaml").read_text())
    return [step["run"] for step in workflow["jobs"]["plan"]["steps"] if "run" in step]


def test_the_job_of_the_example_fails_for_stuck_bindings_and_shows_them(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "repository")
    summary = tmp_path / "summary.md"
    first, again = job()

    assert run(first, tmp_path, summary).returncode == 1
    assert summary.read_text().startswith(
        "### Plan: 0 moved, 0 unplaced, 2 stuck; 2 move at the next rebalance\n"
    )
    assert "- pay/ledger-deployment \u00b7 " in summary.read_text()
    ended = run(again, tmp_path, summary)
    assert ended.returncode == 0, ended.stderr


def test_the_job_is_good_without_the_edit_that_gets_bindings_stuck(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "repository")
    (tmp_path / "repository" / "policies" / "eu.yaml").unlink()
    summary = tmp_path / "summary.md"

    assert run(job()[0], tmp_path, summary).returncode == 0
    assert summary.read_text().startswith(
        "### Plan: 0 moved, 0 unplaced, 0 stuck; 2 move at the next rebalance\n"
    )


def run(lines: str, folder: Path, summary: Path) -> subprocess.CompletedProcess[str]:
    """Run the shell lines of a step, with the files of the repository instead of a control plane."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    command = programs / "karmada-pyscheduler"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m karmada_scheduler "$@"\n')
    command.chmod(0o755)
    files = [f"--{name} fleet/{name}.yaml" for name in ("clusters", "bindings", "policies")]
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SOURCE": " ".join(files),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", lines],
        cwd=folder / "repository",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
