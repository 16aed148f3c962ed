"""Requests as they arrive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl

_AS: Final = re.compile(r"as=(PartialObjectMetadata(?:List)?)\b")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it arrives.

    Attributes:
        method: The HTTP method.
        path: Without the query.
        query: The parameters of the query.
        body: The body, b"" for none.
        user: Who sends it; recorded with each write.
        accept: The ``Accept`` header.
        content_type: The ``Content-Type`` header; "" is taken as JSON, and as a merge patch with PATCH.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: str = ""
    accept: str = "application/json"
    content_type: str = ""


class MetadataForm(Enum):
    """As what a client wants to get metadata instead of whole objects."""

    NONE = ""
    OBJECT = "PartialObjectMetadata"
    LIST = "PartialObjectMetadataList"


def metadata_form(request: Request) -> MetadataForm:
    """Return the form that the ``Accept`` header names first."""
    found = _AS.search(request.accept)
    return MetadataForm(found.group(1)) if found else MetadataForm.NONE


def request_of(
    method: str, target: str, headers: Mapping[str, str], body: bytes = b"", *, user: str = ""
) -> Request:
    """Return the request that a client sends with a target (path and query) and headers."""
    path, _, query = target.partition("?")
    lower = {name.lower(): value for name, value in headers.items()}
    return Request(
        method,
        path,
        dict(parse_qsl(query, keep_blank_values=True)),
        body,
        user,
        lower.get("accept", "application/json"),
        lower.get("content-type", ""),
    )
