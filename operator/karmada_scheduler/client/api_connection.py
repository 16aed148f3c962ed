"""What sends requests to the API server: a ``Connection``, or a test in its place."""

from __future__ import annotations

from typing import Any, Protocol


class ApiConnection(Protocol):
    """What reviews, Events and Leases are read with."""

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float) -> dict[str, Any]:
        """Send a request. Raises ApiError."""
