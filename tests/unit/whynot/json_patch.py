"""Applies RFC 6902 patches, written from the RFC and not from the product's own code."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any


class PatchError(Exception):
    """A patch cannot be applied."""


def applied(document: Any, patch: Sequence[dict[str, Any]]) -> Any:
    """Return a document after a patch; PatchError if an operation cannot be applied."""
    for operation in patch:
        document = _operation(copy.deepcopy(document), operation)
    return document


def _operation(document: Any, operation: dict[str, Any]) -> Any:
    kind, tokens = operation["op"], _tokens(operation["path"])
    if kind not in {"add", "remove", "replace"}:
        raise PatchError(f"unknown operation {kind}")
    if not tokens:
        raise PatchError("the root cannot be patched")
    parent = document
    for token in tokens[:-1]:
        parent = _member(parent, token)
    last = tokens[-1]
    if isinstance(parent, dict):
        if kind != "add" and last not in parent:
            raise PatchError(f"{operation['path']} does not exist")
        if kind == "remove":
            del parent[last]
        else:
            parent[last] = operation["value"]
        return document
    if not isinstance(parent, list):
        raise PatchError(f"{operation['path']} is below a scalar")
    if kind == "add":
        index = len(parent) if last == "-" else _index(last, len(parent))
        parent.insert(index, operation["value"])
        return document
    index = _index(last, len(parent) - 1)
    if kind == "remove":
        del parent[index]
    else:
        parent[index] = operation["value"]
    return document


def _tokens(pointer: str) -> list[str]:
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise PatchError(f"{pointer} is no JSON pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def _member(parent: Any, token: str) -> Any:
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, list):
        return parent[_index(token, len(parent) - 1)]
    raise PatchError(f"{token} does not exist")


def _index(token: str, most: int) -> int:
    if not token.isdecimal() or (len(token) > 1 and token[0] == "0") or int(token) > most:
        raise PatchError(f"{token} is no index up to {most}")
    return int(token)
