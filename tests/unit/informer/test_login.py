"""kopf logs in with the credentials and the trusted authorities of the client."""

from __future__ import annotations

import getpass
import ssl
from pathlib import Path
from typing import Any

import pytest

from karmada_pyscheduler.client.connection import connect
from tests.strict_tls import as_of_python_3_13
from tests.unit.informer.watch_harness import GONE, WatchHarness, api_server, to, touch, until
from tools.controlplane.pki import Authority


async def test_certificates_that_go_accepts_are_accepted_on_every_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_of_python_3_13(monkeypatch)
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_verify_locations(authority.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    server = authority.issue("server", server=True)
    tls.load_cert_chain(server.certificate, server.key)
    with api_server(tls) as api:
        kubeconfig = authority.kubeconfig(
            tmp_path / "kubeconfig", server=api.url, user=authority.issue("scheduler")
        )
        connection = await connect(kubeconfig=str(kubeconfig), master="")
        try:
            harness = WatchHarness(lambda: connection._identity)
            async with harness.running():
                await until(lambda: ("Cluster", "ADDED", "m1") in harness.events)
        finally:
            await connection.close()
    assert {each.certificate["subject"] for each in api.requests if each.certificate} == {
        ((("commonName", "scheduler"),),)
    }


async def test_a_user_id_without_a_name_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def unnamed() -> str:
        raise KeyError("getpwuid(): uid not found: 1000650000")

    monkeypatch.setattr(getpass, "getuser", unnamed)
    with api_server() as api:
        harness = WatchHarness(lambda: to(api))
        async with harness.running():
            await until(lambda: ("Cluster", "ADDED", "m1") in harness.events)


async def test_a_refused_token_is_read_again_and_the_watch_continues() -> None:
    tokens = ["first"]
    with api_server() as api:
        api.token = "first"
        harness = WatchHarness(lambda: to(api, tokens[-1]))
        async with harness.running():
            await until(lambda: ("Cluster", "ADDED", "m1") in harness.events)
            api.token = "second"
            tokens.append("second")
            api.send("Cluster", GONE)  # so that it connects again
            await until(lambda: harness.loads == 1)
            touch(api)
            await until(lambda: ("Cluster", "MODIFIED", "m1") in harness.events)
            assert harness.starts == 1
    assert {each.authorization for each in api.requests} == {"Bearer first", "Bearer second"}


async def test_logins_with_the_same_token_are_equal() -> None:
    """kopf compares logins: it ends, and is started again with a pause, only if the new one equals the refused one."""
    with api_server() as api:
        tokens = ["first", "second"]
        harness = WatchHarness(lambda: to(api, tokens.pop(0)))
        [handler] = harness.watch._registry()._activities.get_all_handlers()
        login: Any = handler.fn
        first, again = await login(), await login()
        await harness.connection.login.renewed(harness.connection._identity)
        second = await login()
    assert first.expiration < again.expiration
    assert first == again
    assert first != second
