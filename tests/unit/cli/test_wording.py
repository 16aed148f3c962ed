"""What the commands print about one of each: the singular, and one full stop."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from karmada_advisor.explain.amounts import counted
from karmada_scheduler.command import main
from karmada_scheduler.testing import ClusterBuilder, binding, cluster

_PLURAL_OF_ONE = re.compile(
    r"(?<![\d,./])(?<!of )1 (?:more |other )?(?:binding|replica|cluster|problem|decision|part|change|reason|move|template|region)s\b"
)
_TWO_STOPS = re.compile(r"(?<!\.)\.\.(?!\.)")


def test_a_number_has_its_noun_and_verb() -> None:
    assert counted(1, "binding moves", "bindings move") == "1 binding moves"
    assert counted(2000, "binding moves", "bindings move") == "2,000 bindings move"
    assert counted(0, "replica") == "0 replicas"


def _files(folder: Path, clusters: list[ClusterBuilder]) -> list[str]:
    for name, builders in (
        ("clusters", clusters),
        ("bindings", [binding("web").replicas(1, cpu=1).dynamic_weight().names("m1").on(m1=1).applied()]),
    ):
        items = [each.manifest() for each in builders]
        (folder / f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return [f"--clusters={folder / 'clusters.json'}", f"--bindings={folder / 'bindings.json'}"]


@pytest.mark.parametrize(
    "command",
    [
        "simulate",
        "explain deployment/web",
        "why-not deployment/web m2",
        "why-not deployment/web --placed",
        "why-not deployment/web m1",
        "why-not --cluster m2",
        "plan --cordon m2",
        "plan --without m1",
        "plan --scale default/web=2",
        "plan --without m1 -o markdown",
        "rebalance --max-moves 1",
        "survive",
        "survive m1",
    ],
)
@pytest.mark.parametrize("number", [1, 2], ids=lambda number: f"{number} clusters")
def test_one_of_each_is_in_the_singular(
    command: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters = [cluster("m1").capacity(cpu=4), cluster("m2").capacity(cpu=4)][:number]
    main([*command.split(), *_files(tmp_path, clusters)])
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert not _PLURAL_OF_ONE.findall(text), text
        assert not _TWO_STOPS.findall(text), text
    assert captured.out or number == 1, captured.err


@pytest.mark.parametrize(
    "command",
    [
        "why-not deployment/web m2 --allow configuration",
        "plan --without m1 --current-plugin-dir PLUGINS",
    ],
)
def test_a_warning_about_plugins_is_printed_once(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "ledger.py").write_text(
        "from karmada_scheduler.framework import SUCCESS\n"
        "class Ledger:\n    name = 'Ledger'\n    async def pre_bind(self, context): return SUCCESS\n"
    )
    clusters = [cluster("m1").capacity(cpu=4), cluster("m2").capacity(cpu=4)]
    given = command.replace("PLUGINS", str(plugins)).split()
    main([*given, f"--plugin-dir={plugins}", *_files(tmp_path, clusters)])
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("not called, because nothing is written: Ledger (PreBind)") == 1
