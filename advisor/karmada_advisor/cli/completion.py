"""``karmada-pyscheduler completion``: the script of a shell, which calls ``__complete`` for each line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karmada_scheduler.framework.profile.factory import Registration


def run(arguments: argparse.Namespace, _: Sequence[Registration] = ()) -> int:
    """Print the script of a shell; return the exit status."""
    script = Path(__file__).parent / "completions" / f"completion.{arguments.shell}"
    sys.stdout.write(script.read_text())
    return 0
