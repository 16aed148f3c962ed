"""Which permissions the scheduler lacks: asked for once, at the start, so that all are named at once.

A SelfSubjectRulesReview tells what the user may do. Everybody who is authenticated may make one, unless somebody took
that right away (``system:basic-user``); then nothing is known, and the requests themselves will show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.karmada import WATCHED

_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


class Permission(NamedTuple):
    """A verb on a resource; ``name`` is that of an object, "" for all."""

    verb: str
    group: str
    resource: str
    name: str = ""

    def __str__(self) -> str:
        """Write it as ``kubectl auth can-i`` takes it."""
        resource, slash, subresource = self.resource.partition("/")
        named = f"{resource}.{self.group}" if self.group else resource
        return f"{self.verb} {named}{slash}{subresource}{f'/{self.name}' if self.name else ''}"


def needed(*, lease: str = "", services: bool = False) -> list[Permission]:
    """Return what a scheduler needs.

    Args:
        lease: The name of its Lease, "" without leader election.
        services: Whether it looks Services of estimators up.
    """
    wanted = [Permission(verb, each.group, each.plural) for each in WATCHED for verb in ("list", "watch")]
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


async def missing(
    connection: Connection, wanted: Iterable[Permission], *, namespace: str
) -> list[Permission]:
    """Return what of some permissions the user of a connection does not have.

    Args:
        connection: To the Karmada API server.
        wanted: What is needed.
        namespace: That of the Lease.

    Returns:
        Those that are missing; none if that cannot be known.
    """
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    try:
        answer = await connection.request("POST", _PATH, body=body, timeout=10.0)
    except ApiError:
        return []
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(status, dict) or status.get("incomplete"):
        return []
    rules = [rule for rule in status.get("resourceRules") or () if isinstance(rule, dict)]
    return [each for each in wanted if not any(_allows(rule, each) for rule in rules)]


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
    return any(each in one_of for each in listed or ())
