"""The fleet of 30 clusters as files, and a function that runs the command on them."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karmada_advisor.cli import plan
from karmada_advisor.cli.flags.what_if import plan_parser
from karmada_advisor.whatif.plan.model import Plan
from karmada_scheduler import command
from tests.commands import Ran
from tests.unit.plan import fleet

NOW = datetime(2026, 11, 22, 14, 20, 7, tzinfo=UTC)


Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The fleet as files, and the directory ``change`` with two edited policies next to them."""
    folder = tmp_path_factory.mktemp("fleet")
    clusters = fleet.clusters()
    placed = fleet.placed(fleet.bindings(), clusters)
    edited(folder / "change")
    mistaken(folder / "mistakes")
    return fleet.write(
        folder,
        clusters=[each.manifest() for each in clusters],
        bindings=placed,
        policies=fleet.policies(),
    )


@pytest.fixture(scope="session")
def plans(files: list[str]) -> Callable[[tuple[str, ...]], Plan]:
    """Return the plan of the command for some flags; each is made once."""
    return functools.cache(lambda flags: planned(files, flags))


def planned(files: Sequence[str], flags: Sequence[str]) -> Plan:
    """Return the plan that the command makes of flags, with files next to those of the fleet."""
    with contextlib.chdir(Path(files[1]).parent), pytest.MonkeyPatch.context() as patch:
        patch.setattr("karmada_advisor.whatif.plan.answer.now", lambda: NOW)
        found, problems = plan.plan_of(plan_parser().parse_args([*files, *flags]))
    assert problems == []
    return found


def edited(folder: Path) -> None:
    """Write two edited policies, as a user has them in a repository."""
    folder.mkdir()
    services, apac, *_ = copy.deepcopy(fleet.policies())
    services["spec"]["placement"]["spreadConstraints"] = [
        {"spreadByField": "region", "minGroups": 3, "maxGroups": 3},
        {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 6},
    ]
    affinity = copy.deepcopy(apac["spec"]["placement"]["clusterAffinity"])
    affinity["fieldSelector"]["matchExpressions"].append(
        {"key": "region", "operator": "NotIn", "values": ["ap-south"]}
    )
    apac["spec"]["placement"]["clusterAffinity"] = affinity
    for each in (services, apac):
        del each["metadata"]["uid"], each["metadata"]["labels"]
        (folder / f"{each['metadata']['name']}.yaml").write_text(json.dumps(each, indent=1))


def mistaken(folder: Path) -> None:
    """Write an edited policy with mistakes."""
    folder.mkdir()
    batch = copy.deepcopy(fleet.policies()[2])
    del batch["metadata"]["uid"], batch["metadata"]["labels"]
    batch["spec"]["schedulerNam"] = "default-scheduler"
    batch["spec"]["placement"]["clusterAffinity"] = {
        "labelSelector": {"matchLabels": {"tier": "prd"}},
        "exclude": ["us-eats-7"],
    }
    (folder / "prod-batch.yaml").write_text(json.dumps(batch, indent=1))


@pytest.fixture
def run(files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``plan`` on the fleet; with ``of`` on other files."""
    monkeypatch.setattr("karmada_advisor.whatif.plan.answer.now", lambda: NOW)
    monkeypatch.chdir(Path(files[1]).parent)

    def run_(*flags: str, of: list[str] | None = None) -> Ran:
        try:
            status = command.main(["plan", *(files if of is None else of), *flags])
        except SystemExit as end:
            status = int(str(end.code))
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run_
