"""What ends a command that explains."""

from __future__ import annotations


class NoAnswerError(Exception):
    """The command cannot answer; the text says why, and what to do."""
