"""The command rebalance: its output, its manifests, its exit status, and what it says about bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from karmada_advisor.whatif.rebalance.model import RebalanceProposal
from tests import commands
from tests.commands import Ran
from tests.document_schema import document_schema
from tests.unit.rebalance import fleet
from tests.unit.views.test_schema import problems

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "rebalanceproposal.v1alpha1.json"
Run = Callable[..., Ran]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return fleet.files(tmp_path)


@pytest.fixture
def run(files: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run ``rebalance`` on the files."""
    monkeypatch.setattr("karmada_advisor.whatif.plan.fleet_rules.now", lambda: fleet.NOW)
    monkeypatch.chdir(tmp_path)
    return lambda *flags: commands.run("rebalance", *files, *flags)


@pytest.mark.parametrize("width", fleet.WIDTHS)
@pytest.mark.parametrize("goal", fleet.GOALS)
def test_the_text_is_as_in_the_golden_files(run: Run, goal: str, width: int) -> None:
    ran = run("--max-moves", "40", "--goal", goal, "--min-kept", "25%", "--width", str(width))

    assert (ran.status, ran.err) == (0, "")
    assert ran.out == fleet.golden(goal, width).read_text()
    assert max(map(len, ran.out.splitlines())) <= width


def test_json_follows_the_schema_in_the_repository_and_yaml_holds_the_same(run: Run) -> None:
    fields = run("--max-moves", "40", "-o", "json").fields

    schema = document_schema(RebalanceProposal)
    assert json.loads(SCHEMA.read_text()) == schema
    assert list(problems(fields, schema, schema)) == []
    assert yaml.safe_load(run("--max-moves", "40", "-o", "yaml").out) == fields


def test_the_manifests_are_one_workload_rebalancer_per_batch_with_a_generated_name(
    run: Run, tmp_path: Path
) -> None:
    ran = run("--max-moves", "40", "--min-kept", "0", "--batch-size", "3", "--write-to", "out")

    names = sorted(each.name for each in (tmp_path / "out").iterdir())
    assert len(names) > 1
    assert "kubectl create -f out/batch-1.yaml" in " ".join(ran.out.split())
    fields = run("--max-moves", "40", "--min-kept", "0", "--batch-size", "3", "-o", "json").fields
    for name, batch, manifest in zip(names, fields["batches"], fields["manifests"], strict=True):
        assert yaml.safe_load((tmp_path / "out" / name).read_text()) == manifest
        assert manifest["kind"] == "WorkloadRebalancer"
        fleet = fields["provenance"]["fleet"]
        assert manifest["metadata"] == {"generateName": f"rebalance-{fleet}-{batch['number']}-"}
        assert manifest["spec"]["workloads"] == [
            {"apiVersion": "apps/v1", "kind": "Deployment", **_named(move)} for move in batch["moves"]
        ]


def _named(move: dict[str, str]) -> dict[str, str]:
    return {"namespace": move["namespace"], "name": move["name"].removesuffix("-deployment")}


def test_manifests_do_not_replace_files(run: Run) -> None:
    assert run("--max-moves", "40", "--write-to", "out").status == 0

    ran = run("--max-moves", "40", "--write-to", "out")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "Error: --write-to: out/batch-1.yaml exists; name an empty directory\n"


def test_another_fleet_than_expected_has_no_proposal(run: Run) -> None:
    fleet = run("--max-moves", "40", "-o", "json").fields["provenance"]["fleet"]

    assert run("--max-moves", "40", "--expect", fleet).status == 0
    ran = run("--max-moves", "40", "--expect", "000000")
    assert ran.status == 2
    assert ran.err == f"Error: --expect 000000: the fleet is {fleet} by now; propose again\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "--max-moves"),
        (("--max-moves", "0"), "expected a number from 1 to 2147483647, got '0'"),
        (("--max-moves", "ten"), "expected a number from 1 to 2147483647, got 'ten'"),
        (("--max-moves", "9", "--min-kept", "150%"), "expected a share from 0% to 100%, got '150%'"),
        (("--max-moves", "9", "--min-gain", "nan"), "expected a number from 0, got 'nan'"),
        (
            ("--max-moves", "9", "--goal", "fill"),
            "--goal: expected spread, consolidate or fill=CLUSTER, got fill",
        ),
        (("--max-moves", "9", "--goal", "fill=neu"), "--goal: cluster neu does not exist. Nearest: new"),
        (("--max-moves", "9", "--write-to", "/proc/no"), "--write-to: /proc/no: No such file or directory"),
    ],
)
def test_bad_input_is_named(run: Run, flags: tuple[str, ...], said: str) -> None:
    ran = run(*flags)

    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    ("flags", "excluded"),
    [(("-n", "default"), 0), (("--exclude", "*"), 15), (("--exclude", "default/web-*"), 12)],
)
def test_namespaces_and_patterns_choose_the_bindings(run: Run, flags: tuple[str, ...], excluded: int) -> None:
    fields = run("--max-moves", "40", "-o", "json", *flags).fields

    assert sum(each["count"] for each in fields["skipped"] if each["reason"] == "excluded") == excluded


def test_feature_gates_of_the_scheduler_are_those_of_the_decisions(run: Run) -> None:
    one = run("--max-moves", "40", "-o", "json").fields
    other = run(
        "--max-moves", "40", "--feature-gates", "SchedulingOvercommitProtection=true", "-o", "json"
    ).fields

    assert one["fingerprint"] != other["fingerprint"]
