"""TLS: verification of the server, and the client certificate."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from karmada_pyscheduler.extenders.transport import ExtenderTLSError, context_for
from karmada_scheduler.config.extenders import ExtenderConfig, ExtenderTLS
from karmada_scheduler.framework.runtime.extenders import ExtenderError
from tests.strict_tls import as_of_python_3_13
from tests.unit.extenders.conftest import ExtenderFactory
from tests.unit.extenders.fake import FakeExtender, Scene
from tools.controlplane.pki import Authority, Credentials

SERVICE = "kubernetes.default.svc"  # a name in every server certificate of the authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("unknown"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Credentials:
    return authority.issue("extender", server=True)


@pytest.fixture(scope="module")
def client(authority: Authority) -> Credentials:
    return authority.issue("scheduler")


@pytest.fixture
async def secure(authority: Authority, server: Credentials) -> AsyncIterator[FakeExtender]:
    """An extender that requests client certificates and accepts every client."""
    context = ssl.SSLContext(
        ssl.PROTOCOL_TLS_SERVER
    )  # the default context of Python 3.13 refuses this authority
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(server.certificate, server.key)
    fake = FakeExtender()
    await fake.start(context)
    fake.answers("filter", {"ClusterNames": ["m1"]})
    yield fake
    await fake.stop()


async def _request(make: ExtenderFactory, url: str, tls: ExtenderTLS | None, *, enable: bool = True) -> str:
    """Return the text of the error, or an empty string."""
    scene = Scene("m1")
    extender = make(url, scene.manifests, enable_https=enable, tls_config=tls)
    try:
        result = await extender.filter(scene.cycle, scene.clusters)
    except ExtenderError as error:
        return str(error)
    assert result.kept == {"m1"}
    return ""


@pytest.mark.parametrize("form", ["file", "data", "data beats file", "data with comments"])
async def test_the_server_is_verified_with_the_ca(
    form: str, secure: FakeExtender, authority: Authority, unknown: Authority, make: ExtenderFactory
) -> None:
    content = authority.certificate.read_bytes()
    tls = {
        "file": ExtenderTLS(ca_file=str(authority.certificate)),
        "data": ExtenderTLS(ca_data=content),
        "data beats file": ExtenderTLS(ca_file=str(unknown.certificate), ca_data=content),
        "data with comments": ExtenderTLS(ca_data="# Főtanúsítvány\n".encode() + content),
    }[form]
    assert await _request(make, secure.url, tls) == ""
    assert await _request(make, secure.url, tls, enable=False) == ""


async def test_a_ca_without_key_usage_is_accepted_on_every_python(
    secure: FakeExtender, authority: Authority, make: ExtenderFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_of_python_3_13(monkeypatch)
    assert await _request(make, secure.url, ExtenderTLS(ca_file=str(authority.certificate))) == ""


async def test_every_certificate_of_the_bundle_is_trusted(
    secure: FakeExtender, server: Credentials, make: ExtenderFactory
) -> None:
    assert await _request(make, secure.url, ExtenderTLS(ca_file=str(server.certificate))) == ""


async def test_a_server_with_a_certificate_of_another_ca_is_refused(
    secure: FakeExtender, unknown: Authority, make: ExtenderFactory
) -> None:
    text = await _request(make, secure.url, ExtenderTLS(ca_file=str(unknown.certificate)))
    assert text.startswith(f"failed filter with extender at URL {secure.url}/filter, ")
    assert "certificate verify failed" in text
    assert secure.requests == []


@pytest.mark.parametrize("tls", [None, ExtenderTLS(), ExtenderTLS(server_name="another.name")])
async def test_without_a_ca_https_is_not_verified(
    tls: ExtenderTLS | None, secure: FakeExtender, make: ExtenderFactory
) -> None:
    assert await _request(make, secure.url, tls) == ""


async def test_without_enable_https_the_authorities_of_the_system_count(
    secure: FakeExtender, make: ExtenderFactory
) -> None:
    assert "certificate verify failed" in await _request(make, secure.url, None, enable=False)
    assert await _request(make, secure.url, ExtenderTLS(insecure=True), enable=False) == ""


async def test_the_server_name_is_the_host_of_the_url_or_server_name(
    secure: FakeExtender, authority: Authority, make: ExtenderFactory
) -> None:
    ca = str(authority.certificate)
    assert await _request(make, secure.url, ExtenderTLS(ca_file=ca, server_name=SERVICE)) == ""
    text = await _request(make, secure.url, ExtenderTLS(ca_file=ca, server_name="other.svc"))
    assert "other.svc" in text


@pytest.mark.parametrize("form", ["files", "data", "data and file", "data beats files"])
async def test_the_client_certificate_is_sent(
    form: str,
    secure: FakeExtender,
    authority: Authority,
    unknown: Authority,
    client: Credentials,
    make: ExtenderFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    certificate, key = client.certificate.read_bytes(), client.key.read_bytes()
    crt_file, key_file = str(client.certificate), str(client.key)
    wrong = unknown.issue("unknown")
    verified = ExtenderTLS(ca_file=str(authority.certificate))
    tls = {
        "files": replace(verified, cert_file=crt_file, key_file=key_file),
        "data": replace(verified, cert_data=certificate, key_data=key),
        "data and file": replace(verified, cert_data=certificate, key_file=key_file),
        "data beats files": replace(
            verified,
            cert_data=certificate,
            key_data=key,
            cert_file=str(wrong.certificate),
            key_file=str(wrong.key),
        ),
    }[form]
    assert await _request(make, secure.url, tls) == ""
    [shown] = secure.certificates
    assert shown is not None
    assert shown["subject"] == ((("commonName", "scheduler"),),)
    assert os.listdir(tmp_path) == [], "no key is left behind"  # noqa: PTH208


async def test_a_tls_connection_is_kept(
    secure: FakeExtender, authority: Authority, make: ExtenderFactory
) -> None:
    scene = Scene("m1")
    tls = ExtenderTLS(ca_file=str(authority.certificate), server_name=SERVICE)
    extender = make(secure.url, scene.manifests, enable_https=True, tls_config=tls)
    for _ in range(10):
        await extender.filter(scene.cycle, scene.clusters)
    assert (len(secure.requests), len(secure.peers)) == (10, 1)


async def test_http_to_a_tls_port_is_an_error(secure: FakeExtender, make: ExtenderFactory) -> None:
    plain = secure.url.replace("https:", "http:")
    text = await _request(make, plain, ExtenderTLS(insecure=True))
    assert text.startswith(f"failed filter with extender at URL {plain}/filter, ")


def test_the_scheme_of_the_url_decides_about_tls() -> None:
    tls = ExtenderTLS(insecure=True)
    assert context_for(ExtenderConfig(url_prefix="http://x", enable_https=True, tls_config=tls)) is None
    assert context_for(ExtenderConfig(url_prefix="HTTPS://x", enable_https=True)) is not None


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        (ExtenderTLS(ca_file="/no/such/ca.crt"), "caFile /no/such/ca.crt: No such file or directory"),
        (ExtenderTLS(ca_data=b"nonsense"), "caData: "),
        (ExtenderTLS(ca_data=b"\xff"), "caData: "),
        (ExtenderTLS(cert_data=b"nonsense", key_data=b"nonsense"), "certData with keyData: "),
        (ExtenderTLS(cert_file="/no/crt", key_file="/no/key"), "certFile /no/crt: No such file or directory"),
    ],
    ids=["no such CA", "CA nonsense", "CA no text", "certificate nonsense", "no such certificate"],
)
def test_invalid_certificates_are_an_error_at_the_start(tls: ExtenderTLS, text: str) -> None:
    with pytest.raises(ExtenderTLSError) as caught:
        context_for(ExtenderConfig(url_prefix="https://somebody:secret@x", enable_https=True, tls_config=tls))
    assert str(caught.value).startswith(f"extender https://x: tlsConfig: cannot use {text}")


def test_an_empty_ca_file_is_an_error_and_does_not_mean_the_authorities_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    tls = ExtenderTLS(ca_file=str(tmp_path / "ca.crt"))
    with pytest.raises(ExtenderTLSError, match=r"cannot use caFile .*ca\.crt: "):
        context_for(ExtenderConfig(url_prefix="https://x", tls_config=tls))
