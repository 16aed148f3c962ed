"""``explain`` runs Reserve and Permit as ``simulate`` does, and names the plugin that refuses there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler import command
from karmada_scheduler.testing import BindingBuilder, binding, cluster

PLUGIN = """
from karmada_scheduler.framework import SUCCESS, Result

class Limit:
    name = "Limit"
    taken = 0

    def {first}(self, context, /):
        return {answer}
{more}
"""
RESERVE = """
    def unreserve(self, context, /):
        type(self).taken -= sum(each.replicas for each in context.targets)
"""
LIMITED = "self._reserve(context.targets)"
COUNTING = """
    def _reserve(self, targets):
        type(self).taken += sum(each.replicas for each in targets)
        if type(self).taken > 10:
            return Result.unschedulable(f"{type(self).taken} of 10 replicas")
        return SUCCESS
"""


def ask(
    folder: Path, capsys: pytest.CaptureFixture[str], asked: BindingBuilder, plugin: str, *flags: str
) -> dict[str, Any]:
    (folder / "plugins").mkdir()
    (folder / "plugins" / "limit.py").write_text(plugin)
    for kind, builders in (("clusters", [cluster("m1"), cluster("m2")]), ("bindings", [asked])):
        text = "\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders)
        (folder / f"{kind}.yaml").write_text(text)
    files = [f"--{kind}={folder}/{kind}.yaml" for kind in ("clusters", "bindings")]
    plugins = [f"--plugin-dir={folder / 'plugins'}", "--plugins=*,Limit"]
    command.main(["explain", "web-deployment", "-n", "shop", *files, *plugins, "-o", "json", *flags])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def web(replicas: int) -> BindingBuilder:
    placed = binding("web", namespace="shop").replicas(replicas).static_weights(m1=1, m2=1)
    return placed.condition(
        type="Scheduled", status="False", reason="Unschedulable", message=f"{replicas} of 10 replicas"
    )


def limited() -> str:
    return PLUGIN.format(first="reserve", answer=LIMITED, more=RESERVE + COUNTING)


def test_a_refusal_at_reserve_is_the_cause_and_names_the_plugin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ask(tmp_path, capsys, web(12), limited())
    assert (found["causes"][0]["code"], found["causes"][0]["evidence"]) == (
        "DecisionRefused",
        {"plugin": "Limit", "point": "Reserve", "reason": "12 of 10 replicas"},
    )
    assert found["wouldBe"]["outcome"] == "not placed"
    assert "refused at Reserve by Limit: 12 of 10 replicas" in found["wouldBe"]["text"]


def test_a_remedy_is_verified_with_reserve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(tmp_path, capsys, web(12), limited(), "--timeout=5s")
    for remedy in found["remedies"]:
        assert sum(each["replicas"] for each in remedy["result"]) <= 10


def test_what_reserve_lets_through_is_taken_back_after_each_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ask(tmp_path, capsys, web(8), limited())
    assert found["wouldBe"]["placement"] == [{"name": "m1", "replicas": 4}, {"name": "m2", "replicas": 4}]


@pytest.mark.parametrize("point", ["select", "assign"])
def test_a_refusal_at_select_or_assign_names_the_plugin_and_the_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], point: str
) -> None:
    plugin = PLUGIN.format(first=point, answer='Result.unschedulable("not today")', more="")
    found = ask(tmp_path, capsys, web(4), plugin, "--no-remedies")
    cause = found["causes"][0]
    label = point.capitalize()
    assert (cause["code"], cause["stage"]) == (
        "DecisionRefused",
        {"select": "select", "assign": "divide"}[point],
    )
    assert cause["evidence"] == {"plugin": "Limit", "point": label, "reason": "not today"}
    assert cause["text"] == f"the decision is refused at {label} by Limit: not today"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('Result.unschedulable("not today")', "the decision is refused at Permit by Limit: not today"),
        (
            'Result.wait(60, "2 of 3 are here")',
            "the decision is held back at Permit by Limit: 2 of 3 are here",
        ),
    ],
)
def test_permit_refuses_or_holds_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: str, text: str
) -> None:
    plugin = PLUGIN.format(first="permit", answer=answer, more="").replace("def permit", "async def permit")
    found = ask(tmp_path, capsys, web(4), plugin, "--no-remedies")
    assert found["causes"][0]["text"] == text
