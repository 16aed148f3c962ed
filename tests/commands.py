"""Runs commands of ``karmada-pyscheduler`` in the process of the tests: a new one imports for a second first."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

from karmada_scheduler import command


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command returned and printed."""

    status: int
    out: str
    err: str

    @property
    def fields(self) -> dict[str, Any]:
        """The output as JSON."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(*arguments: str) -> Ran:
    """Run a command with these arguments, in the main thread."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        try:
            status = command.main(arguments)
        except SystemExit as end:
            status = int(str(end.code or 0))
    return Ran(status, out.getvalue(), err.getvalue())
