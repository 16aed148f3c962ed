"""docs/placement-tests.md shows what ``test`` prints about the example, and has every key, word and flag."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from karmada_advisor.cli.commands import parser_of
from karmada_advisor.whatif.placement_tests.schema import WORDS, keys_of
from tests.commands import run

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "placement-tests.md").read_text()
EXAMPLE = ROOT / "docs" / "examples" / "tests"


def without_times(text: str) -> str:
    """Return text with durations replaced."""
    return re.sub(r"in \d+\.\d\d s", "in N s", text)


def shown(text: str) -> str:
    """Return text as the page has it."""
    return without_times("".join(f"    {line}".rstrip() + "\n" for line in text.splitlines()))


def test_the_example_prints_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    found = run("test", ".")
    assert found.status == 0
    assert shown(found.out) in without_times(DOCUMENT)


def test_a_failure_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in EXAMPLE.rglob("*.yaml"):
        target = tmp_path / path.relative_to(EXAMPLE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text().replace("eu-west-1: 12", "eu-west-1: 11"))
    monkeypatch.chdir(tmp_path)
    found = run("test", "tests/")
    assert found.status == 1
    failure = found.out.rpartition("\n\n")[0]
    assert shown(failure) in DOCUMENT


@pytest.mark.parametrize("definition", ["", "Fleet", "FleetCluster", "Case", "Expectation", "Scheduler"])
def test_every_key_is_documented(definition: str) -> None:
    assert [each for each in keys_of(definition) if not re.search(rf"\b{each}\b", DOCUMENT)] == []


def test_every_word_is_documented() -> None:
    rows = "".join(line for line in DOCUMENT.splitlines() if line.startswith("|"))
    assert [each for each in WORDS if f"`{each}`" not in rows] == []


def test_every_flag_is_documented() -> None:
    flags = {
        name
        for action in parser_of("test")._actions
        for name in action.option_strings
        if name.startswith("--")
    }
    of_the_control_plane = {
        "--kubeconfig",
        "--context",
        "--cluster",
        "--user",
        "--request-timeout",
        "--replay",
        "--namespace",
    }
    of_all_commands = of_the_control_plane | {
        "--help",
        "--width",
        "--color",
        "--all",
        "--output",
        "--verbose",
        "--quiet",
    }
    assert [each for each in sorted(flags - of_all_commands) if f"{each}" not in DOCUMENT] == []


def test_the_job_of_the_example_passes_and_annotates_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "repository")
    monkeypatch.chdir(tmp_path / "repository")
    workflow = yaml.safe_load(Path(".github/workflows/placement.yaml").read_text())
    lines = [each["run"] for each in workflow["jobs"]["placement"]["steps"] if "run" in each]
    [command] = [each.split()[1:] for each in lines if each.startswith("karmada-pyscheduler")]
    assert run(*command).status == 0
    assert Path("junit.xml").read_text().count("<testcase") == 8
    path = Path("tests/checkout_test.yaml")
    path.write_text(path.read_text().replace("eu-west-1: 12", "eu-west-1: 11"))
    found = run(*command)
    assert found.status == 1
    assert "::error file=tests/checkout_test.yaml,line=17,col=17,title=checkout is spread" in found.out


def test_the_hook_of_the_example_runs_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    [repository] = yaml.safe_load(Path(".pre-commit-config.yaml").read_text())["repos"]
    assert run(*repository["hooks"][0]["entry"].split()[1:]).status == 0


def test_the_first_file_of_the_page_passes(tmp_path: Path) -> None:
    [text] = [each for each in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL) if "cases:" in each]
    assert yaml.safe_load(text)["kind"] == "PlacementTest"
    for path in EXAMPLE.rglob("*.yaml"):
        target = tmp_path / path.relative_to(EXAMPLE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text())
    page = tmp_path / "tests" / "page_test.yaml"
    page.write_text(text)
    assert run("test", str(page)).status == 0
