"""Asks one question, and checks every remedy by simulating the patched files."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karmada_scheduler.command import main
from tests.unit.whynot.json_patch import PatchError, applied
from tests.unit.whynot.questions import CheckedQuestion

Manifests = list[dict[str, Any]]


@dataclass
class CheckResult:
    """What a check found.

    Attributes:
        outcome: ``answered``, ``none found``, ``holds``, or ``refused`` for an exit status of 2.
        remedies: Number of remedies.
        parts: Number of edits of each remedy.
        simulated: Simulations of patched files.
        inapplicable: Patches without one of their operations that could not be applied.
        problems: What is wrong; empty if all claims hold.
        seconds: Time of the search, as printed.
        decisions: Decisions of the search, as printed.
        primary: The code of the primary cause.
        complete: Whether the search ended because nothing was left to try.
    """

    outcome: str
    remedies: int = 0
    parts: list[int] = field(default_factory=list)
    simulated: int = 0
    inapplicable: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    decisions: int = 0
    primary: str = ""
    complete: bool = True


class Checker:
    """Checks questions with files in one directory."""

    def __init__(self, folder: Path, *, timeout: str = "30s") -> None:
        self._clusters, self._bindings = folder / "clusters.json", folder / "bindings.json"
        self._timeout = timeout

    def ask(self, question: CheckedQuestion) -> tuple[int, dict[str, Any]]:
        """Return exit status and answer of ``why-not``; the answer is empty with status 2."""
        self._write(question.clusters, question.bindings)
        metadata = question.binding["metadata"]
        name = f"{'rb' if 'namespace' in metadata else 'crb'}/{metadata['name']}"
        target = [] if question.options == ("--placed",) else [question.cluster]
        status, out = _run(
            ["why-not", name, *target, "-n", metadata.get("namespace", ""), *self._files(), *question.flags,
             *question.options, "-o", "json", "--timeout", self._timeout]
        )  # fmt: skip
        return status, json.loads(out) if out else {}

    def check(self, question: CheckedQuestion) -> CheckResult:
        """Ask a question and check the answer."""
        status, answer = self.ask(question)
        if not answer:
            return CheckResult("refused")
        result = CheckResult(
            "holds" if answer["nextHolds"] else "answered" if answer["remedies"] else "none found",
            len(answer["remedies"]),
            [len(each["apply"]) for each in answer["remedies"]],
            seconds=answer["search"]["seconds"],
            decisions=answer["search"]["decisions"],
            primary=next((each["code"] for each in answer["causes"] if each["primary"]), ""),
            complete=answer["search"]["complete"],
        )
        if status != 2 and (status == 0) != (answer["holds"] or bool(answer["remedies"])):
            result.problems.append(f"exit status {status} for {result.outcome}")
        base = self._simulate(question, [])
        result.simulated += 1
        if base is None:
            result.problems.append("simulate refuses the files that why-not has read")
            return result
        if base["clusters"] != answer["next"]["result"]:
            result.problems.append(
                f"without edits: simulate {base['clusters']}, why-not {answer['next']['result']}"
            )
        if self._reaches(question, answer, base, is_edited=False) != answer["nextHolds"]:
            result.problems.append("the next decision reaches the goal, or does not, against the answer")
        if answer["holds"] and not answer["nextHolds"]:
            result.problems.append("the goal holds, and the next decision does not reach it")
        for number, remedy in enumerate(answer["remedies"]):
            self._check_remedy(question, answer, remedy, f"remedy {number}", result)
        return result

    def _check_remedy(
        self,
        question: CheckedQuestion,
        answer: dict[str, Any],
        remedy: dict[str, Any],
        name: str,
        result: CheckResult,
    ) -> None:
        apply = remedy["apply"]
        # Changes that place the binding elsewhere are printed besides those for the cluster.
        wanted = answer if remedy["usesCluster"] or answer["goal"]["type"] != "onCluster" else _PLACED
        found = self._simulate(question, apply, flags=remedy["flags"])
        result.simulated += 1
        if found is None:
            result.problems.append(f"{name}: the patches cannot be applied, or simulate refuses the files")
            return
        if found["clusters"] != remedy["result"]:
            result.problems.append(f"{name}: simulate {found['clusters']}, promised {remedy['result']}")
        if not self._reaches(question, wanted, found):
            result.problems.append(f"{name}: does not reach the goal: {found['clusters']}")
        for index in range(len(apply)):
            rest = [*apply[:index], *apply[index + 1 :]]
            if not rest:
                continue
            without = self._simulate(question, rest)
            result.simulated += 1
            if without is None:
                result.inapplicable += 1
            elif self._reaches(question, wanted, without):
                result.problems.append(f"{name}: part {index} can be left out")

    def _simulate(
        self, question: CheckedQuestion, apply: Sequence[dict[str, Any]], *, flags: Sequence[str] = ()
    ) -> dict[str, Any] | None:
        """Return what ``simulate`` prints about the binding, with its patched manifest; None if it refuses the files."""
        clusters, bindings = list(question.clusters), list(question.bindings)
        try:
            for entry in apply:
                listed = clusters if entry["object"]["kind"] == "Cluster" else bindings
                [index] = [number for number, each in enumerate(listed) if _is(each, entry["object"])]
                listed[index] = applied(listed[index], entry["patch"])
        except PatchError:
            return None
        self._write(clusters, bindings)
        again = ["--anew"] if "--as-new" in question.options else []
        status, out = _run(["simulate", *self._files(), *question.flags, *flags, *again, "-o", "json"])
        if status == 2 and not out:
            return None
        wanted = {"kind": question.binding["kind"], **question.binding["metadata"]}
        found = next((each for each in json.loads(out) if _same(each, wanted)), None)
        if found is None:  # the patched binding cannot be read
            return None
        [manifest] = [each for each in bindings if _same({"kind": each["kind"], **each["metadata"]}, wanted)]
        return {**found, "manifest": manifest}

    @staticmethod
    def _reaches(
        question: CheckedQuestion,
        answer: dict[str, Any],
        found: dict[str, Any],
        *,
        is_edited: bool = True,
    ) -> bool:
        """Return whether a placement reaches the goal, from what simulate prints.

        Edits that make the decision fail do not reach it, although the placement stays.
        """
        goal = answer["goal"]["type"]
        clusters = {each["name"]: each["replicas"] for each in found["clusters"]}
        is_placed = bool(clusters) and (
            _keeps_all_replicas(found, clusters)
            if found["scheduleType"] == "Avoid"
            else found["condition"]["status"] == "True"
        )
        if goal == "offCluster":
            return bool(is_placed and question.cluster not in clusters)
        if goal == "placed":
            return bool(is_placed and (answer is not _PLACED or question.cluster not in clusters))
        if question.cluster not in clusters or (is_edited and not is_placed):
            return False
        spec = found["manifest"]["spec"]
        wanted = int(answer["goal"]["replicas"])
        return bool(clusters[question.cluster] >= wanted) if _has_replicas(spec) else wanted <= 1

    def _write(self, clusters: Manifests, bindings: Manifests) -> None:
        for path, items in ((self._clusters, clusters), (self._bindings, bindings)):
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def _files(self) -> list[str]:
        return ["--clusters", str(self._clusters), "--bindings", str(self._bindings)]


def _keeps_all_replicas(found: dict[str, Any], clusters: dict[str, int]) -> bool:
    """Return whether a placement that nothing changes is complete; while scheduling is suspended, it need not be."""
    spec = found["manifest"]["spec"]
    if not (spec.get("suspension") or {}).get("scheduling") or not _has_replicas(spec):
        return True
    wanted = spec.get("replicas") or 0
    placement = spec.get("placement") or {}
    strategy = (placement.get("replicaScheduling") or {}).get("replicaSchedulingType") or "Duplicated"
    if strategy == "Duplicated":
        return all(each == wanted for each in clusters.values())
    return sum(clusters.values()) == wanted


def _has_replicas(spec: dict[str, Any]) -> bool:
    has_some = spec.get("replicas") or spec.get("replicaRequirements") is not None
    return bool(has_some and len(spec.get("components") or []) <= 1)


_PLACED: dict[str, Any] = {"goal": {"type": "placed", "replicas": 0}}


def _is(manifest: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return _same({"kind": manifest["kind"], **manifest["metadata"]}, wanted)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all((one.get(key) or "") == (other.get(key) or "") for key in ("kind", "namespace", "name"))


def _run(arguments: Sequence[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    return status, out.getvalue()
