"""Kubeconfigs that cannot be used: one kind of error, which names the file and the field, and no secret."""

from __future__ import annotations

import base64
import errno
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from kubernetes.aio.config import kube_config

from karmada_pyscheduler.client import exec_plugin
from karmada_pyscheduler.client.exec_plugin import ExecPluginError
from karmada_pyscheduler.client.identity import ConnectionConfigError, expiry_of_token, shown_time
from karmada_pyscheduler.client.kubeconfig import load
from tests.fuzz.measuring import fuzzed, measured
from tests.fuzz.strategies import Changed, damaged, mutated

SECRET = "s3cr3t"
_PEM = base64.b64encode(f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n".encode()).decode()


def _document(user: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "c",
        "clusters": [
            {"name": "other", "cluster": {"server": "https://other.example"}},
            {"name": "k", "cluster": {"server": "https://karmada.example:5443", **cluster}},
        ],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "default"}}],
        "users": [{"name": "u", "user": user}],
    }


_EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "get-token",
    "args": ["--password", SECRET],
    "env": [{"name": "PASSWORD", "value": SECRET}],
    "interactiveMode": "Never",
}
DOCUMENTS = (
    _document({"token": SECRET}, **{"insecure-skip-tls-verify": True, "tls-server-name": "karmada"}),
    _document({"username": "admin", "password": SECRET}, **{"proxy-url": "http://proxy.example:3128"}),
    _document({"client-certificate-data": _PEM, "client-key-data": _PEM}),
    _document({"client-certificate": "tls.crt", "client-key": "tls.key", "tokenFile": "token"}),
    _document({"exec": _EXEC}, **{"certificate-authority-data": _PEM}),
    _document({"auth-provider": {"name": "oidc", "config": {"id-token": SECRET, "client-secret": SECRET}}}),
    _document({"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}}),
)

values = st.one_of(
    st.sampled_from(
        [None, True, 0, -1, 10**400, 1.5, float("nan"), "", " ", "a", "\x00", "é", "/", "http://", "https://[::1",
         "https://a:99999", "c", "k", "u", [], {}, [None], {"a": "b"}, [["a"]], {"name": None}, b"bytes"]
    ),
    st.text(max_size=10),
    st.integers(),
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _without_programs_and_requests() -> Iterator[None]:
    """Let no kubeconfig run a program or send a request."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exec_plugin.subprocess, "Popen", refuse)  # type: ignore[attr-defined]
        patch.setattr(kube_config, "google_auth_credentials", refuse)
        patch.setattr(kube_config, "OpenIDRequestor", refuse)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kubeconfigs")
    (made / "token").write_text(SECRET)
    return made


def _check(file: Path, given: object) -> str:
    """Read a file and return the error, "" without one."""
    with measured("kubeconfig", given):
        try:
            load(str(file), "", now=0.0)
        except ConnectionConfigError as error:
            text = str(error)
        else:
            text = ""
    assert SECRET not in text
    assert base64.b64encode(SECRET.encode()).decode()[:6] not in text
    return text


_FIELD = re.compile(
    r"current-context|clusters|contexts|users|exec|auth-provider|client-certificate|client-key|certificate-authority|"
    r"the token of|is no YAML: |cannot read /|is empty|is not an object"
)
_PYTHON = re.compile(
    r"has no attribute|not subscriptable|NoneType|is not iterable|unexpected keyword|cannot be used \("
)
"""Texts of exceptions that say nothing to a user."""


@fuzzed(160)
@given(document=st.sampled_from(DOCUMENTS).flatmap(lambda each: mutated(each, values=values)))
def test_an_invalid_structure_is_an_error_that_names_the_file_and_the_field(
    folder: Path, document: Changed
) -> None:
    file = folder / "config"
    content = yaml.safe_dump(document.document)
    assume(len(content) <= 100_000)
    file.write_text(content)
    text = _check(file, document)
    if text:
        assert text.startswith(f"kubeconfig {file}: ")
        problem = text.removeprefix(f"kubeconfig {file}: ")
        assert _FIELD.search(problem), problem
        assert not _PYTHON.search(problem), problem


@fuzzed(120)
@given(content=damaged(st.sampled_from([yaml.safe_dump(each).encode() for each in DOCUMENTS])))
def test_damaged_bytes_are_an_error_that_names_the_file(folder: Path, content: bytes) -> None:
    file = folder / "config"
    file.write_bytes(content)
    text = _check(file, content)
    if text:
        assert text.startswith(f"kubeconfig {file}: ")
        assert not _PYTHON.search(text), text


_CREDENTIAL = {
    "kind": "ExecCredential",
    "apiVersion": "client.authentication.k8s.io/v1",
    "status": {
        "expirationTimestamp": "2026-01-01T00:00:00Z",
        "token": SECRET,
        "clientCertificateData": _PEM,
        "clientKeyData": _PEM,
    },
}


def _written(document: dict[str, Any]) -> st.SearchStrategy[bytes]:
    return damaged(
        mutated(document).map(lambda each: each.json.encode()).filter(lambda each: len(each) < 1 << 20)
    )


@fuzzed(120)
@given(output=_written(_CREDENTIAL))
def test_the_output_of_an_exec_plugin_is_an_error_that_names_the_plugin(output: bytes) -> None:
    with measured("exec plugin", output):
        try:
            exec_plugin._credential("get-token", "client.authentication.k8s.io/v1", output)
        except ExecPluginError as error:
            text = str(error)
        else:
            return
    assert text.startswith("exec plugin get-token: ")
    assert SECRET not in text


def _token(claims: bytes) -> str:
    return f"e30.{base64.urlsafe_b64encode(claims).decode()}.x"


@fuzzed(120)
@given(claims=_written({"exp": 1, "sub": "a"}))
def test_the_expiry_of_any_token_can_be_shown(claims: bytes) -> None:
    with measured("token", claims):
        expires_at = expiry_of_token(_token(claims))
        assert expires_at is None or shown_time(expires_at)
