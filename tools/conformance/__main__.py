"""Replay the recordings: ``python -m tools.conformance [RECORDING or FILE...]``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.conformance.replay import RECORDINGS, Recording


def main(names: list[str]) -> int:
    files = [Path(name) for name in names if Path(name).is_file()]
    parts = [name for name in names if not Path(name).is_file()]
    paths = [path for path in RECORDINGS if not names or any(part in path.name for part in parts)] + files
    if not paths:
        print(f"no recording matches {' '.join(names)}", file=sys.stderr)
        return 2
    cases = different = intended = 0
    start = time.perf_counter()
    print(f"{'recording':<14}{'clusters':>9}{'cases':>8}{'equal':>8}{'different':>11}")
    for path in paths:
        recording = Recording.load(path)
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
