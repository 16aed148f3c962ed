"""The exit status of each command: 0 all is well, 1 it is not, 2 there is no answer (docs/cli.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada_scheduler.command import main

ROOT = Path(__file__).parents[3]
FLEET = ROOT / "docs" / "examples" / "fleet"
FILES = [f"--clusters={FLEET / 'clusters.yaml'}", f"--bindings={FLEET / 'bindings.yaml'}"]
PLACED, UNPLACED = ["-n", "shop", "checkout-deployment"], ["-n", "pay", "billing-deployment"]
TESTS = ROOT / "docs" / "examples" / "tests"
TABLE = (ROOT / "docs" / "cli.md").read_text()

CASES = [
    ("explain", [*PLACED, *FILES], 0),
    ("explain", [*UNPLACED, *FILES], 1),
    ("explain", ["nobody", *FILES], 2),
    ("explain", ["-n", "shop", *FILES], 0),
    ("explain", ["-A", *FILES], 1),
    ("explain", ["-A", "--clusters=nowhere.yaml", "--bindings=nowhere.yaml"], 2),
    ("why-not", [*UNPLACED, "us-east-1", *FILES], 0),
    ("why-not", [*PLACED, "us-east-1", "--max-runs=1", "--replicas=2000000", *FILES], 1),
    ("why-not", [*PLACED, "nowhere", *FILES], 2),
    ("plan", ["--without=eu-west-1", "--fail-on=stuck", *FILES], 0),
    ("plan", ["--without=eu-west-1", "--fail-on=moved", *FILES], 1),
    ("plan", ["--without=nowhere", *FILES], 2),
    ("rebalance", ["--max-moves=1", *FILES], 0),
    ("rebalance", ["--max-moves=1", "--goal=nonsense", *FILES], 2),
    ("survive", ["--fail-on=dark", *FILES], 0),
    ("survive", ["--fail-on=not-evicted", "--loss=itself", *FILES], 1),
    ("survive", ["nowhere", *FILES], 2),
    ("simulate", ["--clusters", str(FLEET / "clusters.yaml"), "--bindings", str(FLEET / "bindings.yaml")], 1),
    ("simulate", ["--clusters=nowhere.yaml", "--bindings=nowhere.yaml"], 2),
    ("test", [str(TESTS)], 0),
    ("test", [str(TESTS), "--run=no such case"], 2),
    ("plugins", [], 0),
    ("plugins", ["--plugins=NoSuchPlugin"], 1),
    ("completion", ["bash"], 0),
]


@pytest.mark.parametrize(("command", "arguments", "expected"), CASES)
@pytest.mark.usefixtures("capsys")
def test_the_exit_status_tells_whether_all_is_well_and_whether_there_is_an_answer(
    command: str, arguments: list[str], expected: int
) -> None:
    assert main([command, *arguments]) == expected


@pytest.mark.parametrize("command", sorted({command for command, _, _ in CASES}))
def test_wrong_flags_have_the_status_2(command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--nonsense"])

    assert ended.value.code == 2
    assert f"| `{command}` |" in TABLE
