"""Checks are run within their time, are not repeated, and end in one report."""

from pathlib import Path

import pytest

from tools.prove import __main__ as prove
from tools.prove.__main__ import CHECKS, FAILED, LEFT_OUT, OK, STOPPED, Check, command, main, minutes_of, run

MAKEFILE = """
good:
\t@echo x >> runs
\t@echo "7 cases, 0 different"
\t@echo "the end | of it"
bad:
\t@echo "7 cases, 2 different"; exit 1
seeded:
\t@echo $(SEED) >> seeds; echo "1 cases, 0 different"
slow:
\t@echo "1 cases, 0 different"; sleep 100
given:
\t@echo "given '$(ARGS)', 0 different"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    page = tmp_path / "reliability.md"
    page.write_text(
        "# Reliability\n\n<!-- make prove: made by tools.report -->\n\n<!-- end of make prove -->\n"
    )
    for name, value in (("ROOT", tmp_path), ("FOLDER", tmp_path / "kept"), ("PAGE", page)):
        monkeypatch.setattr(prove, name, value)
    monkeypatch.setattr(prove, "_git", lambda *arguments: "abc" if "rev-parse" in arguments else "")
    return tmp_path


def check(name: str, *, least_minutes: float = 0.0, variables: tuple[str, ...] = ()) -> Check:
    return Check(name, "things", 1.0, variables, "different", least_minutes)


@pytest.mark.parametrize(
    ("name", "minutes", "result", "figure"),
    [
        ("good", 1.0, OK, "7 cases, 0 different"),
        ("bad", 1.0, FAILED, "7 cases, 2 different"),
        ("slow", 0.01, STOPPED, ""),
    ],
)
def test_a_check_has_its_result_and_its_figures(
    root: Path, name: str, minutes: float, result: str, figure: str
) -> None:
    outcome = run(check(name), minutes, 3, root / "log")
    assert (outcome.result, outcome.figure) == (result, figure)


def test_a_check_for_which_the_time_is_too_short_is_left_out(root: Path) -> None:
    outcome = run(check("bad", least_minutes=5.0), 4.0, 3, root / "log")
    assert (outcome.result, outcome.figure) == (LEFT_OUT, "it needs 5 minutes")


def test_a_check_with_a_seed_is_repeated_with_the_next_one_until_its_time_is_over(root: Path) -> None:
    outcome = run(check("seeded", variables=("SEED={seed}",)), 0.02, 3, root / "log")
    seeds = [int(seed) for seed in (root / "seeds").read_text().split()]
    assert outcome.result == OK
    assert outcome.runs > 1
    assert seeds[: outcome.runs] == list(range(3, 3 + outcome.runs))


def test_a_check_with_a_limit_of_its_own_gets_its_minutes() -> None:
    limited = check("good", variables=("ARGS=--minutes {minutes} --seed {seed}",))
    assert command(limited, 50.0, 3)[2:] == ["good", "ARGS=--minutes 5 --seed 3"]
    assert not limited.is_repeated


def test_the_arguments_of_make_prove_are_not_those_of_its_checks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", r" -- ARGS=--hours\ 1")
    assert run(check("given"), 1.0, 3, root / "log").figure == "given '', 0 different"


def test_a_run_that_was_interrupted_goes_on_and_the_page_has_the_report(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prove, "CHECKS", (check("good"),))
    assert main(["--hours", "0.1", "--seed", "3", "--only", "good"]) == 0
    monkeypatch.setattr(prove, "CHECKS", (check("good"), check("bad")))
    assert main(["--hours", "0.1", "--seed", "3", "--only", "good", "bad"]) == 1
    assert (root / "runs").read_text() == "x\n"
    page = (root / "reliability.md").read_text()
    assert "commit abc, seeds from 3 on, within 0.1 h: 1 ok, 1 FAILED." in page
    assert "| `bad` | things | FAILED | 1 | 7 cases, 2 different |" in page


def test_checks_get_what_they_need_and_share_the_rest() -> None:
    small, large = check("small"), check("large", least_minutes=90.0)
    control_plane = check("plane", least_minutes=8.0)
    assert minutes_of((small, control_plane, large), 60.0) == {"small": 30.0, "plane": 30.0, "large": 0.0}
    many = [check(f"small-{number}") for number in range(12)]
    given = minutes_of((*many, control_plane), 80.0)
    assert (given["plane"], given["small-0"]) == (8.0, 6.0)
    hour = minutes_of(CHECKS, 60.0)
    assert sum(hour.values()) == pytest.approx(60.0)
    assert [name for name, minutes in hour.items() if not minutes] == [
        "mutants",
        "soak",
        "fuzz-loop",
        "chaos",
    ]


def test_the_checks_are_targets_of_the_makefile_and_share_the_time() -> None:
    makefile = (Path(prove.__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{each.name}:" in makefile for each in CHECKS)
    assert sum(each.share for each in CHECKS) == pytest.approx(1.0)
