"""Replay the recordings: ``python -m tools.conformance [--decisions-of=VERSION] [RECORDING or FILE...]``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from karmada_scheduler.config.features import RULES
from tools.conformance.replay import RECORDINGS, RECORDINGS_1_19, Recording


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance")
    parser.add_argument(
        "--decisions-of", choices=tuple(RULES), default="", help="default: the recorded version"
    )
    parser.add_argument("names", nargs="*", help="parts of the names of recordings, or files")
    given = parser.parse_args(arguments)
    names: list[str] = given.names
    files = [Path(name) for name in names if Path(name).is_file()]
    parts = [name for name in names if not Path(name).is_file()]
    known = [*RECORDINGS, *RECORDINGS_1_19]
    paths = [path for path in known if not names or any(part in path.name for part in parts)] + files
    if not paths:
        print(f"no recording matches {' '.join(names)}", file=sys.stderr)
        return 2
    cases = different = intended = 0
    start = time.perf_counter()
    print(f"{'recording':<14}{'clusters':>9}{'cases':>8}{'equal':>8}{'different':>11}")
    for path in paths:
        recording = Recording.load(path, given.decisions_of)
        found = list(recording.differences())
        differences = [each for each in found if not each.is_intended]
        cases += len(recording.cases)
        different += len(differences)
        intended += len(found) - len(differences)
        equal = len(recording.cases) - len(found)
        print(
            f"{recording.name:<14}{len(recording.clusters):>9}{len(recording.cases):>8}{equal:>8}{len(differences):>11}"
        )
        for difference in differences:
            print(difference)
    seconds = time.perf_counter() - start
    equal = cases - different - intended
    print(f"{cases} cases, {equal} equal, {intended} intended, {different} different, {seconds:.1f} s")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
