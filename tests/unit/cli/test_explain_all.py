"""``explain -A`` has all bindings by state and cause, and ``--watch`` follows one until it is placed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karmada_advisor.cli.explain_watch import PAUSE_SECONDS, watched
from karmada_advisor.explain.model import BindingHead, Explanation, Provenance, Tense
from karmada_advisor.explain.overview import ExplanationSummary
from karmada_advisor.state.model import BindingState, Placed, StateName, Target
from karmada_scheduler import command
from karmada_scheduler.testing import BindingBuilder, binding
from tests.document_schema import document_schema
from tests.unit.explain.fleet import failed_billing, fleet, placed_checkout
from tests.unit.views.test_schema import problems

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "explanationsummary.v1alpha1.json"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return put(tmp_path, [placed_checkout(), failed_billing(), binding("new", namespace="pay").replicas(1)])


def put(folder: Path, bindings: Sequence[BindingBuilder]) -> list[str]:
    for kind, builders in (("clusters", fleet()), ("bindings", bindings)):
        (folder / f"{kind}.yaml").write_text(
            "\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders)
        )
    return [f"--{kind}={folder}/{kind}.yaml" for kind in ("clusters", "bindings")]


def test_all_bindings_are_shown_by_state_and_cause_the_worst_first(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["explain", "-A", *files, "--width=160"]) == 1

    first, _, *groups = capsys.readouterr().out.splitlines()
    assert first == "3 bindings on 8 clusters: 1 placed, 1 not decided yet, 1 not placed"
    shown = [line for line in groups if line]
    assert shown[0].startswith("    1  NOT PLACED (NoClusterFit)   ClusterUnknown: ")
    assert shown[1].strip() == "pay/billing-deployment"
    assert shown[2].startswith("    1  NOT PLACED, not decided yet")
    assert shown[-1] == "`explain -n pay billing-deployment` says more about one."


@pytest.mark.parametrize(
    ("flags", "total", "status"),
    [
        (["-n", "shop"], 1, 0),
        (["-n", "pay"], 2, 1),
        (["--policy", "shop/checkout"], 1, 0),
        (["--on", "eu-west-1"], 1, 0),
        (["-n", "nowhere"], 0, 0),
    ],
)
def test_a_namespace_a_policy_or_a_cluster_narrows_the_list(
    files: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], total: int, status: int
) -> None:
    assert command.main(["explain", *flags, *files, "-o", "json"]) == status

    fields = json.loads(capsys.readouterr().out)
    assert (fields["kind"], fields["total"]) == ("ExplanationSummary", total)
    assert (
        list(problems(fields, document_schema(ExplanationSummary), document_schema(ExplanationSummary))) == []
    )


def test_the_schema_in_the_repository_is_that_of_the_model() -> None:
    assert json.loads(SCHEMA.read_text()) == document_schema(ExplanationSummary)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--on", "eu-wst-1"], "cluster eu-wst-1 does not exist. Nearest: eu-west-1"),
        (["web", "-A"], "give the name of one binding, or -A"),
        (["-A", "--watch"], "are about one binding"),
        (["web", "-n", "pay", "--watch"], "--watch needs a control plane"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    files: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], text: str
) -> None:
    assert command.main(["explain", *flags, *files]) == 2
    assert text in capsys.readouterr().err


def explanation(name: StateName, *targets: Target) -> Explanation:
    state = BindingState(name, Placed.ALL if targets else Placed.NONE, targets, 2)
    return Explanation(
        BindingHead("ResourceBinding", "shop", "web", 1, 2, {}), state, Provenance(Tense.RECOMPUTED, "")
    )


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def watch(found: Iterator[Explanation], seconds: float) -> tuple[list[str], float]:
    lines: list[str] = []
    time = Time()
    watched(
        lambda: next(found),
        lines.append,
        seconds=seconds,
        clock=lambda: time.now,
        now=lambda: datetime(2026, 11, 24, 10, 0, int(time.now), tzinfo=UTC),
        sleep=time.sleep,
    )
    return lines, time.now


def test_watching_shows_each_change_once_and_ends_when_the_binding_is_placed() -> None:
    waiting, done = explanation(StateName.NOT_DECIDED_YET), explanation(StateName.PLACED, Target("m1", 2))

    lines, took = watch(iter([waiting, waiting, done]), 60)

    assert lines == [
        "10:00:00  NOT PLACED, not decided yet",
        f"10:00:0{2 * PAUSE_SECONDS:.0f}  PLACED   m1 2",
    ]
    assert took == 2 * PAUSE_SECONDS


def test_watching_ends_after_its_time() -> None:
    waiting = explanation(StateName.NOT_DECIDED_YET)

    lines, took = watch(iter([waiting] * 9), 5)

    assert (len(lines), took) == (1, 5)


@pytest.mark.parametrize(
    ("flags", "total", "status"),
    [
        (["-l", "propagationpolicy.karmada.io/permanent-id"], 3, 1),
        (["-A", "-l", "!propagationpolicy.karmada.io/permanent-id"], 0, 0),
        (["-n", "shop", "-l", "propagationpolicy.karmada.io/permanent-id"], 1, 0),
        (["-n", "pay", "-l", "tier=nothing"], 0, 0),
    ],
)
def test_labels_narrow_the_list(
    files: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], total: int, status: int
) -> None:
    assert command.main(["explain", *flags, *files, "-o", "json"]) == status
    assert json.loads(capsys.readouterr().out)["total"] == total


def test_labels_and_a_name_exclude_each_other(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["explain", "web", "-l", "a=b", *files]) == 2
    assert "or -A, -l, --policy or --on, not both" in capsys.readouterr().err


def test_the_names_of_what_is_not_placed_can_be_given_to_explain_again(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["explain", "-A", "-o", "name", *files]) == 1
    names = capsys.readouterr().out.split()
    assert names == [
        "pay/resourcebinding.work.karmada.io/billing-deployment",
        "pay/resourcebinding.work.karmada.io/new-deployment",
    ]
    for each in names:
        assert command.main(["explain", "-q", each, *files]) == 1
        assert capsys.readouterr().out.startswith(f"pay/{each.rpartition('/')[2]}")


def test_within_one_namespace_names_are_those_of_kubectl(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(["explain", "-n", "pay", "-o", "name", *files])
    assert capsys.readouterr().out.split()[0] == "resourcebinding.work.karmada.io/billing-deployment"
    command.main(["explain", "shop/checkout-deployment", "-o", "name", *files])
    assert capsys.readouterr().out == "resourcebinding.work.karmada.io/checkout-deployment\n"


def test_wide_answers_break_no_line_and_fold_no_list(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for flags in (["pay/billing-deployment", "--no-remedies"], ["-A"]):
        command.main(["explain", *flags, *files, "-o", "wide", "--width=40"])
        wide = capsys.readouterr().out
        command.main(["explain", *flags, *files, "--all", "--width=4000"])
        assert wide == capsys.readouterr().out
        assert max(map(len, wide.splitlines())) > 100
