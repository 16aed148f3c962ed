"""Reads credentials: from a kubeconfig, else from the Pod, else from ~/.kube.

``kubernetes.aio`` logs in by an auth-provider. The rest is read here: ``kubernetes.aio`` reads certificates, token files and
exec plugins once, keeps temporary files with keys, and continues without credentials when a plugin fails; and its import
takes longer than an answer of a command. docs/decisions/0018-api-server-input.md has more.

Everything here blocks; ``login`` runs it in a thread.

Source: k8s.io/client-go v0.35.3 tools/clientcmd/client_config.go, rest/config.go InClusterConfig.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from karmada_pyscheduler.client import exec_plugin, kubeconfig_file
from karmada_pyscheduler.client.exec_plugin import ExecPluginError
from karmada_pyscheduler.client.identity import (
    ConnectionConfigError,
    Identity,
    Pem,
    TLSMaterial,
    expiry_of_token,
    shown_time,
    stat_of,
    validity_of_certificate,
)
from karmada_pyscheduler.client.kubeconfig_file import NO_OVERRIDES, ConfigOverrides
from karmada_pyscheduler.http_server.connections import address_of

_PORTS: Final = {"http": 80, "https": 443}
_HOST_AND_PORT: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*):(?P<port>[^:]*)")


def proxy_of(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a server, None without one.

    Args:
        server: The URL of the API server.
        environment: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, or the same in small letters.
    """
    url = urlsplit(server)
    if url.scheme not in _PORTS:
        return None
    proxy = _value(environment, f"{url.scheme.upper()}_PROXY")
    host, port = (url.hostname or "").lower(), url.port or _PORTS[url.scheme]
    if not proxy or _is_excepted(host, port, _value(environment, "NO_PROXY")):
        return None
    return proxy if urlsplit(proxy).netloc else f"http://{proxy}"


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _is_excepted(host: str, port: int, listed: str) -> bool:
    """Return whether a host is reached without the proxy: the machine itself, and what ``NO_PROXY`` lists."""
    address = address_of(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in listed.split(","))
    return any(_matches(entry, host, address, port) for entry in entries if entry)


def _matches(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name = entry
    if (with_port := _HOST_AND_PORT.fullmatch(entry)) is not None:
        name = with_port["host"].strip("[]")
        if with_port["port"] not in ("", str(port)):
            return False
    if (listed := address_of(name)) is not None:
        return listed == address
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name


_USER_INFO: Final = re.compile(r"(?<=//)[^/?#]*@")
_LOG_IN: Final = ("token", "username", "password", "auth-provider")
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load(
    kubeconfig: str,
    master: str,
    *,
    now: float,
    known: Identity | None = None,
    overrides: ConfigOverrides = NO_OVERRIDES,
    has_default: bool = True,
) -> Identity:
    """Read credentials as karmada-scheduler does: the kubeconfig, else in-cluster, else ~/.kube.

    Args:
        kubeconfig: A path, or "".
        master: The server's address, which overrides the kubeconfig's, or "".
        now: The time of day in seconds since 1970.
        known: The credentials so far; their TLS context is used again if certificates and key are the same.
        overrides: What replaces parts of the kubeconfig.
        has_default: Whether ~/.kube is read; False for an API server that it may not be about.

    Raises:
        ConnectionConfigError: There are no usable credentials; the text lists what was tried.
    """
    reading = _Credentials(known, overrides)
    default = "no --kubeconfig given" if has_default else "the Pod's service account"
    where = f"kubeconfig {kubeconfig}" if kubeconfig else default
    try:
        if kubeconfig:
            reading.kubeconfigs([kubeconfig])
        elif not master:
            where = reading.defaults(has_kubeconfig=has_default) or where
        if master:
            reading.server = master if "://" in master else f"https://{master}"
        return reading.identity(now, where)
    except (ConnectionConfigError, ExecPluginError, OSError) as error:
        raise ConnectionConfigError(f"{where}: {' '.join(str(error).split()) or repr(error)}") from error
    except Exception as error:
        kind = type(error).__name__  # its text may have a secret
        raise ConnectionConfigError(f"{where}: cannot be used ({kind})") from error


class _Credentials:
    """The credentials of the files that were read so far."""

    def __init__(self, known: Identity | None, overrides: ConfigOverrides) -> None:
        self.server = ""
        self._known = known
        self._overrides = overrides
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
        """Read the credentials of kubeconfigs."""
        self._use(kubeconfig_file.merged(paths, self._read))

    def defaults(self, *, has_kubeconfig: bool) -> str:
        """Read the Pod's credentials, else the default kubeconfig; return the origin, "" for the Pod."""
        if problem := "a context, cluster or user is given" if self._overrides else self._read_pod():
            if not has_kubeconfig:
                raise ConnectionConfigError(problem)
            paths = kubeconfig_file.default_paths()
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
            self._take_token(self._text(str(_SERVICE_ACCOUNT / "token")), "the service account's token")
            self._authority = self._file("the service account's ca.crt", str(_SERVICE_ACCOUNT / "ca.crt"))
        except (OSError, ConnectionConfigError) as problem:
            return str(problem)
        self.server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        return ""

    def _use(self, document: dict[str, Any]) -> None:
        found = kubeconfig_file.selected(document, self._overrides)
        cluster, user = found.cluster, found.user
        self.server = cluster.get("server", "").rstrip("/")
        self._tls_name = cluster.get("tls-server-name")
        self._proxy_url = cluster.get("proxy-url")
        self._insecure = cluster.get("insecure-skip-tls-verify", False)
        self._authority = self._data_or_file(cluster, "certificate-authority")
        self._log_in(user, _authorization(user, found.user_name))

    def _log_in(self, user: Mapping[str, Any], authorization: str | None) -> None:
        self._certificate = self._data_or_file(user, "client-certificate")
        self._key = self._data_or_file(user, "client-key")
        token = authorization[7:] if authorization and authorization.startswith("Bearer ") else ""
        if path := user.get("tokenFile"):
            try:
                token = self._text(path)
            except (OSError, ConnectionConfigError):
                if not token:
                    raise
        if token:
            self._take_token(token, f"the token of {path}" if path else "the token")
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
        if not (token.strip().isascii() and token.strip().isprintable()):
            raise ConnectionConfigError(f"{what}: has characters that no HTTP header has")
        self._authorization = f"Bearer {token.strip()}"
        self._sent.append(what)
        expires_at = expiry_of_token(token.strip())
        if expires_at is not None:
            self._expiries.append((expires_at, what))

    def _data_or_file(self, entry: Mapping[str, Any], field: str) -> Pem | None:
        if data := entry.get(f"{field}-data"):
            try:
                content = base64.b64decode("".join(data.split()), validate=True)
            except ValueError as problem:
                raise ConnectionConfigError(f"{field}-data: is not base64: {problem}") from problem
            if not content:  # with an empty CA, Python would trust those of the system
                raise ConnectionConfigError(f"{field}-data: is empty")
            return Pem(f"{field}-data", content)
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
        except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
            text = getattr(problem, "strerror", None) or problem
            raise ConnectionConfigError(f"cannot read {path}: {text}") from problem

    def identity(self, now: float, where: str) -> Identity:
        """Return the credentials."""
        if not self.server:
            raise ConnectionConfigError("clusters: server: is missing")
        if not _is_http_url(self.server):
            shown = _USER_INFO.sub("", self.server)
            raise ConnectionConfigError(f"clusters: server: {shown!r} is not the URL of an HTTP server")
        proxy = self._proxy_url or proxy_of(self.server, os.environ)
        shown = _USER_INFO.sub("", proxy or "")
        field = "clusters: proxy-url" if self._proxy_url else f"{urlsplit(self.server).scheme.upper()}_PROXY"
        if proxy and not _is_http_url(proxy):
            raise ConnectionConfigError(f"{field}: {shown!r} is not the URL of an HTTP proxy")
        more = "" if self._proxy_url else "; NO_PROXY has exceptions"
        valid_from = None
        if self._certificate is not None:
            valid_from, expires_at = validity_of_certificate(self._certificate.content)
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
            expired = f"Credentials are out of date: {what} of {where} expired on {shown_time(expires_at)}"
        unverified = ""
        if self._insecure and self.server.startswith("https:"):
            unverified = f"The API server's certificate is not verified: insecure-skip-tls-verify in {where}"
        return Identity(
            server=self.server.rstrip("/"),
            authorization=self._authorization,
            tls=known.tls if known is not None and known.material == digest else material.context(),
            tls_name=self._tls_name,
            proxy_url=proxy,
            proxy=f"the proxy {shown} ({field}{more})" if proxy else "",
            material=digest,
            files=tuple(self._files.items()),
            loaded_at=now,
            expires_at=expires_at,
            shortcoming=f"{what} of {where}" if what else "",
            valid_from=valid_from,
            credential=f"{' and '.join(self._sent) or 'requests without credentials'} of {where}",
            warnings=tuple(text for text in (expired, unverified) if text),
        )


def _is_http_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        has_address = bool(url.hostname) and url.port != 0
    except ValueError:
        return False
    return url.scheme in {"http", "https"} and has_address and text.isprintable() and " " not in text


def _authorization(user: Mapping[str, Any], name: str) -> str | None:
    """Return the Authorization header of a user; None without a token, a password and an auth-provider."""
    if user.get("auth-provider"):
        return _by_auth_provider(user, name)
    if user.get("token"):
        return f"Bearer {user['token']}"
    if "username" in user and "password" in user:
        pair = f"{user['username']}:{user['password']}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return None


def _by_auth_provider(user: Mapping[str, Any], name: str) -> str | None:
    from kubernetes.aio import client, config

    settings = client.Configuration()
    document = {
        "current-context": "context",
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
        "clusters": [{"name": "cluster", "cluster": {"server": ""}}],
        "users": [{"name": "user", "user": {field: user[field] for field in _LOG_IN if field in user}}],
    }
    try:
        asyncio.run(config.load_kube_config_from_dict(document, client_configuration=settings))
    except Exception as error:  # the shapes have been checked
        text = str(error) or type(error).__name__
        raise ConnectionConfigError(f"users: {name}: auth-provider: {text}") from error
    authorization: str | None = settings.api_key.get("BearerToken")
    return authorization
