"""Who may read records on an address that others than this machine reach: whom the Karmada API server lets.

A reader needs a bearer token for ``AUDIENCE``, of somebody who may ``get`` the path ``PATH`` of the Karmada API server. That path is
not served; it stands for the records in rules of a ClusterRole (``nonResourceURLs``). Who may read gets all records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.reader_access import ReaderAccess
from karmada_scheduler.http_server.certificate import ServerCertificate

AUDIENCE: Final = "karmada-pyscheduler-records"
"""A token for it reads records and nothing else: the API server refuses it."""
PATH: Final = "/karmada-pyscheduler/records"


def records_access(
    certificate: ServerCertificate, connect: Callable[[], Awaitable[Connection]]
) -> ReaderAccess:
    """Return the access of readers of records; ``connect`` opens a connection to the Karmada API server."""
    return ReaderAccess(certificate, connect, what="records", path=PATH, audiences=[AUDIENCE])
