"""The certificate of a server is replaced while it runs; a pair that cannot be used is not."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from karmada_pyscheduler.http_server.listener import CertificateError, ServerCertificate
from tools.controlplane.pki import Authority


def names_of(authority: Authority, certificate: ServerCertificate) -> list[str]:
    """Return the names in the certificate that a client gets."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = certificate.context.wrap_bio(incoming, outgoing, server_side=True)
    client = ssl.create_default_context(cafile=str(authority.certificate)).wrap_bio(
        outgoing, incoming, server_hostname="localhost"
    )
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    found = client.getpeercert(binary_form=True)
    assert found is not None
    subject = x509.load_der_x509_certificate(found).subject
    return [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> tuple[Path, Path]:
    write(authority, "first", found := (tmp_path / "tls.crt", tmp_path / "tls.key"))
    return found


def write(authority: Authority, name: str, files: tuple[Path, Path]) -> None:
    issued = authority.issue(name, server=True)
    files[0].write_bytes(issued.certificate.read_bytes())
    files[1].write_bytes(issued.key.read_bytes())


def test_new_files_are_served_to_new_connections(authority: Authority, files: tuple[Path, Path]) -> None:
    certificate = ServerCertificate(*files)
    assert names_of(authority, certificate) == ["first"]

    write(authority, "second", files)
    certificate.refresh()

    assert names_of(authority, certificate) == ["second"]


@pytest.mark.parametrize("broken", ["text", "only the certificate", "away"])
def test_files_that_cannot_be_used_leave_the_pair_of_before(
    authority: Authority, files: tuple[Path, Path], broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = ServerCertificate(*files)
    key = files[1].read_bytes()
    write(authority, "second", files)
    if broken == "text":
        files[0].write_text("-----BEGIN CERTIFICATE-----")
    elif broken == "away":
        files[0].unlink()
    else:
        files[1].write_bytes(key)  # a Secret is replaced file by file

    with caplog.at_level(logging.ERROR):
        certificate.refresh()
        certificate.refresh()

    assert names_of(authority, certificate) == ["first"]
    assert len(caplog.records) == 1
    assert str(files[0]) in caplog.text

    write(authority, "third", files)
    certificate.refresh()
    assert names_of(authority, certificate) == ["third"]


def test_a_pair_that_cannot_be_used_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="No such file"):
        ServerCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
