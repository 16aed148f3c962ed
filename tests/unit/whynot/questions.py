"""Random questions: worlds of the fuzzer's generator, with one binding and one cluster that has none of its replicas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from karmada_scheduler.api.well_known import POLICY_ID_LABEL
from tools.oracle.generator.rng import Random
from tools.oracle.generator.scenarios import scenarios

_PER_SCENARIO = 6
_USELESS_PLUGINS: tuple[list[str], ...] = ([], ["nosuch"], ["-TaintToleration"])


@dataclass(frozen=True)
class CheckedQuestion:
    """One question.

    Attributes:
        identity: For a report: seed, scenario, number.
        clusters: The manifests of all Clusters.
        bindings: The manifests of some bindings.
        binding: The one in question.
        cluster: The name of the cluster.
        flags: Gates and plugins, as flags of the command line.
        options: ``--off``, ``--placed``, ``--replicas N`` or ``--as-new``; empty for most.
    """

    identity: str
    clusters: list[dict[str, Any]]
    bindings: list[dict[str, Any]]
    binding: dict[str, Any]
    cluster: str
    flags: tuple[str, ...]
    options: tuple[str, ...] = ()


def questions(seed: int, *, most_clusters: int = 60) -> Iterator[CheckedQuestion]:
    """Yield questions without end; equal seeds give equal questions."""
    for document in scenarios(seed, cases=1 << 60):
        if len(document["clusters"]) > most_clusters or document["plugins"] in _USELESS_PLUGINS:
            continue
        rng = Random(f"why-not/{document['id']}")
        listed = _different(map(_claimed, [*document["bindings"], *document.get("peers", ())]))
        for number in range(_PER_SCENARIO):
            chosen = rng.sample(listed, min(len(listed), 1 + rng.upto(4)))
            cluster = rng.pick(document["clusters"])["metadata"]["name"]
            yield CheckedQuestion(
                f"{document['id']}/{number}",
                document["clusters"],
                chosen,
                rng.pick(chosen),
                cluster,
                _flags(document),
                _options(rng),
            )


def _claimed(binding: dict[str, Any]) -> dict[str, Any]:
    """Return a binding that a policy claims; without, no change makes a scheduler decide about it."""
    metadata = binding["metadata"]
    labels = {**(metadata.get("labels") or {}), POLICY_ID_LABEL: "policy"}
    return {**binding, "metadata": {**metadata, "labels": labels}}


def _different(bindings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return bindings without those that have the name of an earlier one."""
    named: dict[tuple[str, str, str], dict[str, Any]] = {}
    for each in bindings:
        metadata = each["metadata"]
        named.setdefault((each["kind"], metadata.get("namespace", ""), metadata["name"]), each)
    return list(named.values())


def _flags(document: dict[str, Any]) -> tuple[str, ...]:
    gates = ",".join(f"{name}={str(value).lower()}" for name, value in document["gates"].items())
    # With = because a list may start with a dash.
    plugins = (f"--plugins={','.join(document['plugins'])}",) if document["plugins"] != ["*"] else ()
    empty = ("--enable-empty-workload-propagation=true",) if document["emptyWorkloadPropagation"] else ()
    return ("--feature-gates", gates, *plugins, *empty)


def _options(rng: Random) -> tuple[str, ...]:
    luck = rng.random()
    if luck < 0.76:
        return ()
    if luck < 0.80:
        return ("--allow", "configuration")
    if luck < 0.86:
        return ("--as-new",)
    if luck < 0.91:
        return ("--off",)
    if luck < 0.96:
        return ("--placed",)
    return ("--replicas", str(2 + rng.upto(4)))
