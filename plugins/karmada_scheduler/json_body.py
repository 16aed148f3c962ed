"""Decodes and encodes JSON of the API server, including JSON that is nested too deeply for orjson, or broken in some objects.

Go writes up to 10,000 levels of nesting and orjson reads 1,024. So the status of one custom resource in a member
cluster could make the list of all bindings unreadable. A scheduler needs no field below about 20 levels. Values below
``MAX_DEPTH`` are therefore cut out of the bytes, and an object that still cannot be decoded is replaced by a placeholder
with its name. All of that happens only after orjson has refused the whole document.

docs/decisions/0018-api-server-input.md has the alternatives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

MAX_DEPTH: Final = 200
"""Objects and lists below this level become null. orjson writes 254 levels, and extenders get these objects."""

UNREADABLE: Final = "unreadable by karmada-pyscheduler"
"""The field of a placeholder for an object that cannot be read; its value is the reason."""

_VERSION_DIGITS: Final = re.compile(r"[0-9]{1,20}")
_TO_NEXT_BRACKET: Final = re.compile(
    rb'[^\[\]{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^\[\]{}"]*+)*+[\[\]{}]', re.DOTALL
)
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|(u[dD][c-fC-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_MEMBER: Final = re.compile(rb'"(items|object|metadata)"\s*:\s*\Z')
_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
_NAMES: Final = re.compile(
    rb'"(name|namespace|uid|resourceVersion|deletionTimestamp)"\s*:\s*("[^"\\]*+(?:\\.[^"\\]*+)*+")'
)
_OPENING: Final = frozenset(b"[{")


def decode(body: bytes) -> Any:
    """Decode a JSON document; of a document that orjson refuses, as much as possible.

    Objects of a list, or the object of an event, that cannot be decoded become placeholders (``unreadable``). Invalid
    UTF-8 and lone surrogates become U+FFFD, as in Go.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        shortened = _without_depth(_as_utf8(body))
        try:
            return orjson.loads(shortened)
        except orjson.JSONDecodeError:
            without = _without_broken_objects(shortened)
        try:
            return orjson.loads(without)
        except orjson.JSONDecodeError:
            raise problem from None


def encode(value: Any) -> bytes:
    """Encode JSON; what orjson refuses as well, as far as possible.

    Lone surrogates, which may come from texts of plugins, become question marks.

    Raises:
        ValueError: It cannot be written as JSON.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, a large number, or more than 254 levels
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as problem:
            raise ValueError(str(problem)) from problem
        return text.encode(errors="replace")


def checked(found: object) -> dict[str, Any]:
    """Return an object of the API if its metadata is valid, else a placeholder for it.

    Valid metadata has a name. Namespace, uid and resourceVersion are strings or missing, and the resourceVersion is a
    number.
    """
    if not isinstance(found, dict):
        return _placeholder(f"expected an object, got {_shown(found)}", {})
    if UNREADABLE in found:
        return found
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        return _placeholder(f"metadata: expected an object, got {_shown(metadata)}", {})
    for name in ("name", "namespace", "uid", "resourceVersion"):
        value = metadata.get(name)
        if value is not None and not isinstance(value, str):
            return _placeholder(f"metadata.{name}: expected a string, got {_shown(value)}", metadata)
    if not metadata.get("name"):
        return _placeholder("metadata.name: is missing", metadata)
    version = metadata.get("resourceVersion")
    if version is not None and not is_version(version):
        return _placeholder(f"metadata.resourceVersion: expected a number, got {_shown(version)}", metadata)
    return found


def is_version(value: object) -> bool:
    """Return whether a value is a resourceVersion: an unsigned integer of 64 bits as a string."""
    return isinstance(value, str) and _VERSION_DIGITS.fullmatch(value) is not None


def unreadable(found: Any) -> str | None:
    """Return the reason of a placeholder, None for any other object."""
    problem = found.get(UNREADABLE) if type(found) is dict else None
    return None if problem is None else str(problem)


def placeholder_for(event: bytes, problem: str) -> dict[str, Any] | None:
    """Return a placeholder for the object of an event that cannot be decoded, None if its name is not found."""
    _, _, document = event.partition(b'"object":')
    found = _placeholder(problem, _names_in(document))
    return found if found["metadata"].get("name") else None


def shallow(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a decoded value with null for objects and lists below a level."""
    if isinstance(value, dict):
        return None if depth <= 0 else {name: shallow(found, depth - 1) for name, found in value.items()}
    if isinstance(value, list):
        return None if depth <= 0 else [shallow(found, depth - 1) for found in value]
    return value


def _placeholder(problem: str, metadata: dict[str, Any]) -> dict[str, Any]:
    known = {name: metadata.get(name) for name in _KEPT}
    if not is_version(known["resourceVersion"]):
        del known["resourceVersion"]
    return {
        UNREADABLE: problem,
        "metadata": {name: value for name, value in known.items() if isinstance(value, str)},
    }


def _shown(value: object) -> str:
    text = repr(shallow(value, 2))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _as_utf8(body: bytes) -> bytes:
    try:
        body.decode()
    except UnicodeDecodeError:
        body = body.decode(errors="replace").encode()
    return _ESCAPE.sub(_without_lone_surrogate, body) if b"\\u" in body else body


def _without_lone_surrogate(escape: re.Match[bytes]) -> bytes:
    text = escape[0]
    is_high = len(text) == 6 and escape[1] is None and text[2:3] in b"dD" and text[3:4] in b"89abAB"
    return b"\\ufffd" if is_high or escape[2] is not None else text


def _brackets(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the position of each bracket outside of strings, the position after the previous one, and the level.

    The outermost level is 1; closing brackets have negative levels. Ends where the text is not JSON.
    """
    depth = position = 0
    while found := _TO_NEXT_BRACKET.match(body, position):
        here = found.end() - 1
        if body[here] in _OPENING:
            depth += 1
            yield here, position, depth
        else:
            yield here, position, -depth
            depth -= 1
        position = here + 1


def _without_depth(body: bytes) -> bytes:
    kept: list[bytes] = []
    begin = 0
    for here, _, depth in _brackets(body):
        if depth == MAX_DEPTH + 1:
            kept.append(body[begin:here])
        elif depth == -(MAX_DEPTH + 1):
            kept.append(b"null")
            begin = here + 1
    kept.append(body[begin:])
    return b"".join(kept)


def _without_broken_objects(body: bytes) -> bytes:
    """Replace the items of a list, or the object of an event, that cannot be decoded by placeholders."""
    kept: list[bytes] = []
    copied = begin = 0
    inside, wanted = b"", 0
    for here, before, depth in _brackets(body):
        if depth == 2:
            member = _MEMBER.search(body, before, here)
            inside = member[1] if member else b""
            wanted = 3 if inside == b"items" else 2 if inside == b"object" else 0
        if depth == wanted:
            begin = here
        elif depth == -wanted and wanted:
            document = body[begin : here + 1]
            try:
                orjson.loads(document)
            except orjson.JSONDecodeError as problem:
                kept += [body[copied:begin], orjson.dumps(_placeholder(str(problem), _names_in(document)))]
                copied = here + 1
    kept.append(body[copied:])
    return b"".join(kept)


def _names_in(document: bytes) -> dict[str, Any]:
    """Return the identifying fields in the metadata of an object that cannot be decoded."""
    found: dict[str, Any] = {}
    is_metadata = False
    level = 0
    for here, before, depth in _brackets(document):
        if is_metadata and level == 2:
            for name, value in _NAMES.findall(document, before, here):
                try:
                    found[name.decode()] = orjson.loads(value)
                except orjson.JSONDecodeError:
                    continue
        if depth == 2:
            member = _MEMBER.search(document, before, here)
            is_metadata = member is not None and member[1] == b"metadata"
        level = depth if depth > 0 else -depth - 1
    return found
