"""CPU time, wall time and imported modules of the command line, each in a process of its own, with compiled modules.

    python -m tools.bench.start --runs 9

The best run counts: others measure what else the machine does. The command fails if a best wall time exceeds its target by half.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from karmada_advisor.cli.output import table

_FLEET: Final = Path(__file__).parents[2] / "docs" / "examples" / "fleet"
_FILES: Final = (f"--clusters={_FLEET / 'clusters.yaml'}", f"--bindings={_FLEET / 'bindings.yaml'}")
_BINDING: Final = ("checkout-deployment", "-n", "shop")
_TOLERANCE: Final = 1.5

_TARGETS: Final = (
    ("--version", ("--version",), 0.15),
    ("--help", ("--help",), 0.15),
    ("explain --help", ("explain", "--help"), 0.15),
    ("explain, 8 clusters in files", ("explain", *_BINDING, *_FILES), 0.4),
    ("why-not, 8 clusters in files", ("why-not", _BINDING[0], "eu-west-1", *_BINDING[1:], *_FILES), 0.4),
)
"""What is run, and the target of its wall time in seconds on an idle machine."""


@dataclass(frozen=True, slots=True)
class Start:
    """The best of several runs; times in seconds."""

    name: str
    cpu: float
    wall: float
    target: float
    modules: int

    @property
    def is_in_time(self) -> bool:
        """Whether the wall time is within the target, with the tolerance for a machine that is not idle."""
        return self.wall <= self.target * _TOLERANCE


def measured(name: str, arguments: Sequence[str], target: float, runs: int, compiled: Path) -> Start:
    """Run the command line several times.

    Args:
        name: For people.
        arguments: Of the command line.
        target: The wall time in seconds.
        runs: How often it is run; the first run, which compiles the modules, comes on top and is not counted.
        compiled: A folder for the compiled modules.

    Raises:
        RuntimeError: It has ended with a usage error or another one.
    """
    environment = with_compiled_modules(compiled)
    times = [_run(arguments, environment) for _ in range(runs + 1)][1:]
    cpu, wall = (min(each[index] for each in times) for index in (0, 1))
    return Start(name, cpu, wall, target, _modules(arguments))


def with_compiled_modules(folder: Path) -> dict[str, str]:
    """Return an environment in which Python keeps compiled modules in a folder.

    A wheel has them, too; a source tree has none where PYTHONDONTWRITEBYTECODE is set.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _run(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Return CPU time and wall time of a process."""
    began, before = time.monotonic(), os.times()
    process = subprocess.run(
        [sys.executable, "-m", "karmada_scheduler", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}: {process.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.monotonic() - began


def _modules(arguments: Sequence[str]) -> int:
    """Return how many modules a process imports."""
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "karmada_scheduler", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return sum(line.startswith("import time:") for line in process.stderr.splitlines()) - 1  # the heading


def report(starts: Sequence[Start]) -> str:
    """Return the table."""
    rows = [
        (each.name, f"{each.cpu:.2f}", f"{each.wall:.2f}", f"{each.target:.2f}", each.modules)
        for each in starts
    ]
    return table(("", "CPU s", "wall s", "target", "modules"), rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="the best of these counts (default 9)")
    runs = parser.parse_args(argv).runs
    with tempfile.TemporaryDirectory() as compiled:
        starts = [
            measured(name, arguments, target, runs, Path(compiled)) for name, arguments, target in _TARGETS
        ]
    print(report(starts))
    return 0 if all(each.is_in_time for each in starts) else 1


if __name__ == "__main__":
    sys.exit(main())
