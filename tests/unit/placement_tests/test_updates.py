"""``--update`` rewrites the clusters of expectations that do not hold, and nothing else; ``--github`` annotates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import Ran, run
from tests.unit.placement_tests.files import WORKLOADS, case, ran, with_cases, written


def updated(folder: Path, text: str, workloads: str = WORKLOADS) -> tuple[Ran, str]:
    """Return the run, and the file afterwards."""
    path = written(folder, text, {"workloads.yaml": workloads})
    return run("test", str(path), "--update"), path.read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("shop/web: {clusters: {a: 1, b: 2}}", "shop/web: {clusters: {a: 2, b: 2}}"),
        ("shop/web: {clusters: {b: 4}, type: First}", "shop/web: {clusters: {a: 2, b: 2}, type: First}"),
        ("shop/web: {clusters: [a]}", "shop/web: {clusters: [a, b]}"),
        (
            "shop/web:\n  clusters:\n    a: 3   # most\n    b: 1\n  # the end\n  type: First",
            "shop/web:\n  clusters:\n    a: 2   # most\n    b: 2\n  # the end\n  type: First",
        ),
        (
            "shop/web:\n  clusters:\n    a: 4\n  # the end\n  type: First",
            "shop/web:\n  clusters:\n    a: 2\n    b: 2\n  # the end\n  type: First",
        ),
        (
            "shop/web:\n  clusters:\n  - a\n  type: First",
            "shop/web:\n  clusters:\n  - a\n  - b\n  type: First",
        ),
    ],
)
def test_clusters_become_what_there_is_and_all_else_stays(tmp_path: Path, before: str, after: str) -> None:
    found, text = updated(tmp_path, with_cases(case(before)))
    assert found.status == 1
    assert text == with_cases(case(after))
    assert "+++" in found.out
    assert run("test", str(tmp_path)).status == 0


def test_what_depends_on_the_uid_becomes_names(tmp_path: Path) -> None:
    odd = WORKLOADS.replace("replicas: 4", "replicas: 3")
    _, text = updated(tmp_path, with_cases(case("shop/web: {clusters: {a: 2, b: 1}}")), odd)
    assert "shop/web: {clusters: [a, b]}" in text
    assert run("test", str(tmp_path)).status == 0


@pytest.mark.parametrize(
    ("expect", "given"),
    [
        ("shop/web: {replicas: 5, policy: none}", ""),
        ("shop/web: {that: total() == 5}", ""),
        ("shop/web: {notPlaced: NoClusterFit}", ""),
        ("shop/web: {clusters: {a: 4}}", "without: [a, b]"),
        ("shop/settings: {clusters: [a]}", ""),
    ],
)
def test_intentions_stay(tmp_path: Path, expect: str, given: str) -> None:
    before = with_cases(case(expect, given=given))
    found, text = updated(tmp_path, before)
    assert (found.status, text) == (1, before)
    assert "+++" not in found.out


def test_the_expectations_of_steps_are_updated_too(tmp_path: Path) -> None:
    then = "- without: a\n  expect: {shop/web: {clusters: {a: 2, b: 2}}}"
    _, text = updated(tmp_path, with_cases(case("shop/web: {clusters: {a: 1, b: 3}}", then=then)))
    assert "shop/web: {clusters: {a: 2, b: 2}}" in text
    assert "expect: {shop/web: {clusters: {b: 4}}}" in text


def test_line_ends_and_what_is_good_stay_byte_for_byte(tmp_path: Path) -> None:
    good, bad = (
        with_cases(case("shop/web: {clusters: {a: 2, b: 2}}")),
        with_cases(case("shop/web: {clusters: {a: 1, b: 2}}")),
    )
    path = written(tmp_path, "")
    path.write_bytes(bad.replace("\n", "\r\n").encode())
    assert run("test", str(path), "--update").status == 1
    assert path.read_bytes() == good.replace("\n", "\r\n").encode()
    assert run("test", str(path), "--update").status == 0
    assert path.read_bytes() == good.replace("\n", "\r\n").encode()


def test_a_file_that_cannot_be_written_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path, _content: bytes) -> int:
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, with_cases(case("shop/web: {clusters: {a: 1, b: 2}}")))
    monkeypatch.setattr(Path, "write_bytes", refuse)
    found = run("test", str(path), "--update")
    assert (found.status, "--update: " in found.err) == (2, True)


def test_annotations_name_file_line_and_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    written(tmp_path / "sub", with_cases(case("shop/web: {replicas: 5}", name="'100%: one, two'")))
    found = run("test", ".", "--github")
    [line] = [each for each in found.out.splitlines() if each.startswith("::")]
    assert line == (
        "::error file=sub/web_test.yaml,line=13,col=26,title=100%25%3A one%2C two::"
        "shop/web replicas%0Aexpected 5, got 4"
    )


def test_a_file_that_is_not_run_is_annotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = ran(tmp_path, with_cases("- name: one\n"), "--github")
    assert (
        "web_test.yaml,line=11,col=3,title=the file is not run::one: a case needs expect or then" in found.out
    )
