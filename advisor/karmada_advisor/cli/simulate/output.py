"""The output of a simulation: a table, JSON or YAML, and a progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Final, TypeVar

import yaml

from karmada_advisor.cli.table import table
from karmada_scheduler.dryrun.result import SimulationResult
from karmada_scheduler.framework.extension_points import Point

T = TypeVar("T")


def _write_table(results: Sequence[SimulationResult], out: IO[str]) -> None:
    rows = []
    for each in results:
        condition = each.condition
        clusters = ", ".join(f"{target.name}:{target.replicas}" for target in each.targets)
        scheduled, message = "-" if condition is None else condition.status, ""
        type_ = each.type.value if each.has_profile else "-"
        if not each.has_profile:
            scheduled = "OtherScheduler"
            message = f'no profile has the schedulerName "{each.binding.spec.responsible_scheduler}"'
        elif each.held is not None:
            scheduled = "Gated" if each.held.point is Point.PRE_ENQUEUE else "Waiting"
            message = str(each.held)
        elif condition is not None and condition.status != "True":
            scheduled, message = condition.reason, condition.message
        rows.append((each.binding.key.display, type_, scheduled, clusters or "-", message))
    text = table(("BINDING", "TYPE", "SCHEDULED", "CLUSTERS", "MESSAGE"), rows)
    out.writelines(f"{line}\n" for line in text.splitlines())  # a closed pipe raises only between two writes


def _write_json(results: Sequence[SimulationResult], out: IO[str]) -> None:
    json.dump([each.as_fields() for each in results], out, indent=2, ensure_ascii=False)
    out.write("\n")


def _write_yaml(results: Sequence[SimulationResult], out: IO[str]) -> None:
    fields = [each.as_fields() for each in results]
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yaml.dump(fields, out, Dumper=dumper, sort_keys=False, allow_unicode=True)


WRITERS: Final = {"table": _write_table, "json": _write_json, "yaml": _write_yaml}


def with_progress(bindings: Iterable[T], *, total: int) -> Iterator[T]:
    """Draw a progress bar while bindings are scheduled, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield from bindings
        return
    step = max(1, total // 200)
    for number, each in enumerate(bindings, 1):
        if number % step == 0 or number == total:
            bar = "#" * (40 * number // total)
            sys.stderr.write(f"\r[{bar:<40}] {number}/{total} bindings")
        yield each
    sys.stderr.write("\n")
