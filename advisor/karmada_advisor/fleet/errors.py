"""Errors after which a command ends with a message."""

from __future__ import annotations


class NoAnswerError(Exception):
    """The command cannot answer; the text says why, and what to do."""


class LiveError(NoAnswerError):
    """The control plane gives no answer; the text says why, and what to do."""
