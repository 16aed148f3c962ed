"""Finds one binding on a live control plane by the name that a person gives."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from karmada_advisor.sources.bindings import NamedBinding, NoSuchBindingError
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.client import json_body
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.karmada import (
    CLUSTER_RESOURCE_BINDINGS,
    RESOURCE_BINDINGS,
    KarmadaClient,
    Resource,
    list_pages,
)
from karmada_scheduler.client.metadata import METADATA_LIST

_RESOURCES: Final = {RESOURCE_BINDING: RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDING: CLUSTER_RESOURCE_BINDINGS}
_SHOWN: Final = 3


async def find_binding(connection: Connection, asked: NamedBinding) -> tuple[NamedBinding, dict[str, Any]]:
    """Read the binding that a person names; return it with what names it without doubt.

    Raises:
        NoSuchBindingError: There is none, or there are two.
        ApiError: It cannot be read.
    """
    client = KarmadaClient(connection)
    keys, other = asked.keys, asked.other_reading
    others = [] if other is None else [other]
    for key in (*keys, *others):
        found = await _read(client, key, may_be_forbidden=key != keys[0])
        if found is None:
            continue
        for each in others:
            if each != key and await _read(client, each, may_be_forbidden=True) is not None:
                raise NoSuchBindingError(asked.ambiguity)
        return asked.chosen(key), _RESOURCES[key.kind].typed(found)
    raise NoSuchBindingError(await _advice(connection, keys))


async def _read(client: KarmadaClient, key: BindingKey, *, may_be_forbidden: bool) -> dict[str, Any] | None:
    """Return a binding; None if it does not exist.

    A role for one namespace may not read the cluster-scoped kind, and other namespaces, which a name can also mean.
    """
    try:
        return await client.get_binding(key)
    except ApiError as error:
        if not (may_be_forbidden and error.code == 403) and not error.is_object_not_found(key.name):
            raise
    return None


async def _advice(connection: Connection, keys: Sequence[BindingKey]) -> str:
    """Return that a binding does not exist, where one of its name is, and which names are like it."""
    wanted = keys[0]
    text = f"{wanted.display} does not exist"
    try:
        names = [name for key in keys for name in await names_of(connection, _RESOURCES[key.kind])]
    except ApiError:
        return text  # listing all may be forbidden; it only serves the advice
    elsewhere = sorted({namespace for namespace, name in names if name == wanted.name and namespace})
    if elsewhere:
        return f"{text}. There is one in namespace {', '.join(elsewhere)}"
    candidates = sorted({name for namespace, name in names if namespace in (wanted.namespace, "")})
    # The name of a workload is the beginning of its binding's.
    longer = [name for name in candidates if name.startswith(f"{wanted.name}-")]
    near = longer[:_SHOWN] or get_close_matches(wanted.name, candidates, n=_SHOWN)
    return f"{text}. Nearest: {', '.join(near)}" if near else text


async def names_of(connection: Connection, resource: Resource) -> list[tuple[str, str]]:
    """Return namespace ("" for none) and name of every object of a kind.

    Raises:
        ApiError: They cannot be read.
    """
    return [
        (item["metadata"].get("namespace") or "", item["metadata"]["name"])
        async for page, _ in list_pages(connection, resource.path, accept=METADATA_LIST)
        for item in page
        if json_body.unreadable(item) is None
    ]
