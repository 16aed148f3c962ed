"""The report: text, JSON, JUnit, schema, and the flags of the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from karmada_advisor.whatif.placement_tests.model import PlacementTestReport
from karmada_advisor.whatif.placement_tests.schema import SCHEMA
from tests.commands import Ran, run
from tests.document_schema import document_schema
from tests.unit.placement_tests.files import (
    POLICY,
    WORKLOADS,
    case,
    ran,
    with_cases,
    written,
)
from tests.unit.views.test_schema import problems

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "tests"
PASSING = case("shop/web: {placed: true}", name="it is placed")
FAILING = case("shop/web: {replicas: 5, clusters: {a: 5}}", name="five [of them]")
SKIPPED = case("shop/web: {placed: true}", name="later") + "  skip: not yet\n"
ALL = with_cases(PASSING, FAILING, SKIPPED)


def run_all(folder: Path, *flags: str) -> Ran:
    """Run a file with a case that passes, one that fails, and one that is skipped."""
    return ran(folder, ALL, *flags)


def test_the_text_has_one_line_for_a_file_and_the_failures(tmp_path: Path) -> None:
    found = run_all(tmp_path)
    assert found.status == 1
    assert f"FAIL  {tmp_path}/web_test.yaml   3 cases, 1 failed, 1 skipped\n" in found.out
    assert "1 passed, 1 failed, 1 skipped in " in found.out
    assert "it is placed" not in found.out
    assert "passed  " in run_all(tmp_path, "-v").out


def test_the_command_for_more_runs_the_one_case(tmp_path: Path) -> None:
    line = next(each for each in run_all(tmp_path).out.splitlines() if "more:" in each)
    assert line.endswith("--run 'five \\[of them\\]' --explain")
    found = run_all(tmp_path, "--run", "five \\[of them\\]", "-o", "json").fields
    assert [each["name"] for each in found["files"][0]["cases"]] == ["five [of them]"]


def test_quiet_shows_what_fails_only(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    written(tmp_path / "good", with_cases(PASSING))
    written(tmp_path, with_cases(FAILING))
    found = run("test", str(tmp_path), "-q")
    assert "good" not in found.out
    assert "five [of them]" in " ".join(found.out.split())


def test_fail_fast_ends_with_the_first_failure(tmp_path: Path) -> None:
    found = ran(tmp_path, with_cases(FAILING, PASSING), "--fail-fast", "-o", "json")
    assert [each["outcome"] for each in found.fields["files"][0]["cases"]] == ["failed"]


def test_every_policy_has_to_be_tested_only_if_that_is_asked_for(tmp_path: Path) -> None:
    other = POLICY.replace("name: web", "name: api")
    text = with_cases(PASSING).replace("[policy.yaml]", "[policy.yaml, api.yaml]")
    files = {"api.yaml": other}
    found = ran(tmp_path, text, files=files)
    assert (found.status, "No case has a workload of PropagationPolicy/shop/api." in found.out) == (0, True)
    assert ran(tmp_path, text, "--every-policy", files=files).status == 1


def test_json_follows_its_schema(tmp_path: Path) -> None:
    schema = document_schema(PlacementTestReport)
    fields = run_all(tmp_path, "-o", "json").fields
    assert list(problems(fields, schema, schema)) == []
    assert json.loads((SCHEMAS / "placementtestreport.v1alpha1.json").read_text()) == schema
    outcomes = {each["name"]: each["outcome"] for each in fields["files"][0]["cases"]}
    assert outcomes == {"it is placed": "passed", "five [of them]": "failed", "later": "skipped"}
    replicas, clusters = fields["files"][0]["cases"][1]["failures"]
    assert (replicas["key"], replicas["expected"], replicas["got"]) == ("replicas", 5, 4)
    assert clusters["got"] == {"a": 2, "b": 2}
    assert replicas["explanation"]["binding"]["name"] == "web-deployment"


def test_yaml_holds_the_same_as_json(tmp_path: Path) -> None:
    one, other = run_all(tmp_path, "-o", "json").fields, yaml.safe_load(run_all(tmp_path, "-o", "yaml").out)
    for each in (one, other):
        without_times(each)
    assert one == other


def without_times(value: Any) -> None:
    """Remove durations."""
    if isinstance(value, dict):
        value.pop("seconds", None)
        for each in value.values():
            without_times(each)
    elif isinstance(value, list):
        for each in value:
            without_times(each)


def test_junit_has_a_suite_for_a_file_and_a_case_for_a_case(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    assert run_all(tmp_path, "--junit", str(path)).status == 1
    root = ET.parse(path).getroot()
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    [failure] = root.iter("failure")
    assert failure.get("message") == "does not hold: replicas, clusters"
    assert "expected 5, got 4" in str(failure.text)
    assert [each.get("message") for each in root.iter("skipped")] == ["not yet"]


def test_junit_has_an_error_for_a_file_that_cannot_be_run(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    assert ran(tmp_path, with_cases("- name: one\n"), "--junit", str(path)).status == 2
    [error] = ET.parse(path).getroot().iter("error")
    assert "a case needs expect or then" in str(error.get("message"))


def test_characters_that_xml_does_not_have_are_question_marks(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    text = with_cases(case("shop/web: {placed: true}", name='"a\\x07b\\x1b[31m <&>"'))
    assert ran(tmp_path, text, "--junit", str(path)).status == 0
    [found] = ET.parse(path).getroot().iter("testcase")
    assert found.get("name") == "a?b?[31m <&>"


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path: Path) -> None:
    text = with_cases(case("shop/web: {replicas: 1}", name='"a\\x1b[31mb"'))
    assert "\x1b" not in ran(tmp_path, text).out


def test_a_junit_file_that_cannot_be_written_is_no_answer(tmp_path: Path) -> None:
    found = run_all(tmp_path, "--junit", str(tmp_path / "no" / "junit.xml"))
    assert (found.status, "--junit" in found.err) == (2, True)


def test_the_schema_of_test_files_is_printed_and_in_the_repository() -> None:
    assert run("test", "--schema").fields == SCHEMA
    assert json.loads((SCHEMAS / "placementtest.v1alpha1.json").read_text()) == SCHEMA


def test_every_key_of_the_schema_is_described() -> None:
    for name, definition in {"": SCHEMA, **SCHEMA["$defs"]}.items():
        for key, each in definition.get("properties", {}).items():
            if "$ref" not in each and "const" not in each:
                assert each.get("description"), f"{name}.{key}"


@pytest.mark.parametrize("name", sorted(each.name for each in (EXAMPLE / "tests").glob("*_test.yaml")))
def test_the_example_passes_and_follows_the_schema(name: str) -> None:
    path = EXAMPLE / "tests" / name
    assert run("test", str(path)).status == 0
    value = yaml.safe_load(path.read_text())
    assert set(value) <= set(SCHEMA["properties"])
    cases = SCHEMA["$defs"]["Case"]["properties"]
    assert all(set(each) <= set(cases) for each in value["cases"])


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    for name, text in (("b", with_cases(PASSING)), ("a", with_cases(FAILING)), ("c", with_cases(SKIPPED))):
        (tmp_path / name).mkdir()
        written(tmp_path / name, text)
    folders = [str(tmp_path / each) for each in "abc"]
    one, other = (run("test", *each, "-o", "json").fields for each in (folders, folders[::-1]))
    without_times(one)
    without_times(other)
    assert one["files"] == sorted(other["files"], key=lambda each: each["path"])


def test_a_workload_in_place_is_used(tmp_path: Path) -> None:
    inline = """\
workloads:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec: {replicas: 2}
"""
    text = with_cases(case("shop/web: {clusters: {a: 1, b: 1}}")).replace(
        "workloads: [workloads.yaml]\n", inline
    )
    assert ran(tmp_path, text, files={"workloads.yaml": WORKLOADS}).status == 0


@pytest.mark.parametrize(
    ("variables", "flags", "coloured"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({"FORCE_COLOR": "1"}, ("--color=never",), False),
        ({"NO_COLOR": "1"}, ("--color=always",), True),
        ({"NO_COLOR": "1"}, (), False),
        ({"FORCE_COLOR": ""}, (), False),
    ],
)
def test_colours_are_those_of_a_terminal_unless_somebody_asks_for_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    flags: tuple[str, ...],
    coloured: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in run_all(tmp_path, *flags).out) == coloured
