"""The certificates of one control plane: a single authority that signs everything.

Keys are ECDSA P-256, which takes no time to make, and readable by their owner only. Certificates have what Go
requires and nothing else: there are authorities without key usage and certificates that do not name the key
that signed them, and clients of a server here have to accept them.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# The aggregator verifies the Service's name whatever address it dials.
SERVER_NAMES = (
    "localhost",
    "kubernetes.default.svc",
    "karmada-aggregated-apiserver.karmada-system.svc",
    "karmada-webhook.karmada-system.svc",
)
ADMIN_GROUP = "system:masters"
_VALID_FOR: Final = dt.timedelta(days=90)
_KEY_USAGE: Final = x509.KeyUsage(
    digital_signature=True,
    key_encipherment=True,
    key_cert_sign=False,
    crl_sign=False,
    content_commitment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that keeps its files in one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("karmada")
        self.certificate = folder / "ca.crt"
        self._own = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate.write_bytes(self._own.public_bytes(serialization.Encoding.PEM))
        _write_secret(
            folder / "ca.key", _private_pem(self._key)
        )  # for kube-controller-manager, if it is to sign

    @property
    def bundle(self) -> str:
        """The authority's certificate as base64, the form of caBundle fields."""
        return base64.b64encode(self.certificate.read_bytes()).decode()

    def issue(
        self,
        common_name: str,
        *,
        groups: Sequence[str] = (),
        server: bool = False,
        valid_for: dt.timedelta = _VALID_FOR,
    ) -> Credentials:
        """Sign a certificate for a client, or for a server on this machine.

        The files are named after the common name; a further call replaces them. It is valid from five minutes ago.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_name(common_name, groups), self._name, key.public_key(), valid_for)
        if server:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            names: list[x509.GeneralName] = [x509.DNSName(name) for name in SERVER_NAMES]
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_KEY_USAGE, critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        stem = self._folder / common_name.replace(":", "-").replace("/", "-")
        credentials = Credentials(stem.with_name(stem.name + ".crt"), stem.with_name(stem.name + ".key"))
        credentials.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_secret(credentials.key, _private_pem(key))
        return credentials

    def key_pair(self, name: str) -> tuple[Path, Path]:
        """Make a key pair without a certificate; returns the private and the public file."""
        key = ec.generate_private_key(ec.SECP256R1())
        private, public = self._folder / f"{name}.key", self._folder / f"{name}.pub"
        _write_secret(private, _private_pem(key))
        public.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        return private, public

    def kubeconfig(self, path: Path, *, server: str, user: Credentials | str) -> Path:
        """Write a kubeconfig that stands alone, for a certificate or a bearer token."""
        if isinstance(user, str):
            identity: dict[str, Any] = {"token": user}
        else:
            identity = {
                "client-certificate-data": base64.b64encode(user.certificate.read_bytes()).decode(),
                "client-key-data": base64.b64encode(user.key.read_bytes()).decode(),
            }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "karmada", "cluster": {"server": server, "certificate-authority-data": self.bundle}}
            ],
            "users": [{"name": "user", "user": identity}],
            "contexts": [{"name": "karmada", "context": {"cluster": "karmada", "user": "user"}}],
            "current-context": "karmada",
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_secret(path, json.dumps(config, indent=1).encode())  # JSON is YAML
        return path


def _name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    valid_for: dt.timedelta = _VALID_FOR,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + valid_for)
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_secret(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)
