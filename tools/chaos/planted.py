"""Runs our scheduler with a planted bug, as the program of a replica: ``python -m tools.chaos.planted BUG FLAG...``."""

from __future__ import annotations

import sys

from karmada_scheduler.command import new_scheduler_command
from tools.simulation.planted_bugs import BUGS


def main() -> int:
    """Run until it ends; the bug is never removed."""
    name, *flags = sys.argv[1:]
    (bug,) = [each for each in BUGS if each.name == name]
    with bug.planted():
        return new_scheduler_command()(flags)


if __name__ == "__main__":
    sys.exit(main())
