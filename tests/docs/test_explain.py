"""docs/explain.md shows what ``explain`` prints, and lists every code of the sources."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from karmada_advisor.explain.codes import CODES
from karmada_advisor.explain.model import Stage
from karmada_scheduler import command
from karmada_scheduler_plugins.registry import IN_TREE
from tests.unit.explain.fleet import failed_billing, fleet, manifests, placed_checkout

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "explain.md").read_text()
_EXPLAIN = ROOT / "advisor/karmada_advisor/explain"
SOURCES = "".join(
    path.read_text()
    for path in (
        *_EXPLAIN.glob("causes*.py"),
        *(_EXPLAIN.parent / "state").glob("*.py"),
        _EXPLAIN / "trace_candidates.py",
        _EXPLAIN / "trace_select.py",
        _EXPLAIN / "unclaimed.py",
    )
)
OF_PLUGINS = frozenset(code for plugin in IN_TREE.values() for code in getattr(plugin, "codes", ()))

_LIST = re.compile(r"^\*\*(\w+)\*\*\n\n((?:- `\w+`: .+\n)+)", re.MULTILINE)
_CODE = re.compile(r"^- `(\w+)`", re.MULTILINE)
_QUOTED = re.compile(r'"([A-Z]\w+)"')


def documented() -> dict[str, str]:
    """Return the stage of each code."""
    return {code: stage for stage, rows in _LIST.findall(DOCUMENT) for code in _CODE.findall(rows)}


def test_the_example_is_the_output() -> None:
    golden = (ROOT / "tests/unit/cli/golden" / "explain-checkout-100.txt").read_text()
    shown = "".join(f"    {line}".rstrip() + "\n" for line in golden.splitlines())
    assert shown in DOCUMENT


def test_every_code_of_the_sources_is_documented() -> None:
    found = set(re.findall(r'(?:Cause|Evidence)\(\s*"(\w+)"', SOURCES)) | OF_PLUGINS
    assert sorted(found - set(documented())) == []


def test_every_documented_code_is_in_the_sources() -> None:
    why_not = (_EXPLAIN.parent / "cli" / "whynot.py").read_text()
    assert sorted(set(documented()) - set(_QUOTED.findall(SOURCES + why_not)) - OF_PLUGINS) == []


def test_the_codes_that_tests_may_expect_are_those_of_the_documentation() -> None:
    assert set(documented()) == set(CODES)


def test_each_stage_is_one_of_the_model() -> None:
    assert set(documented().values()) <= {stage.value for stage in Stage}


def test_the_command_in_the_readme_prints_the_answer_in_the_readme(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter((ROOT / "README.md").read_text().splitlines())
    folder = next(
        line.removeprefix("    $ cd ") for line in lines if line.startswith("    $ cd docs/examples/fleet")
    )
    shown_command = next(lines).removeprefix("    $ karmada-pyscheduler ").split()
    block = takewhile(lambda line: not line or line.startswith("    "), lines)
    shown = [line.removeprefix("    ") for line in block]
    monkeypatch.chdir(ROOT / folder)
    monkeypatch.delenv("NO_COLOR", raising=False)

    status = command.main(shown_command)

    captured = capsys.readouterr()
    assert (status, captured.err) == (1, "")
    assert captured.out.splitlines() == shown[:-1]


def test_the_files_of_the_example_are_the_fleet_of_the_tests() -> None:
    folder = ROOT / "docs/examples/fleet"
    assert list(yaml.safe_load_all((folder / "clusters.yaml").read_text())) == manifests(*fleet())
    assert list(yaml.safe_load_all((folder / "bindings.yaml").read_text())) == manifests(
        placed_checkout(), failed_billing()
    )
