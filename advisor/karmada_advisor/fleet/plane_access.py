"""What a connection tells of a control plane and of its reader: rights, certificates, the version of bindings, what can be watched."""

from __future__ import annotations

import asyncio
import shlex
import ssl
from collections.abc import Iterable, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from karmada_advisor.fleet.live_reading import FORBIDDEN, LiveReading, read
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.stored import text_of, value_at
from karmada_pyscheduler.client.bindings_schema import UNKNOWN, BindingsSchema
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.identity import Identity, validity_of_certificate
from karmada_pyscheduler.client.karmada import KarmadaClient, Resource
from karmada_pyscheduler.client.permissions import AUTHORIZATION, create_review
from karmada_pyscheduler.client.reviews import AUTHENTICATION
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import Struct

_LEASES: Final = "leases.coordination.k8s.io"
LISTED: Final = (
    "clusters.cluster.karmada.io",
    *("resourcebindings.work.karmada.io", "clusterresourcebindings.work.karmada.io"),
    *("propagationpolicies.policy.karmada.io", "clusterpropagationpolicies.policy.karmada.io"),
    *("federatedresourcequotas.policy.karmada.io", "clustertaintpolicies.policy.karmada.io"),
    *(_LEASES, "events", "priorityclasses.scheduling.k8s.io"),
    "resourceinterpretercustomizations.config.karmada.io",
    *("deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch", "pods"),
)
"""What the commands list; manifests/reader.yaml grants it."""
_ROLE: Final = "pyscheduler-more"
_TIMEOUT_SECONDS: Final = 10.0

_WATCH_SECONDS: Final = 5.0
"""How long the API server may take to accept or refuse a watch."""


class Expiry(Struct, frozen=True):
    """When a certificate or another credential ends.

    Attributes:
        what: For people.
        ends: In the format of the API; "" if that is not known.
    """

    what: str
    ends: str


class PlaneAccess(Struct, frozen=True):
    """What a connection tells.

    Attributes:
        reader: The name of the user; "" if the API server does not say it.
        refused: What the commands list and the reader may not list in all namespaces, as ``kubectl auth can-i`` names it.
        grant: Commands that allow it.
        not_known: Why it is not known what is refused; "" if it is.
        expiries: Of the client's credential, and of the certificate of the API server.
        served: The version of Karmada whose bindings are served, such as 1.18; "" if it is not known.
    """

    reader: str = ""
    refused: tuple[str, ...] = ()
    grant: tuple[str, ...] = ()
    not_known: str = ""
    expiries: tuple[Expiry, ...] = ()
    served: str = ""


def read_access(plane: ControlPlane) -> PlaneAccess:
    """Ask a control plane about its reader. Reviews are asked for, which nobody stores.

    Raises:
        LiveError: The control plane cannot be read.
    """
    return read(plane, _access, subject="rights of the reader")


async def _access(reading: LiveReading) -> PlaneAccess:
    connection = reading.connection
    reader, refused, not_known, served = "", tuple[str, ...](), "", UNKNOWN
    with suppress(ApiError):  # before Kubernetes 1.28
        found = await create_review(
            connection, AUTHENTICATION, "SelfSubjectReview", {}, timeout=_TIMEOUT_SECONDS
        )
        reader = text_of(found, "status", "userInfo", "username")
    try:
        allowed = await asyncio.gather(*(_may_list(connection, kind) for kind in LISTED))
        refused = tuple(kind for kind, may in zip(LISTED, allowed, strict=True) if not may)
    except ApiError as error:
        not_known = str(error)
    with suppress(ApiError):
        served = await BindingsSchema(connection).version()
    identity = connection.login.identity
    of_client = Expiry(identity.shortcoming or identity.credential, _shown(identity.expires_at))
    expiries = (of_client, Expiry("the certificate of the API server", await _end_of_server(identity)))
    grant = _grant(refused, reader or "USER") if refused else ()
    return PlaneAccess(reader, refused, grant, not_known, expiries, "" if served == UNKNOWN else served)


async def _may_list(connection: Connection, listed: str) -> bool:
    plural, _, group = listed.partition(".")
    attributes = {"verb": "list", "group": group, "resource": plural}
    if listed == _LEASES:
        attributes["namespace"] = "karmada-system"
    spec = {"resourceAttributes": attributes}
    kind = "SelfSubjectAccessReview"
    found = await create_review(connection, AUTHORIZATION, kind, spec, timeout=_TIMEOUT_SECONDS)
    return value_at(found, "status", "allowed") is True


def _grant(refused: Iterable[str], user: str) -> tuple[str, str]:
    return (
        f"kubectl create clusterrole {_ROLE} --verb=get,list --resource={','.join(refused)}",
        f"kubectl create clusterrolebinding {_ROLE} --clusterrole={_ROLE} --user={shlex.quote(user)}",
    )


async def _end_of_server(identity: Identity) -> str:
    """Return when the certificate of the API server ends, as a connection sees it; "" without one, or through a proxy."""
    url = urlsplit(identity.server)
    if url.scheme != "https" or identity.proxy_url:
        return ""
    try:
        _, writer = await asyncio.open_connection(
            url.hostname, url.port or 443, ssl=identity.tls, server_hostname=identity.tls_name or url.hostname
        )
    except OSError:
        return ""  # the requests have said why
    served = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return _shown(validity_of_certificate(ssl.DER_cert_to_PEM_cert(served).encode())[1])


def _shown(moment: float | None) -> str:
    return "" if moment is None else format_time(datetime.fromtimestamp(moment, UTC))


class KindsFound(Struct, frozen=True):
    """What ``count_objects`` finds out.

    Attributes:
        server: The URL of the API server.
        totals: About how many objects there are, by kind; 0 where the API server does not say.
        unwatched: Why one of the kinds may not be watched; "" if all may.
    """

    server: str
    totals: dict[str, int]
    unwatched: str


def count_objects(plane: ControlPlane, resources: Sequence[Resource]) -> KindsFound:
    """Find out whether kinds can be listed and watched, and about how many objects they have.

    Args:
        plane: The control plane.
        resources: The kinds.

    Raises:
        LiveError: A kind cannot be listed.
    """

    async def work(reading: LiveReading) -> KindsFound:
        counts = {resource.kind: await _count(reading, resource) for resource in resources}
        refusals = [
            await _refusal_to_watch(reading, resource, version)
            for resource, (_, version) in zip(resources, counts.values(), strict=True)
        ]
        totals = {kind: count for kind, (count, _) in counts.items()}
        return KindsFound(reading.connection.server, totals, next(filter(None, refusals), ""))

    return read(plane, work)


async def _count(reading: LiveReading, resource: Resource) -> tuple[int, str]:
    """Return about how many objects of a kind there are, and the version of their list."""
    reading.subject = resource.plural
    try:
        return await KarmadaClient(reading.connection).count(resource)
    except ApiError as error:
        reading.raise_if_not_served(resource, error)
        raise


async def _refusal_to_watch(reading: LiveReading, resource: Resource, version: str) -> str:
    """Return why a kind may not be watched, "" if the API server accepts the request or gives no clear answer."""
    accepted = asyncio.Event()
    target = f"{resource.path}?watch=true&timeoutSeconds=1&resourceVersion={version}"

    async def follow() -> None:
        async with aclosing(reading.connection.watch(target, accepted.set)) as lines:
            async for _ in lines:
                return

    tasks = [asyncio.create_task(follow()), asyncio.create_task(accepted.wait())]
    try:
        await asyncio.wait(tasks, timeout=_WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        [result, _] = await asyncio.gather(*tasks, return_exceptions=True)
    is_forbidden = isinstance(result, ApiError) and result.code == FORBIDDEN
    return f"{resource.plural}: {result}" if is_forbidden else ""
