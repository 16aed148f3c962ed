"""docs/survive.md shows what ``survive`` prints about the files of docs/examples/survive."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karmada_advisor.cli.flags.what_if import survive_parser
from karmada_advisor.whatif.survive.classify import LossClass
from tests.commands import run
from tests.docs.test_plan import SHARED_FLAGS

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "survive.md").read_text()
EXAMPLE = ROOT / "docs" / "examples" / "survive"


def test_the_example_is_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "karmada_advisor.whatif.plan.fleet_rules.now",
        lambda: datetime(2026, 11, 26, 14, 20, 7, tzinfo=UTC),
    )
    with contextlib.chdir(EXAMPLE):
        ran = run("survive", "us-east-1", "--clusters", "clusters.yaml", "--bindings", "bindings.yaml")
    assert (ran.status, ran.err) == (1, "")
    assert "".join(f"    {line}".rstrip() + "\n" for line in ran.out.splitlines()) in DOCUMENT


def test_every_class_is_documented() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT, re.MULTILINE)) >= {
        each.value for each in LossClass
    }


def test_every_flag_is_documented() -> None:
    flags = set(re.findall(r"--[a-z-]+", survive_parser().format_help()))
    assert {each for each in flags - SHARED_FLAGS if each not in DOCUMENT} == set()
