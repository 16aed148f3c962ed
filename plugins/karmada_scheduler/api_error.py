"""The error of every request to the API server that did not succeed."""

from __future__ import annotations

from typing import Final

LONGEST_RETRY_AFTER_SECONDS: Final = 30.0
"""Upper limit for ``Retry-After``, in seconds."""


class ApiError(Exception):
    """A request that did not succeed.

    Attributes:
        code: The HTTP status; 0 without a response, and for a response that is not one of an API server.
        reason: The machine-readable reason of the API's ``Status`` object, such as ``Conflict``.
        causes: The reasons of its ``details.causes``.
        name: Its ``details.name``, the name of the object.
        retry_after: Seconds of the ``Retry-After`` header, at most ``LONGEST_RETRY_AFTER_SECONDS``; None without it.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: tuple[str, ...] = (),
        name: str = "",
        retry_after: float | None = None,
    ) -> None:
        """``message`` is shown to users; it is the server's, if it sent one."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.causes = causes
        self.name = name
        self.retry_after = None if retry_after is None else min(retry_after, LONGEST_RETRY_AFTER_SECONDS)

    @property
    def is_conflict(self) -> bool:
        """Whether the object was changed by someone else since it was read."""
        return self.code == 409 and self.reason == "Conflict"

    @property
    def is_not_found(self) -> bool:
        """Whether the path does not exist: no such object, no such kind, or no API server."""
        return self.code == 404

    def is_object_not_found(self, name: str) -> bool:
        """Return whether the API server reports that the object with this name does not exist.

        A 404 alone may come from a proxy, or from an API server that does not serve the kind yet.
        """
        return self.code == 404 and self.reason == "NotFound" and self.name == name

    @property
    def is_transient(self) -> bool:
        """Whether a later attempt may succeed: there was no response, the server was busy, or it failed."""
        return self.code in (0, 429) or self.code >= 500

    @property
    def has_unknown_outcome(self) -> bool:
        """Whether a write may have been carried out all the same: there was no response, or the server failed."""
        return self.code == 0 or self.code >= 500
