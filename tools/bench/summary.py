"""The runs of ``tools.bench.plane`` by case: medians over the rounds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tools.bench.scenarios import BARE


@dataclass(frozen=True, slots=True)
class Summary:
    """The runs of one case: medians over the rounds.

    Attributes:
        case: The case as the JSON has it.
        results: The result of each round as the JSON has it.
    """

    case: dict[str, Any]
    results: list[dict[str, Any]]

    @property
    def label(self) -> str:
        """The scheduler's name; the bare client's with the number of bindings in flight."""
        name: str = self.case["scheduler"]
        return f"{name} ({self.case['in_flight']})" if name == BARE and self.case["rate"] is None else name

    def median(self, *path: str) -> float | None:
        """Return the median of a value, None where a round has none."""
        return self.of(lambda result: _at(result, path))

    def of(self, value: Callable[[dict[str, Any]], float | None]) -> float | None:
        """Return the median of a value computed per round, None if a round has none."""
        found = self.values(value)
        return statistics.median(found) if found else None

    def values(self, value: Callable[[dict[str, Any]], float | None]) -> list[float]:
        """Return a value computed per round, nothing if a round has none."""
        found = [value(result) for result in self.results]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else []

    @property
    def servers_cpu(self) -> float | None:
        """CPU of kube-apiserver and etcd per binding, in milliseconds."""
        return self.of(
            lambda result: (
                result["servers_cpu"]["kube-apiserver"] + result["servers_cpu"]["etcd"]
                if result["servers_cpu"]
                else None
            )
        )


def _at(result: dict[str, Any], path: Sequence[str]) -> float | None:
    value: Any = result
    for step in path:
        value = value.get(step)
        if value is None:
            return None
    return float(value)


def summaries(document: dict[str, Any]) -> list[Summary]:
    """Return every case once, in the order of the first round."""
    found: dict[str, Summary] = {}
    for entry in document["runs"]:
        key = json.dumps(entry["case"], sort_keys=True)
        found.setdefault(key, Summary(entry["case"], [])).results.append(entry["result"])
    return list(found.values())
