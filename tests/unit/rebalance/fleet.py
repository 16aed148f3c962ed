"""Three clusters, of which one is empty, and bindings of every kind; as files, and the proposals about them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karmada_advisor.cli import rebalance
from karmada_advisor.cli.flags.what_if import rebalance_parser
from karmada_advisor.views.rebalance_text import rebalance_text
from karmada_advisor.views.text import Style
from karmada_advisor.whatif.rebalance.model import RebalanceProposal
from karmada_scheduler.testing import binding
from tests.unit.plan.fleet import write
from tests.unit.rebalance.proposing import member, settled, workload

GOLDEN = Path(__file__).parent / "golden"
GOALS = ("spread", "fill=new", "consolidate")
WIDTHS = (80, 100, 160)
NOW = datetime(2026, 11, 22, 14, 20, 7, tzinfo=UTC)


def files(folder: Path) -> list[str]:
    """Write the fleet; return the flags that name the files."""
    made = [
        *(workload(f"web-{number:02}", eu1=6, eu2=2) for number in range(12)),
        settled(workload("agg", eu1=3, eu2=1).aggregated()),
        settled(workload("tied", eu1=4, eu2=4).spread("cluster", 2, 2)).annotation(
            "clusterpropagationpolicy.karmada.io/name", "two"
        ),
        settled(binding("copied").replicas(2, cpu="1").duplicated().on(eu1=2)),
    ]
    clusters = (member("eu1", used=80), member("eu2", used=60), member("new"))
    return write(
        folder,
        clusters=[each.manifest() for each in clusters],
        bindings=[each.manifest() for each in made],
    )


def proposed(written: Sequence[str], goal: str) -> RebalanceProposal:
    """Return the proposal of the command about the files."""
    flags = [*written, "--max-moves", "40", "--min-kept", "25%", "--goal", goal]
    with contextlib.chdir(Path(written[1]).parent), pytest.MonkeyPatch.context() as patch:
        patch.setattr("karmada_advisor.whatif.plan.fleet_rules.now", lambda: NOW)
        found = rebalance.answer(rebalance_parser().parse_args(flags))
    assert found.status == 0
    assert isinstance(found.document, RebalanceProposal)
    return found.document


def golden(goal: str, width: int) -> Path:
    """Return the file with the expected text."""
    return GOLDEN / f"{goal.partition('=')[0]}-{width}.txt"


def text(proposal: RebalanceProposal, width: int) -> str:
    """Return the text as the command prints it."""
    return rebalance_text(proposal, Style(width))
