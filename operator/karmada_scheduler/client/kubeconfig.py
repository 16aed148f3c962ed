"""Reads credentials: from a kubeconfig, else from the Pod, else from ~/.kube.

``kubernetes.aio`` selects the context and supports the older ways to log in. Certificates, token files and exec plugins
are read here: ``kubernetes.aio`` reads each of them once, keeps temporary files with keys, and continues without
credentials when a plugin fails. docs/decisions/0018-api-server-input.md has more.

Everything here blocks; ``login`` runs it in a thread.

Source: k8s.io/client-go v0.35.3 tools/clientcmd (client_config.go, loader.go), rest/config.go InClusterConfig.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml
from kubernetes.aio import client, config
from kubernetes.aio.config import incluster_config

from karmada_scheduler.client import exec_plugin, expiry
from karmada_scheduler.client.identity import ConnectionConfigError, Identity, Pem, TLSMaterial, stat_of

_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_FOR_LIBRARY: Final = frozenset({
    "server", "insecure-skip-tls-verify", "tls-server-name", "proxy-url",
    "token", "username", "password", "auth-provider",
})  # fmt: skip


def load(kubeconfig: str, master: str, *, now: float, known: Identity | None = None) -> Identity:
    """Read credentials as karmada-scheduler does: the kubeconfig, else in-cluster, else ~/.kube.

    Args:
        kubeconfig: A path, or "".
        master: The server's address, which overrides the kubeconfig's, or "".
        now: The time of day in seconds since 1970.
        known: The credentials so far; their TLS context is used again if certificates and key are the same.

    Raises:
        ConnectionConfigError: There are no usable credentials; the text lists what was tried.
    """
    reading = _Reading(known)
    where = f"kubeconfig {kubeconfig}" if kubeconfig else "no --kubeconfig given"
    try:
        if kubeconfig:
            reading.kubeconfigs([kubeconfig])
        elif not master:
            where = reading.defaults() or where
        if master:
            reading.server = master if "://" in master else f"https://{master}"
        return reading.identity(now, where)
    except Exception as error:  # yaml and kubernetes raise various exceptions for broken files
        raise ConnectionConfigError(f"{where}: {' '.join(str(error).split()) or repr(error)}") from error


class _Reading:
    """The credentials of the files that were read so far."""

    def __init__(self, known: Identity | None) -> None:
        self.server = ""
        self._known = known
        self._files: dict[str, tuple[int, int, int] | None] = {}
        self._authorization: str | None = None
        self._tls_name: str | None = None
        self._proxy_url: str | None = None
        self._insecure = False
        self._authority: Pem | None = None
        self._certificate: Pem | None = None
        self._key: Pem | None = None
        self._expiries: list[tuple[float, str]] = []
        self._sent: list[str] = []

    def kubeconfigs(self, paths: list[str]) -> None:
        """Read kubeconfigs; the first one with a name counts."""
        merged: dict[str, Any] = {"clusters": [], "contexts": [], "users": []}
        for path in paths:
            document = self._document(path)
            for kind in ("clusters", "contexts", "users"):
                names = {each["name"] for each in merged[kind]}
                merged[kind] += [each for each in document.get(kind) or () if each["name"] not in names]
            if document.get("current-context"):
                merged.setdefault("current-context", document["current-context"])
        self._use(merged)

    def defaults(self) -> str:
        """Read the Pod's credentials, else the default kubeconfig; return the origin, "" for the Pod."""
        if problem := self._read_pod():
            paths = [path for path in (os.environ.get("KUBECONFIG") or "").split(":") if path]
            paths = [path for path in paths or [str(Path.home() / ".kube/config")] if Path(path).exists()]
            if not paths:
                tried = os.environ.get("KUBECONFIG") or "~/.kube/config"
                raise ConnectionConfigError(
                    f"not in a cluster ({problem}) and no default kubeconfig ({tried} does not exist)"
                )
            self.kubeconfigs(paths)
            return f"kubeconfig {':'.join(paths)}"
        return ""

    def _read_pod(self) -> str:
        """Use the credentials of the Pod's service account; return why that is not possible, "" if it is."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            return "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        try:
            self._take_token(
                self._text(incluster_config.SERVICE_TOKEN_FILENAME), "the service account's token"
            )
            self._authority = self._file(
                "the service account's ca.crt", incluster_config.SERVICE_CERT_FILENAME
            )
        except (OSError, ConnectionConfigError) as problem:
            return str(problem)
        self.server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        return ""

    def _document(self, path: str) -> dict[str, Any]:
        content = self._read(path)
        document = yaml.safe_load(content)
        if document is None:
            raise ConnectionConfigError(f"{path} is empty")
        if not isinstance(document, dict):
            raise ConnectionConfigError(f"{path} is not an object")
        folder = Path(path).absolute().parent
        for kind, name in (("clusters", "cluster"), ("users", "user")):
            for entry in document.get(kind) or ():
                _with_absolute_paths(entry.get(name) or {}, folder)
        return document

    def _use(self, document: dict[str, Any]) -> None:
        settings = client.Configuration()
        bare = {
            **document,
            "clusters": [_bare(entry, "cluster") for entry in document["clusters"]],
            "users": [_bare(entry, "user") for entry in document["users"]],
        }
        asyncio.run(config.load_kube_config_from_dict(bare, client_configuration=settings))
        context = _named(document["contexts"], document["current-context"])["context"]
        cluster = _named(document["clusters"], context["cluster"])["cluster"]
        entry = _named(document["users"], context.get("user")) if document["users"] else {}
        self.server = str(settings.host).rstrip("/") if cluster.get("server") else ""
        self._tls_name = settings.tls_server_name
        self._proxy_url = settings.proxy
        self._insecure = not settings.verify_ssl
        self._authority = self._data_or_file(cluster, "certificate-authority")
        self._log_in(entry.get("user") or {}, settings.api_key.get("BearerToken"))

    def _log_in(self, user: Mapping[str, Any], authorization: str | None) -> None:
        self._certificate = self._data_or_file(user, "client-certificate")
        self._key = self._data_or_file(user, "client-key")
        token = authorization[7:] if authorization and authorization.startswith("Bearer ") else ""
        if user.get("tokenFile"):
            try:
                token = self._text(user["tokenFile"])
            except (OSError, ConnectionConfigError):
                if not token:
                    raise
        if token:
            self._take_token(token, f"the token of {user.get('tokenFile') or 'the kubeconfig'}")
        elif authorization:
            self._authorization = authorization
            self._sent.append("the user name and password")
        elif user.get("exec"):
            self._run_plugin(user["exec"])

    def _run_plugin(self, plugin: Mapping[str, Any]) -> None:
        found = exec_plugin.run(plugin)
        what = f"of exec plugin {plugin['command']}"
        if found.token:
            self._take_token(found.token, f"the token {what}")
        if found.certificate:
            self._certificate = Pem(f"clientCertificateData {what}", found.certificate.encode())
            self._key = Pem(f"clientKeyData {what}", found.key.encode())
        if found.expires_at is not None:
            self._expiries.append((found.expires_at, f"the credential {what}"))

    def _take_token(self, token: str, what: str) -> None:
        self._authorization = f"Bearer {token.strip()}"
        self._sent.append(what)
        expires_at = expiry.of_token(token.strip())
        if expires_at is not None:
            self._expiries.append((expires_at, what))

    def _data_or_file(self, entry: Mapping[str, Any], field: str) -> Pem | None:
        if data := entry.get(f"{field}-data"):
            try:
                return Pem(f"{field}-data", base64.b64decode("".join(data.split()), validate=True))
            except (AttributeError, ValueError) as problem:
                raise ConnectionConfigError(f"{field}-data: is not base64: {problem}") from problem
        return self._file(field, entry[field]) if entry.get(field) else None

    def _file(self, field: str, path: str) -> Pem:
        content = self._read(path)
        if not content.strip():
            raise ConnectionConfigError(f"{field}: {path} is empty")
        return Pem(f"{field} {path}", content)

    def _text(self, path: str) -> str:
        text = self._read(path).decode(errors="replace").strip()
        if not text:
            raise ConnectionConfigError(f"{path} is empty")
        return text

    def _read(self, path: str) -> bytes:
        self._files[path] = stat_of(path)
        try:
            return Path(path).read_bytes()
        except OSError as problem:
            raise ConnectionConfigError(f"cannot read {path}: {problem.strerror}") from problem

    def identity(self, now: float, where: str) -> Identity:
        """Return the credentials."""
        if not self.server:
            raise ConnectionConfigError("clusters: server: is missing")
        url = urlsplit(self.server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ConnectionConfigError(f"{self.server!r} is not the URL of an HTTP server")
        valid_from = None
        if self._certificate is not None:
            valid_from, expires_at = expiry.validity_of_certificate(self._certificate.content)
            self._sent.append(f"the client certificate ({self._certificate.source})")
            if expires_at is not None:
                self._expiries.append((expires_at, f"the client certificate ({self._certificate.source})"))
        material = TLSMaterial(
            authority=self._authority, certificate=self._certificate, key=self._key, insecure=self._insecure
        )
        digest, known = material.digest(), self._known
        expires_at, what = min(self._expiries, default=(None, ""))
        expired = ""
        if expires_at is not None and expires_at <= now:
            expired = f"Credentials are out of date: {what} of {where} expired on {expiry.shown(expires_at)}"
        unverified = ""
        if self._insecure and self.server.startswith("https:"):
            unverified = f"The API server's certificate is not verified: insecure-skip-tls-verify in {where}"
        return Identity(
            server=self.server.rstrip("/"),
            authorization=self._authorization,
            tls=known.tls if known is not None and known.material == digest else material.context(),
            tls_name=self._tls_name,
            proxy_url=self._proxy_url,
            material=digest,
            files=tuple(self._files.items()),
            loaded_at=now,
            expires_at=expires_at,
            shortcoming=f"{what} of {where}" if what else "",
            valid_from=valid_from,
            credential=f"{' and '.join(self._sent) or 'requests without credentials'} of {where}",
            warnings=tuple(text for text in (expired, unverified) if text),
        )


def _with_absolute_paths(entry: dict[str, Any], folder: Path) -> None:
    """Make paths relative to the kubeconfig absolute; a command without a slash is found in PATH."""
    for field in _PATHS:
        if entry.get(field):
            entry[field] = str(folder / entry[field])
    plugin = entry.get("exec") or {}
    if "/" in (plugin.get("command") or ""):
        plugin["command"] = str(folder / plugin["command"])


def _bare(entry: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an entry with the fields that kubernetes.aio reads."""
    fields = entry.get(name) or {}
    return {**entry, name: {field: value for field, value in fields.items() if field in _FOR_LIBRARY}}


def _named(entries: list[dict[str, Any]], name: object) -> dict[str, Any]:
    return next((entry for entry in entries if entry["name"] == name), {})
