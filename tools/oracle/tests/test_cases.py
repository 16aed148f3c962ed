"""Cases that once differed, or in which upstream is random or has a defect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tools.oracle.compare_scenario import compare_scenario
from tools.oracle.program import Oracle, ensure

pytestmark = pytest.mark.e2e  # runs the real Go core

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle(ensure(), patience_seconds=20) as running:
        yield running


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in CASES])
def test_saved_cases_have_equal_results(path: Path, oracle: Oracle) -> None:
    scenario = yaml.safe_load(path.read_text())
    tally = compare_scenario(scenario, oracle)
    assert [line for _, _, lines in tally.found for line in lines] == []
    has_defect = "defect" in scenario and "decisionsOf" not in scenario  # others are of a later version
    assert list(tally.defects) == ([scenario["defect"]] if has_defect else [])
