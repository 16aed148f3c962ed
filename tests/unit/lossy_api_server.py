"""A fake API server on which requests, answers and watch events take as long as a test wants, or get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api_error import ApiError
from tests.unit.fakes import CONFLICT, FakeApiServer


@dataclass(eq=False)
class Request:
    """A patch of the spec of a binding.

    Attributes:
        sent: When it was sent.
        outcome: The stored manifest or the error once the server has processed it; None before.
        answered: Whether the client has an answer, or gave up.
        given_up: When the client gave up.
    """

    name: str
    version: str
    body: dict[str, Any]
    sent: float
    answer: asyncio.Future[dict[str, Any]] = field(default_factory=asyncio.Future)
    outcome: dict[str, Any] | ApiError | None = None
    given_up: float | None = None


class LossyApiServer(FakeApiServer):
    """Bindings by name. Patches of the spec wait in ``sent``, answers in ``processed``, watch events in ``events``.

    ``now`` is the time of the test. ``on_stored`` is called after each patch of the spec that was carried out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.sent: list[Request] = []
        self.processed: list[Request] = []
        self.events: list[tuple[float, dict[str, Any]]] = []
        self.deliver: Callable[[dict[str, Any]], None] = lambda _: None
        self.on_stored: Callable[[Request], None] = lambda _: None
        self.event = lambda manifest: self.events.append((self.now, manifest))

    async def patch_result(
        self,
        key: BindingKey,
        *,
        resource_version: str,
        annotations: dict[str, str | None],
        clusters: Any,
        tasks: Any = None,
        before_send: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        before_send()
        body: dict[str, Any] = {"annotations": annotations, "clusters": clusters}
        if tasks is not None:
            body["gracefulEvictionTasks"] = tasks
        request = Request(key.name, resource_version, body, self.now)
        self.sent.append(request)
        return await request.answer

    def process(self, request: Request) -> None:
        """Carry out a request, or refuse it."""
        self.sent.remove(request)
        self.processed.append(request)
        if request.version != self.stored[request.name]["metadata"]["resourceVersion"]:
            request.outcome = CONFLICT
            return
        spec = {
            key: value for key, value in request.body.items() if key != "annotations" and value is not None
        }
        request.outcome = self.change(request.name, annotations=request.body["annotations"], **spec)
        self.requests.append(("spec", request.name, request.body))
        self.on_stored(request)

    def answer(self, request: Request) -> None:
        """Let the client have the answer."""
        if request in self.sent:
            self.process(request)
        self.processed.remove(request)
        if request.answer.done():
            return
        if isinstance(request.outcome, ApiError):
            request.answer.set_exception(request.outcome)
        else:
            assert request.outcome is not None
            request.answer.set_result(request.outcome)

    def lose(self, request: Request) -> None:
        """Let the client give up. A request that was not processed may still be."""
        if request.answer.done():
            return
        request.given_up = self.now
        request.answer.set_exception(ApiError("the connection was lost"))

    def drop(self, request: Request) -> None:
        """Let the client give up, and never process the request."""
        self.lose(request)
        if request in self.sent:
            self.sent.remove(request)

    def watch(self, count: int = 1_000_000) -> None:
        """Deliver so many watch events."""
        for _ in range(min(count, len(self.events))):
            self.deliver(self.events.pop(0)[1])
