"""Finds one binding on a live control plane by the name that a person gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from karmada_advisor.fleet.named_binding import NamedBinding, NoSuchBindingError, does_not_exist
from karmada_pyscheduler.client import karmada
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.metadata import METADATA_LIST
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api_error import ApiError

BINDINGS: Final = (karmada.RESOURCE_BINDINGS, karmada.CLUSTER_RESOURCE_BINDINGS)
_RESOURCES: Final = {resource.kind: resource for resource in BINDINGS}


async def find_binding(connection: Connection, asked: NamedBinding) -> tuple[NamedBinding, dict[str, Any]]:
    """Read the binding that a person names; return it with what names it without doubt.

    Raises:
        NoSuchBindingError: There is none, or there are two.
        ApiError: It cannot be read.
    """
    client = karmada.KarmadaClient(connection)
    keys, other = asked.keys, asked.other_reading
    others = [] if other is None else [other]
    for key in (*keys, *others):
        found = await _read(client, key, may_be_forbidden=key != keys[0])
        if found is None:
            continue
        for candidate in others:
            if candidate != key and await _read(client, candidate, may_be_forbidden=True) is not None:
                raise NoSuchBindingError(asked.ambiguity)
        return asked.chosen(key), _RESOURCES[key.kind].typed(found)
    known = await _known(connection, keys)
    if (only := asked.of_workload(known)) is not None and (found := await _read(client, only)) is not None:
        return NamedBinding(only.name, only.namespace or asked.namespace), _RESOURCES[only.kind].typed(found)
    raise NoSuchBindingError(does_not_exist(keys[0], known))


async def _read(
    client: karmada.KarmadaClient, key: BindingKey, *, may_be_forbidden: bool = False
) -> dict[str, Any] | None:
    """Return a binding; None if it does not exist.

    A role for one namespace may not read the cluster-scoped kind, and other namespaces, which a name can also mean.
    """
    try:
        return await client.get_binding(key)
    except ApiError as error:
        if not (may_be_forbidden and error.code == 403) and not error.is_object_not_found(key.name):
            raise
    return None


async def _known(connection: Connection, keys: Sequence[BindingKey]) -> list[BindingKey]:
    """Return the bindings of all names, of the kinds of some keys; none if they may not be listed."""
    try:
        resources = [_RESOURCES[key.kind] for key in keys]
        return [BindingKey(of.kind, *names) for of in resources for names in await names_of(connection, of)]
    except ApiError:
        return []


async def names_of(connection: Connection, resource: karmada.Resource) -> list[tuple[str, str]]:
    """Return namespace ("" for none) and name of every object of a kind.

    Raises:
        ApiError: They cannot be read.
    """
    return [
        (item["metadata"].get("namespace") or "", item["metadata"]["name"])
        async for page, _ in karmada.list_pages(connection, resource.path, accept=METADATA_LIST)
        for item in page
        if json_body.unreadable(item) is None
    ]
