"""A fake connection to an API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True)
class FakeRequest:
    """A recorded request."""

    method: str
    path: str
    accept: str = ""
    body: Any = None
    before_send: Callable[[], None] | None = None


class FakeConnection:
    """Returns the same answer to each request, or raises it if it is an exception, and records requests."""

    server = "https://karmada"

    def __init__(self, answer: Any = None, *, lines: Sequence[Any] = ()) -> None:
        self.answer = answer
        self.lines = lines
        self.requests: list[FakeRequest] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        accept: str = "",
        body: Any = None,
        before_send: Callable[[], None] | None = None,
        **_: object,
    ) -> Any:
        self.requests.append(FakeRequest(method, path, accept, body, before_send))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def watch(
        self, target: str, accepted: Callable[[], None], *, accept: str
    ) -> AsyncGenerator[bytes, None]:
        self.requests.append(FakeRequest("GET", target, accept))
        for line in self.lines:
            yield line if isinstance(line, bytes) else orjson.dumps(line)
