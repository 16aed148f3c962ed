"""Requests and responses of a server for people and tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple

from karmada_pyscheduler.http_server.request_guard import RequestRefusal
from karmada_scheduler.structs import Struct, field


class HttpRequest(Struct, frozen=True):
    """A request.

    Attributes:
        path: The values of the variable parts of the path.
        query: The parameters; of one that is repeated, the last.
        target: Path and parameters as they were sent.
        form: The fields of the body of a POST.
        method: ``GET`` or ``POST``.
        requester: The name of the user; of others the address that the request comes from.
        viewer: Who asks, as ``Access.authorize`` says; None without it.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    target: str = "/"
    form: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    requester: str = ""
    viewer: object = None


class HttpResponse(Struct, frozen=True):
    """A response.

    Attributes:
        body: Its parts; the next one is taken when the reader has taken the one before.
        status: The HTTP status.
        content_type: The type of the content.
        is_stream: Whether it does not end by itself.
    """

    body: AsyncIterator[bytes]
    status: int = 200
    content_type: str = "application/json"
    is_stream: bool = False


class Document(Struct, frozen=True):
    """A response that is complete; it is compressed for readers that accept that.

    Attributes:
        headers: Besides those of every response.
        cookies: The values of ``Set-Cookie`` headers.
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()


class AnsweredRequest(NamedTuple):
    """What is known of a request once it is answered. Neither headers nor parameters nor the body are in it.

    Attributes:
        method: For example ``GET``.
        route: The pattern of its path, such as ``/b/{namespace}/{name}``; "" if there is none.
        path: The values of the variable parts of the path.
        user: Who asked; "" if it is not known.
        address: Where the request came from.
        status: The HTTP status.
        seconds: How long the answer took; of a stream, until its end.
    """

    method: str
    route: str
    path: Mapping[str, str]
    user: str
    address: str
    status: int
    seconds: float


AsyncHandler = Callable[[HttpRequest], Awaitable[HttpResponse | Document]]
ProblemPage = Callable[[RequestRefusal, str], bytes]
"""Returns the HTML of a refusal of a request, from the refusal and the target of the request."""
