"""What commands print besides their answer, and how they write text."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Final

from karmada_advisor.cli.flags.shared import DEFAULT_WIDTH, LEAST_WIDTH
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.views.layout import Style
from karmada_advisor.views.printable import printable

NO_ANSWER: Final = 2
"""The exit status of a command that has no answer, or could not read some input."""


def print_error(text: str) -> None:
    """Print one line to standard error."""
    print(printable(text), file=sys.stderr)  # noqa: T201 (a command, not a server)


def print_failure(error: Exception) -> None:
    """Print each line of the text of an error that ends a command."""
    for line in str(error).splitlines():
        print_error(f"Error: {line}")


def print_answer(answer: Callable[[], tuple[str, int]]) -> int:
    """Print an answer and return its exit status; print why there is none, and return ``NO_ANSWER``.

    Args:
        answer: Returns the text and the exit status. What plugins print meanwhile goes to standard error.
    """
    try:
        with redirect_stdout(sys.stderr):
            text, status = answer()
    except NoAnswerError as error:
        print_failure(error)
        return NO_ANSWER
    sys.stdout.write(text)
    sys.stdout.flush()
    return status


def style_of(arguments: argparse.Namespace) -> Style:
    """Return how to write text, from the flags of ``flags.shared.add_output`` and the terminal."""
    terminal = sys.stdout.isatty()
    colour = arguments.color == "always" or (
        arguments.color == "auto" and terminal and not os.environ.get("NO_COLOR")
    )
    width = arguments.width
    if width is None:
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if terminal else DEFAULT_WIDTH
    return Style(max(LEAST_WIDTH, width), colour, arguments.all)
