"""Requests of a connection, and its import by a user without a name and a home directory."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.http_connection import OutgoingRequest, Response
from karmada_pyscheduler.client.identity import Identity
from karmada_pyscheduler.client.login import Login
from tools.controlplane.pki import Authority

T = TypeVar("T")
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_UNNAMED_USER = """
import os, pwd
def unknown(uid): raise KeyError("getpwuid(): uid not found")
pwd.getpwuid = unknown
os.environ.pop("HOME", None)
import karmada_pyscheduler.client.connection
print(os.environ["HOME"])
"""


def test_a_user_without_a_name_and_a_home_can_import_the_client() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", _UNNAMED_USER], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "/\n"


def test_a_connection_needs_neither_aiohttp_nor_kubernetes(tmp_path: Path) -> None:
    """Each takes longer to import than a short answer of a command takes; a watch and an auth-provider need them."""
    config = Authority(tmp_path).kubeconfig(tmp_path / "config", server="https://karmada", user="token")
    program = (
        "import asyncio, sys\n"
        "from karmada_pyscheduler.client.connection import connect\n"
        f"asyncio.run(connect(kubeconfig={str(config)!r}, master=''))\n"
        "print({'aiohttp', 'kubernetes'} & sys.modules.keys())"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (answer.stderr, answer.stdout) == ("", "set()\n")


class PermissionEndedError(Exception):
    """What a write's check raises here."""


class Term:
    """Permits writes until a time of an injected clock, as a Lease does."""

    def __init__(self) -> None:
        self.now = 0.0
        self.checks = 0

    def ensure(self) -> None:
        self.checks += 1
        if self.now >= 10.0:
            raise PermissionEndedError


class FakeTransport:
    """Answers each request with the next status."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = [*statuses]
        self.sent: list[str] = []

    def __call__(self, _: Identity) -> Any:
        return self

    async def request(self, request: OutgoingRequest) -> Response:
        request.before_send()
        self.sent.append(f"{request.method} {request.target}")
        return Response(self.statuses.pop(0), {"content-type": "application/json"}, b"{}")


def identity(number: int, *, expires_at: float | None = None) -> Identity:
    return Identity(
        server="http://it",
        authorization=f"Bearer {number}",
        tls=TLS,
        tls_name=None,
        proxy_url=None,
        material=b"",
        files=(),
        loaded_at=0.0,
        expires_at=expires_at,
        shortcoming="the token",
    )


def login_that_takes_long(term: Term, *, expires_at: float | None = None) -> Login:
    """The term has ended when new credentials have been read."""

    async def read(work: Callable[[], T], *, name: str) -> T:
        del name
        term.now += 20.0
        return work()

    first = identity(0, expires_at=expires_at)
    return Login(lambda _: identity(1), first, clock=lambda: 10.0, now=lambda: 1000.0, in_thread=read)


async def test_a_write_that_waits_for_credentials_is_not_sent_after_its_permission_has_ended() -> None:
    term, transport = Term(), FakeTransport(200)
    login = login_that_takes_long(term, expires_at=1000.0)
    login._check_at = 0.0
    connection = Connection(login, transport=transport)
    with pytest.raises(PermissionEndedError):
        await connection.request("PATCH", "/x", before_send=term.ensure)
    assert transport.sent == []


async def test_a_write_whose_credentials_were_refused_is_not_repeated_after_its_permission_has_ended() -> (
    None
):
    term, transport = Term(), FakeTransport(401, 200)
    connection = Connection(login_that_takes_long(term), transport=transport)
    with pytest.raises(PermissionEndedError):
        await connection.request("PATCH", "/x", before_send=term.ensure)
    assert (transport.sent, term.checks) == (["PATCH /x"], 2)
