"""Creates reviews, and finds the permissions that the scheduler lacks, once at the start, for one log line.

A SelfSubjectRulesReview lists the permissions of the user. Every authenticated user may create one, unless the role
``system:basic-user`` was removed. Then nothing is reported here, and the failing requests are logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_pyscheduler.client.connection import ApiConnection
from karmada_pyscheduler.client.karmada import WATCHED
from karmada_pyscheduler.client.paths import path_of
from karmada_scheduler.api_error import ApiError

AUTHORIZATION: Final = "authorization.k8s.io/v1"


async def create_review(
    connection: ApiConnection, version: str, kind: str, spec: Mapping[str, Any], *, timeout: float
) -> dict[str, Any]:
    """Ask an API server for a review, which nobody stores, and return it. Raises ApiError."""
    body = {"apiVersion": version, "kind": kind, "spec": spec}
    return await connection.request("POST", path_of(version, f"{kind.lower()}s"), body=body, timeout=timeout)


class Permission(NamedTuple):
    """A verb on a resource; ``name`` is that of an object, "" for all."""

    verb: str
    group: str
    resource: str
    name: str = ""

    def __str__(self) -> str:
        """Return it as ``kubectl auth can-i`` accepts it."""
        resource, slash, subresource = self.resource.partition("/")
        named = f"{resource}.{self.group}" if self.group else resource
        return f"{self.verb} {named}{slash}{subresource}{f'/{self.name}' if self.name else ''}"


def needed_permissions(*, lease: str = "", services: bool = False) -> list[Permission]:
    """Return the permissions that a scheduler needs.

    Args:
        lease: The name of its Lease, "" without leader election.
        services: Whether it reads Services of estimators.
    """
    wanted = [Permission(verb, kind.group, kind.plural) for kind in WATCHED for verb in ("list", "watch")]
    wanted.append(Permission("get", "cluster.karmada.io", "clusters"))
    for plural in ("resourcebindings", "clusterresourcebindings"):
        wanted += [Permission(verb, "work.karmada.io", plural) for verb in ("get", "patch")]
        wanted.append(Permission("patch", "work.karmada.io", f"{plural}/status"))
    wanted += [Permission(verb, "", "events") for verb in ("create", "patch")]
    if lease:
        group = "coordination.k8s.io"
        wanted += [Permission(verb, group, "leases", lease) for verb in ("get", "update")]
        wanted.append(Permission("create", group, "leases"))
    if services:
        wanted.append(Permission("get", "", "services"))
    return wanted


async def missing_permissions(
    connection: ApiConnection, wanted: Iterable[Permission], *, namespace: str
) -> list[Permission]:
    """Return the permissions that the user of a connection does not have.

    Args:
        connection: The connection to the Karmada API server.
        wanted: The permissions to check.
        namespace: The namespace of the Lease.

    Returns:
        The missing ones; none if they cannot be determined.
    """
    spec = {"namespace": namespace}
    try:
        response = await create_review(
            connection, AUTHORIZATION, "SelfSubjectRulesReview", spec, timeout=10.0
        )
    except ApiError:
        return []
    status = response.get("status") if isinstance(response, dict) else None
    if not isinstance(status, dict) or status.get("incomplete"):
        return []
    rules = [rule for rule in status.get("resourceRules") or () if isinstance(rule, dict)]
    return [permission for permission in wanted if not any(_allows(rule, permission) for rule in rules)]


def _allows(rule: Mapping[str, Any], wanted: Permission) -> bool:
    names = rule.get("resourceNames") or ()
    resource, _, subresource = wanted.resource.partition("/")
    resources = {wanted.resource, "*", f"*/{subresource}" if subresource else resource}
    return (
        _has(rule.get("verbs"), {wanted.verb, "*"})
        and _has(rule.get("apiGroups"), {wanted.group, "*"})
        and _has(rule.get("resources"), resources)
        and (not names or wanted.name in names)
    )


def _has(listed: Sequence[str] | None, one_of: set[str]) -> bool:
    return any(word in one_of for word in listed or ())
