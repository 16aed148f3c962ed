"""Objects that cannot be read: counted each time, logged once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container

log = logging.getLogger(__name__)


class MalformedObjects:
    """The objects whose newest version cannot be read, with the problem of each."""

    def __init__(self, count: Callable[[str], None]) -> None:
        """Start with none; ``count`` gets the kind each time that an object cannot be read."""
        self._count = count
        self._problems: dict[tuple[str, object], str] = {}

    def __len__(self) -> int:
        return len(self._problems)

    def add(
        self, kind: str, key: object, problem: str, message: str, *, defect: Exception | None = None
    ) -> None:
        """Count an object, and log a problem that differs from its last one.

        Args:
            kind: The kind of the object.
            key: The key of the object.
            problem: The reason why it is unreadable.
            message: The log message, which names the consequence.
            defect: An error of our own code, which is logged with its traceback.
        """
        self._count(kind)
        if self._problems.get((kind, key)) != problem:
            self._problems[kind, key] = problem
            extra = {"kind": kind, "object": key, "error": problem}
            log.warning("%s", message, extra=extra, exc_info=defect)

    def discard(self, kind: str, key: object) -> None:
        """Forget an object that was deleted or has become readable."""
        if self._problems:
            self._problems.pop((kind, key), None)

    def retain(self, kind: str, keys: Container[object]) -> None:
        """Forget all objects of a kind but those with these keys."""
        for each in [each for each in self._problems if each[0] == kind and each[1] not in keys]:
            del self._problems[each]
