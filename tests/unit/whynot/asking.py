"""Asks why-not about objects that builders describe, and checks every remedy by simulating the patched files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karmada_scheduler.testing import BindingBuilder, ClusterBuilder
from tests.unit.whynot.checker import Checker
from tests.unit.whynot.questions import CheckedQuestion


@dataclass(frozen=True)
class Asked:
    """An answer whose remedies were checked."""

    fields: dict[str, Any]

    @property
    def primary(self) -> str:
        """The code of the primary cause; "" if the goal holds."""
        [code] = [each["code"] for each in self.fields["causes"] if each.get("primary")] or [""]
        return str(code)

    @property
    def remedies(self) -> list[dict[str, Any]]:
        """The remedies that concern the cluster in question, if there is one."""
        goal = self.fields["goal"]["type"]
        return [each for each in self.fields["remedies"] if each["usesCluster"] or goal != "onCluster"]

    @property
    def sides(self) -> list[list[str]]:
        """The sides of each remedy."""
        return [[edit["side"] for edit in each["edits"]] for each in self.remedies]

    @property
    def ops(self) -> list[list[str]]:
        """The kinds of the edits of each remedy."""
        return [[edit["op"] for edit in each["edits"]] for each in self.remedies]

    def result(self, *ops: str) -> dict[str, int]:
        """Return the placement after the remedy that consists of these kinds of edits."""
        [found] = [
            each for each in self.remedies if sorted(edit["op"] for edit in each["edits"]) == sorted(ops)
        ]
        return placement(found["result"])

    def edit(self, *ops: str) -> dict[str, Any]:
        """Return the first edit of the remedy that consists of these kinds of edits."""
        [found] = [
            each for each in self.remedies if sorted(edit["op"] for edit in each["edits"]) == sorted(ops)
        ]
        edit: dict[str, Any] = next(each for each in found["edits"] if each["op"] == ops[0])
        return edit


def placement(result: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return replicas by cluster."""
    return {each["name"]: each["replicas"] for each in result}


def ask(
    binding: BindingBuilder,
    *clusters: ClusterBuilder,
    cluster: str = "",
    peers: Sequence[BindingBuilder] = (),
    options: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> Asked:
    """Return the answer; simulate over the patched files gives every promised result, and leaving out a part does not."""
    question = CheckedQuestion(
        "test",
        [each.manifest() for each in clusters],
        [binding.manifest(), *(each.manifest() for each in peers)],
        binding.manifest(),
        cluster,
        flags,
        options if cluster or options else ("--placed",),
    )
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Path(folder))
        _, fields = checker.ask(question)
        assert checker.check(question).problems == []
    return Asked(fields)
