"""The output of commands: the answer in the format that was asked for, and besides it, problems."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any, Final

from karmada_advisor.cli.flags.shared import DEFAULT_WIDTH, LEAST_WIDTH
from karmada_advisor.views.fields import as_json, as_yaml, document_fields
from karmada_advisor.views.text import Style, printable, wide
from karmada_scheduler.structs import Struct, field

GOOD: Final = 0
"""The exit status of a command whose answer is that all is well."""
NOT_GOOD: Final = 1
"""The exit status of a command whose answer is that it is not."""
NO_ANSWER: Final = 2
"""The exit status of a command that has no answer, or could not read some input."""


class CommandAnswer(Struct, frozen=True):
    """The answer of a command.

    Attributes:
        document: The answer as data.
        text: Writes it for people.
        status: The exit status.
        more: Fields of the data besides those of ``document``.
        others: Write it in further formats, by the name of the format.
    """

    document: Struct
    text: Callable[[Style], str]
    status: int
    more: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Callable[[Style], str]] = field(default_factory=dict)

    def written(self, arguments: argparse.Namespace) -> str:
        """Return the answer in the format of ``--output``."""
        style = style_of(arguments)
        match arguments.output:
            case "json" | "yaml" as output:
                fields = {**document_fields(self.document), **self.more}
                return as_json(fields) if output == "json" else as_yaml(fields)
            case "text":
                return self.text(style)
            case "wide":
                return self.text(wide(style))
        return self.others[arguments.output](style)


def print_error(text: str) -> None:
    """Print a problem, a warning or a note; it may contain names from files and objects."""
    print(printable(text), file=sys.stderr)  # noqa: T201 (a command, not a server)


def print_errors(texts: Iterable[str]) -> None:
    """Print several problems, warnings or notes."""
    for text in texts:
        print_error(text)


def print_failure(error: Exception) -> None:
    """Print why there is no answer."""
    print_errors(f"Error: {line}" for line in str(error).splitlines())


def print_answer(arguments: argparse.Namespace, answer: Callable[[], CommandAnswer]) -> int:
    """Print an answer; return the exit status.

    Args:
        arguments: As parsed.
        answer: Returns the answer; what it prints itself goes to standard error, as plugins may print.

    Raises:
        NoAnswerError: There is no answer.
    """
    with redirect_stdout(sys.stderr):
        found = answer()
    sys.stdout.write(found.written(arguments))
    sys.stdout.flush()
    return found.status


def exit_status(*, is_good: bool, problems: Sequence[object]) -> int:
    """Return the exit status of an answer; ``problems`` is what could not be read."""
    return NO_ANSWER if problems else GOOD if is_good else NOT_GOOD


def style_of(arguments: argparse.Namespace) -> Style:
    """Return how to lay the text out: in colours only on a terminal, unless a flag or FORCE_COLOR says otherwise."""
    terminal = sys.stdout.isatty()
    wanted = (terminal and not os.environ.get("NO_COLOR")) or bool(os.environ.get("FORCE_COLOR"))
    colour = arguments.color == "always" or (arguments.color == "auto" and wanted)
    width = arguments.width
    if width is None:
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if terminal else DEFAULT_WIDTH
    return Style(max(LEAST_WIDTH, width), colour, arguments.all)
