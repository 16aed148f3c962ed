"""Metrics over HTTPS: whom the API server of the host lets, and what the process does while that hangs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from karmada_pyscheduler.app.host import Environment, secure_metrics
from karmada_pyscheduler.client import kubeconfig, reviews
from karmada_pyscheduler.client.identity import ConnectionConfigError
from karmada_pyscheduler.metrics.metrics import CONTENT_TYPE, Metrics
from karmada_scheduler.config import flags
from karmada_scheduler.config.problems import ConfigError
from tests.unit.client.test_reader_access import FakeHost
from tools.controlplane.pki import Authority, Credentials
from tools.controlplane.processes import free_port


class Served:
    """Metrics with a certificate, and the API server of the host."""

    def __init__(self, authority: Authority) -> None:
        self.host = FakeHost()
        self.connected: list[dict[str, Any]] = []
        self.port = free_port()
        issued = authority.issue("metrics", server=True)
        self.metrics = secure_metrics(
            flags.parse(_pair(issued, f"--metrics-bind-address=127.0.0.1:{self.port}")),
            Environment(connect=self._connect),
            Metrics().exposition,
            CONTENT_TYPE,
        )
        self._client = ssl.create_default_context(cafile=str(authority.certificate))

    async def _connect(self, **arguments: Any) -> Any:
        self.connected.append(arguments)
        return self.host

    async def get(self, token: str = "", **headers: str) -> tuple[int, str, str]:
        """Return status, type and body of a scrape."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        async with (
            aiohttp.ClientSession() as session,
            session.get(
                f"https://127.0.0.1:{self.port}/metrics", headers=headers, ssl=self._client
            ) as answer,
        ):
            return answer.status, answer.headers["Content-Type"], await answer.text()


def _pair(issued: Credentials, *more: str) -> list[str]:
    return [f"--metrics-tls-cert-file={issued.certificate}", f"--metrics-tls-key-file={issued.key}", *more]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


@pytest.fixture
async def served(authority: Authority) -> AsyncIterator[Served]:
    found = Served(authority)
    await found.metrics.start()
    yield found
    await found.metrics.stop()


async def test_a_scrape_needs_a_token_whatever_name_it_asks(served: Served) -> None:
    assert (await served.get())[0] == 401
    assert (await served.get("bad"))[0] == 401
    status, content_type, body = await served.get("good", Host="10.1.2.3:8080")

    assert (status, content_type) == (200, f"{CONTENT_TYPE}; charset=utf-8")
    assert "karmada_build_info" in body
    served.host.allowed = False
    assert (await served.get("good"))[0] == 200  # a yes counts for some time
    assert served.connected == [{"kubeconfig": "", "master": "", "has_default": False}]


async def test_while_the_host_hangs_a_scrape_gets_503_in_time_and_no_data(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviews, "_SECONDS", 0.1)

    async def hang(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(served.host, "request", hang)
    async with asyncio.timeout(5):
        found = await asyncio.gather(*(served.get(f"t{number}") for number in range(20)))

    assert {status for status, _, _ in found} == {503}
    assert not any("karmada_build_info" in body for _, _, body in found)


def test_a_certificate_that_cannot_be_used_ends_the_start(authority: Authority, tmp_path: Path) -> None:
    issued = authority.issue("metrics", server=True)
    issued.key.write_text("no key")
    options = flags.parse(_pair(issued))

    with pytest.raises(ConfigError, match="--metrics-tls-cert-file"):
        secure_metrics(options, Environment(), Metrics().exposition, CONTENT_TYPE)


async def test_without_an_account_of_the_host_the_start_ends_and_no_other_kubeconfig_is_tried(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    karmada = authority.kubeconfig(tmp_path / "karmada", server="https://karmada", user="token")
    monkeypatch.setenv("KUBECONFIG", str(karmada))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT", tmp_path)
    options = flags.parse(_pair(authority.issue("metrics", server=True)))
    metrics = secure_metrics(options, Environment(), Metrics().exposition, CONTENT_TYPE)

    with pytest.raises(ConnectionConfigError) as failed:
        await metrics.start()

    for part in ("--metrics-tls-cert-file", str(tmp_path / "token"), "or name --metrics-kubeconfig"):
        assert part in str(failed.value)
