"""Namespaces of tests: to delete one costs a hundred requests, and to have it in all members most of the Works of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tools.controlplane.api import Client

_NOT_IN_MEMBERS: Final = {"namespace.karmada.io/skip-auto-propagation": "true"}
_EMPTIED: Final = (
    ("apis/policy.karmada.io/v1alpha1", "propagationpolicies"),
    ("apis/policy.karmada.io/v1alpha1", "federatedresourcequotas"),
    ("apis/apps/v1", "deployments"),
    ("api/v1", "configmaps"),
    ("apis/work.karmada.io/v1alpha2", "resourcebindings"),
)
"""What tests leave, policies first, so that nothing is bound again."""


@contextmanager
def new_namespace(client: Client, name: str, *, in_members: bool = False) -> Iterator[str]:
    """Create a namespace, in the members as well if asked for, and empty it at the end; yields its name."""
    labels = {} if in_members else _NOT_IN_MEMBERS
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    yield name
    for group, resource in _EMPTIED:
        client.delete(f"/{group}/namespaces/{name}/{resource}")
