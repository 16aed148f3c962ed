"""``make house``: prints each measure with its limit, and fails above one.

A limit is lowered when a measure gets better, and raised only with a reason in the commit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from tools import size

from . import sources

LIMITS: Final[Mapping[str, float]] = {
    "lines of code, product": 57_660,
    "lines of code, tools": 28_440,
    "lines of code, tests": 80_680,
    "words of prose": 64_320,
    "loops over `each`, %": 4,
    "adviser: arrows between packages": 30,
    "files entered by explain": 124,
    "files entered by plan": 128,
    "files entered by why-not": 132,
    "calls between packages in explain": 1_170,
}
_ANSWERS: Final = {
    "explain": ("explain", "-n", "shop", "checkout-deployment"),
    "plan": ("plan", "--without=eu-west-1"),
    "why-not": ("why-not", "-n", "pay", "billing-deployment", "eu-west-1"),
}


def _way(command: str) -> tuple[int, int]:
    """Return files and crossings, from a fresh process: what one answer has cached is missing in the way of the next."""
    code = f"from tools.house.ways import way_of; print(*way_of({_ANSWERS[command]!r}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    files, crossings = ran.stdout.split()
    return int(files), int(crossings)


def measured() -> dict[str, float]:
    """Return each measure of LIMITS."""
    lines, ways = size.sizes(sources.files()), {command: _way(command) for command in _ANSWERS}
    return {
        **{f"lines of code, {part}": lines[part] for part in ("product", "tools", "tests")},
        "words of prose": sources.words(),
        "loops over `each`, %": sources.share_of_each(),
        "adviser: arrows between packages": len(sources.arrows()),
        **{f"files entered by {command}": files for command, (files, _) in ways.items()},
        "calls between packages in explain": ways["explain"][1],
    }


def main() -> int:
    """Print the measures; return 1 if one is above its limit."""
    found = measured()
    for name, limit in LIMITS.items():
        worse = "  WORSE" if found[name] > limit else ""
        print(f"{name:<36} {found[name]:>9,.0f}  at most {limit:>7,.0f}{worse}")
    return int(any(found[name] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
