"""Credentials and servers from kubeconfigs and service accounts."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from karmada_pyscheduler.client import exec_plugin, kubeconfig
from karmada_pyscheduler.client.exec_plugin import ExecPluginError
from karmada_pyscheduler.client.identity import (
    ConnectionConfigError,
    Identity,
    expiry_of_token,
    validity_of_certificate,
)
from karmada_pyscheduler.client.kubeconfig import load
from tools.controlplane.pki import Authority, Credentials

SERVER = "https://karmada.example:5443"


def _config(path: Path, user: Any = None, **cluster: Any) -> str:
    document = {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": SERVER, **cluster}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": [{"name": "u", "user": user or {}}],
    }
    path.write_text(json.dumps(document))
    return str(path)


def _load(path: Path | str, known: Identity | None = None, *, master: str = "") -> Identity:
    return load(str(path), master, now=time.time(), known=known)


def _files(user: Credentials) -> dict[str, str]:
    return {"client-certificate": str(user.certificate), "client-key": str(user.key)}


def _token(**claims: Any) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)
    ]
    return ".".join([*parts, "signature"])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


def test_the_proxy_of_the_kubeconfig_comes_before_that_of_the_environment(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://environment:3128")
    _config(config, **{"proxy-url": "http://own:3128"})
    assert _load(str(config)).proxy_url == "http://own:3128"
    _config(config)
    assert _load(str(config)).proxy_url == "http://environment:3128"
    monkeypatch.setenv("HTTP_PROXY", "ftp://plain:21")
    with pytest.raises(ConnectionConfigError, match="HTTP_PROXY: 'ftp://plain:21' is not the URL of an HTTP"):
        _load(str(config), master="http://karmada.example")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://user:secret@environment:1")
    with pytest.raises(
        ConnectionConfigError, match="HTTPS_PROXY: 'socks5://environment:1' is not the URL of an HTTP proxy"
    ):
        _load(str(config))


def test_server_proxy_and_name_are_read(config: Path) -> None:
    _config(config, **{"proxy-url": "http://proxy:3128", "tls-server-name": "karmada"})
    found = _load(config)
    assert (found.server, found.proxy_url, found.tls_name) == (SERVER, "http://proxy:3128", "karmada")
    assert found.authorization is None
    assert found.warnings == ()


def test_master_overrides_the_server(config: Path) -> None:
    _config(config, {"token": "t"})
    found = _load(config, master="other:443")
    assert (found.server, found.authorization) == ("https://other:443", "Bearer t")
    assert _load("", master="http://other").server == "http://other"


def test_a_token_file_comes_before_a_token_and_a_token_before_a_plugin(config: Path) -> None:
    (config.parent / "token").write_text("from the file\n")
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "not-there"}
    _config(config, {"tokenFile": "token", "token": "static", "exec": plugin})
    assert _load(config).authorization == "Bearer from the file"
    (config.parent / "token").unlink()
    assert _load(config).authorization == "Bearer static"


def test_name_and_password_are_sent_as_basic(config: Path) -> None:
    _config(config, {"username": "a", "password": "b"})
    assert _load(config).authorization == f"Basic {base64.b64encode(b'a:b').decode()}"


def test_the_tls_context_stays_as_long_as_certificates_do(config: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    user = authority.issue("u")
    ca = {"certificate-authority": str(authority.certificate)}
    _config(config, _files(user), **ca)
    first = _load(config)
    _config(config, {**_files(user), "token": "t"}, **ca)
    second = _load(config, first)
    assert second.tls is first.tls
    authority.issue("u")
    third = _load(config, second)
    assert third.tls is not second.tls
    assert third.differs_from(second)
    assert second.files_changed()
    assert not third.files_changed()


def test_embedded_certificates_leave_no_file_behind(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    authority = Authority(tmp_path)
    authority.kubeconfig(config, server=SERVER, user=authority.issue("u"))
    shown: list[tuple[int, int]] = []
    chain = ssl.SSLContext.load_cert_chain

    def seen(context: ssl.SSLContext, certificate: Any, key: Any, password: Any) -> None:
        shown.append((Path(key).parent.stat().st_mode & 0o777, len(list(folder.iterdir()))))
        chain(context, certificate, key, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", seen)
    _load(config)
    assert shown == [(0o700, 1)]
    assert list(folder.iterdir()) == []


def test_an_expired_certificate_is_named_with_its_file_and_date(config: Path, tmp_path: Path) -> None:
    user = Authority(tmp_path).issue("u", valid_for=dt.timedelta(minutes=-1))
    _config(config, _files(user))
    found = _load(config)
    _, expires_at = validity_of_certificate(user.certificate.read_bytes())
    assert expires_at == found.expires_at
    text = found.expired(time.time())
    assert text.startswith(
        f"the client certificate (client-certificate {user.certificate}) of kubeconfig {config}"
    )
    assert text.endswith(
        f"expired on {dt.datetime.fromtimestamp(expires_at or 0, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    )
    assert found.warnings == (f"Credentials are out of date: {text}",)


def test_a_certificate_that_is_not_valid_yet_is_reported_with_its_date(config: Path, tmp_path: Path) -> None:
    _config(config, _files(Authority(tmp_path).issue("u")))
    found = _load(config)
    valid_from = found.valid_from or 0
    assert 240 < time.time() - valid_from < 3600
    assert found.not_yet_valid(valid_from) == ""
    date = f"{dt.datetime.fromtimestamp(valid_from, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    assert found.not_yet_valid(valid_from - 1) == f"the client certificate is valid from {date} only"


@pytest.mark.parametrize(
    ("user", "credential"),
    [
        ({"token": "opaque"}, "the token"),
        ({"username": "a", "password": "b"}, "the user name and password"),
        ({}, "requests without credentials"),
    ],
)
def test_the_source_of_the_credentials_is_named(config: Path, user: dict[str, str], credential: str) -> None:
    _config(config, user)
    assert _load(config).credential == f"{credential} of kubeconfig {config}"


def test_an_expired_token_is_named_with_its_file_and_date(config: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(_token(exp=1000))
    _config(config, {"tokenFile": "token"})
    text = f"the token of {tmp_path / 'token'} of kubeconfig {config} expired on 1970-01-01T00:16:40Z"
    assert _load(config).expired(time.time()) == text


@pytest.mark.parametrize(
    "token", ["", "opaque", "a.b.c", "a.bnVsbA.c", _token(), _token(exp="x"), _token(exp=True)]
)
def test_a_token_without_an_expiry_has_none(token: str) -> None:
    assert expiry_of_token(token) is None


@pytest.mark.parametrize(
    "pem", [b"", b"x", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_an_invalid_certificate_has_no_expiry(pem: bytes) -> None:
    assert validity_of_certificate(pem) == (None, None)


def test_a_server_that_is_not_verified_is_a_warning(config: Path) -> None:
    _config(config, **{"insecure-skip-tls-verify": True})
    found = _load(config)
    assert found.tls.verify_mode == ssl.CERT_NONE
    assert found.warnings == (
        f"The API server's certificate is not verified: insecure-skip-tls-verify in kubeconfig {config}",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "{path} is empty"),
        ("# nothing\n", "{path} is empty"),
        ("[1]", "{path} is not an object"),
        ("a: [", "while parsing"),
        ("clusters: 5", "clusters: expected a list, got a number"),
        ('{"clusters": [{"name": "k"}]}', "current-context: is missing"),
        ("clusters: [{}]", "clusters[0].name: is missing"),
        ("{current-context: c, contexts: [{name: c}]}", "contexts: c: cluster: is missing"),
        ("{current-context: c, contexts: [{name: d}]}", "contexts: there is no entry of the name c"),
        ("a: \x00", "is no YAML: "),
        ("a: " + "[" * 2000, "is no YAML: line 1, column 203: it is nested too deeply"),
    ],
)
def test_an_invalid_kubeconfig_is_named(config: Path, text: str, problem: str) -> None:
    config.write_text(text)
    with pytest.raises(ConnectionConfigError) as caught:
        _load(config)
    assert str(caught.value).startswith(f"kubeconfig {config}: ")
    assert problem.format(path=config) in str(caught.value)


@pytest.mark.parametrize(
    ("user", "cluster", "problem"),
    [
        ({}, {"server": ""}, "clusters: server: is missing"),
        ({}, {"server": "nonsense"}, "'nonsense' is not the URL of an HTTP server"),
        ({}, {"server": "https://[::1"}, "clusters: server: 'https://[::1' is not the URL of an HTTP server"),
        ({}, {"server": "https://a:99999"}, "clusters: server: 'https://a:99999' is not the URL"),
        ({}, {"server": "https://me:pass@a:x"}, "clusters: server: 'https://a:x' is not the URL"),
        ({}, {"proxy-url": "proxy:80"}, "clusters: proxy-url: 'proxy:80' is not the URL of an HTTP proxy"),
        ({}, {"insecure-skip-tls-verify": "false"}, "insecure-skip-tls-verify: expected true or false, got a string"),
        ({}, {"certificate-authority-data": " "}, "certificate-authority-data: is empty"),
        ({}, {"certificate-authority": "a\0b"}, "cannot read "),
        ({"token": ["t"]}, {}, "users[0].user.token: expected a string, got a list"),
        ({"token": "a\nb"}, {}, "the token: has characters that no HTTP header has"),
        ({"username": "u", "password": 5}, {}, "users[0].user.password: expected a string, got a number"),
        ({"auth-provider": {"name": "oidc"}}, {}, "users: u: auth-provider: oidc: missing configuration"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "env": [{}]}}, {},
         "exec plugin x: cannot be run: "),
        ({}, {"certificate-authority": "/not/there"}, "cannot read /not/there: No such file or directory"),
        ({}, {"certificate-authority-data": "!"}, "certificate-authority-data: "),
        ({}, {"certificate-authority-data": "eA=="}, "certificate or key cannot be used: certificate-authority-data"),
        ({"client-certificate-data": "eA==", "client-key-data": "eA=="}, {}, "client-certificate-data with client-key-data"),
        ({"client-certificate-data": "eA=="}, {}, "client-certificate and client-key: one of them is missing"),
        ({"tokenFile": "/not/there"}, {}, "cannot read /not/there"),
        ({"exec": {"apiVersion": "v1", "command": "x"}}, {}, "exec plugin x: apiVersion: expected"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, {}, "exec: command: is missing"),
    ],
)  # fmt: skip
def test_unusable_credentials_are_named(config: Path, user: Any, cluster: Any, problem: str) -> None:
    _config(config, user, **cluster)
    with pytest.raises(ConnectionConfigError, match=f"kubeconfig {config}: ") as caught:
        _load(config)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "users: [{name: u, user: {token: *s3cr3t}}]",
        "users: [{name: u, user: {token: !s3cr3t x}}]",
        'token: "s3cr3t',
        "token: s3cr3t: s3cr3t",
        "token: !!int s3cr3t",
        "token: {s3cr3t",
    ],
)
def test_an_error_about_yaml_shows_no_text_of_the_kubeconfig(config: Path, text: str) -> None:
    config.write_text(text)
    with pytest.raises(ConnectionConfigError, match="is no YAML: line 1, column") as caught:
        _load(config)
    assert "s3cr3t" not in str(caught.value)


def test_a_context_needs_no_user(config: Path) -> None:
    _config(config)
    document = json.loads(config.read_text())
    del document["contexts"][0]["context"]["user"]
    config.write_text(json.dumps(document))
    found = _load(config)
    assert (found.server, found.authorization) == (SERVER, None)


def test_the_first_entry_of_a_name_counts_in_several_kubeconfigs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    _config(one, {"token": "one"})
    document = json.loads(one.read_text())
    del document["current-context"], document["clusters"]
    one.write_text(json.dumps(document))
    _config(two, {"token": "two"})
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{one}:{two}")
    found = _load("")
    assert (found.server, found.authorization) == (SERVER, "Bearer one")
    assert {path for path, _ in found.files} == {str(one), str(two)}


def test_without_a_configuration_the_places_that_were_searched_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(
        ConnectionConfigError, match=r"^no --kubeconfig given: not in a cluster .*none does not exist"
    ):
        _load("")


def test_a_pod_logs_in_with_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "token").write_text("t")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT", tmp_path)
    found = _load("")
    assert (found.server, found.authorization) == ("https://[fd00::1]:443", "Bearer t")
    (tmp_path / "token").write_text("another")
    assert found.files_changed()


def test_a_default_kubeconfig_that_may_be_of_another_api_server_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _config(tmp_path / "default", {"token": "t"})
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "default"))
    assert _load("").authorization == "Bearer t"
    with pytest.raises(ConnectionConfigError, match=r"^the Pod's service account: KUBERNETES_SERVICE_HOST"):
        load("", "", now=0.0, has_default=False)


_ANSWER = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": "t", "expirationTimestamp": "2026-01-31T13:00:00Z"},
}


def _plugin(code: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": _ANSWER["apiVersion"], "command": sys.executable, "args": ["-c", code], **fields}


def test_an_exec_plugin_gets_its_request_and_returns_a_token() -> None:
    code = f"import os, json; a = {_ANSWER!r}; a['status']['token'] = os.environ['A'] + json.loads(os.environ['KUBERNETES_EXEC_INFO'])['kind']; print(json.dumps(a))"
    found = exec_plugin.run(_plugin(code, env=[{"name": "A", "value": "b"}]))
    assert found.token == "bExecCredential"
    assert found.expires_at == dt.datetime(2026, 1, 31, 13, tzinfo=dt.UTC).timestamp()


def test_an_exec_plugin_may_return_a_certificate(config: Path, tmp_path: Path) -> None:
    user = Authority(tmp_path).issue("u")
    status = {"clientCertificateData": user.certificate.read_text(), "clientKeyData": user.key.read_text()}
    _config(config, {"exec": _plugin(f"import json; print(json.dumps({ {**_ANSWER, 'status': status}!r}))")})
    found = _load(config)
    assert found.authorization is None
    assert (found.valid_from, found.expires_at) == validity_of_certificate(user.certificate.read_bytes())


def test_an_exec_plugin_with_a_slash_is_relative_to_the_kubeconfig(config: Path) -> None:
    plugin = config.parent / "bin"
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(_ANSWER)}'\n")
    plugin.chmod(0o700)
    _config(config, {"exec": {"apiVersion": _ANSWER["apiVersion"], "command": "./bin"}})
    assert _load(config).authorization == "Bearer t"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('x')", "its output cannot be used: "),
        ("print('[]')", "its output cannot be used: unexpected shape"),
        ("print('{\"kind\": \"Other\", \"apiVersion\": \"v1\", \"status\": {}}')", "expected an ExecCredential of"),
        (f"import json; print(json.dumps({ {**_ANSWER, 'status': {} }!r}))", "returned neither token nor"),
        (f"import json; print(json.dumps({ {**_ANSWER, 'status': {'token': 5} }!r}))", "expected strings"),
        ("import sys; sys.exit('no\\n session')", "ended with status 1: no session"),
    ],
)  # fmt: skip
def test_an_exec_plugin_without_credentials_is_named(code: str, problem: str) -> None:
    with pytest.raises(ExecPluginError, match=f"^exec plugin {sys.executable}: ") as caught:
        exec_plugin.run(_plugin(code))
    assert problem in str(caught.value)


def test_an_exec_plugin_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {noted}; wait"
    plugin = {"apiVersion": _ANSWER["apiVersion"], "command": "sh", "args": ["-c", script]}
    with pytest.raises(ExecPluginError, match=r"exec plugin sh: took longer than 0.5s"):
        exec_plugin.run(plugin, timeout=0.5)
    deadline = time.monotonic() + 60
    while _runs(int(noted.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
