"""The flags of ``completion``."""

from __future__ import annotations

import argparse

from karmada_advisor.cli.flags import shared

SHELLS = ("bash", "zsh", "fish")


def completion_parser() -> argparse.ArgumentParser:
    """Return the parser of completion's arguments."""
    parser = shared.make_parser(
        "completion",
        "Print a script that completes commands, flags and names in a shell: "
        "source <(karmada-pyscheduler completion bash). kubectl completes 'kubectl pyscheduler' by itself.",
        "Exit status: 0.",
    )
    parser.add_argument("shell", choices=SHELLS)
    return parser
