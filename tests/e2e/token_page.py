"""A page for holders of tokens over a real control plane: its API server says who they are and what they may read."""

from __future__ import annotations

import base64
import itertools
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.e2e.browser import Visitor
from tools.controlplane import Client, ControlPlane
from tools.controlplane.ours import start_web
from tools.controlplane.pki import Authority
from tools.controlplane.processes import free_port

ROOT: Final = Path(__file__).parents[2]
AUDIENCE: Final = "karmada-pyscheduler-web"
CACHE_SECONDS: Final = 5
RBAC: Final = "rbac.authorization.k8s.io"
OF_API_SERVER: Final = "https://kubernetes.default.svc.cluster.local"
SYSTEM: Final = "karmada-system"
SHOP: Final = "token-shop"
BAKERY: Final = "token-bakery"
READ_BINDINGS: Final = {
    "apiGroups": ["work.karmada.io"],
    "resources": ["resourcebindings"],
    "verbs": ["get", "list", "watch"],
}
"""Of Karmada's ClusterRole karmada-view, which people get with the right ``view`` in a namespace."""
IS_DEVELOPER: Final = {
    "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "bindings"},
    "subjects": [
        {"kind": "ServiceAccount", "name": name, "namespace": SHOP} for name in ("developer", "sre")
    ],
}
LIST_CLUSTERS: Final = {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters"], "verbs": ["list"]}
"""What an ``sre`` may besides."""


@dataclass(frozen=True)
class Page:
    """A page with TLS, and the control plane that it shows."""

    plane: ControlPlane
    url: str
    authority: Authority
    log: Path
    certificate: Path
    key: Path
    session_keys: Path
    probes: str
    metrics: str
    audit: Path

    def get(self, token: str = "", path: str = "v1/bindings", **headers: str) -> tuple[int, str]:
        """Return status and body of a request."""
        return asked(self.url + path, token, self.authority, headers=headers)

    def token(self, account: str, *, audience: str = AUDIENCE) -> str:
        """Return a token of an account, as ``kubectl create token`` does."""
        return token_of(self.plane.client, account, *filter(None, [audience]), namespace=SHOP)

    def wait(self, token: str, status: int, about: str) -> None:
        """Wait until a token gets a status, for as long as an answer is kept and two seconds more."""
        self.plane.wait_for(
            lambda: self.get(token)[0], about, until=lambda it: it == status, timeout=CACHE_SECONDS + 2
        )


def asked(
    url: str,
    token: str = "",
    authority: Authority | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    form: bytes | None = None,
) -> tuple[int, str]:
    """Return status and body of a request, with a form as a POST."""
    sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, data=form, headers=sent)
    context = ssl.create_default_context(cafile=str(authority.certificate)) if authority else None
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def token_of(client: Client, account: str, *audiences: str, namespace: str = SYSTEM) -> str:
    """Return a token of an account, as ``kubectl create token`` does; without audiences, as a kubelet gets it."""
    spec = {"audiences": list(audiences)} if audiences else {}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    token: str = client.request("POST", path, body=body).json()["status"]["token"]
    return token


@contextmanager
def served(controlplane: ControlPlane, folders: pytest.TempPathFactory) -> Iterator[Page]:
    """Serve a page, with accounts that may read everything, the bindings of two namespaces, and nothing."""
    client = controlplane.client
    for namespace in (SHOP, BAKERY):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for account in ("operator", "developer", "sre", "stranger", "leaver"):
        metadata = {"name": account, "namespace": SHOP}
        client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    for manifest in yaml.safe_load_all((ROOT / "manifests" / "reader.yaml").read_text()):
        client.apply(manifest)
    for role, namespace in itertools.product(("Role", "RoleBinding"), (SHOP, BAKERY)):
        client.apply(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": role,
                "metadata": {"name": "bindings", "namespace": namespace},
                **({"rules": [READ_BINDINGS]} if role == "Role" else IS_DEVELOPER),
            }
        )
    listing = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "token-clusters"}}
    client.apply({**listing, "rules": [LIST_CLUSTERS]})
    bind(controlplane, "sre", role="token-clusters")
    bind(controlplane, "operator")
    bind(controlplane, "leaver")
    authority = Authority(folders.mktemp("web-pki"))
    issued = authority.issue("web", server=True)
    keys = folders.mktemp("session-keys") / "keys"
    keys.write_bytes(base64.urlsafe_b64encode(os.urandom(32)) + b"\n")
    audit = keys.with_name("audit")
    probes, metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
    process, url = start_web(
        controlplane,
        "--auth=token",
        f"--metrics-bind-address={metrics}",
        f"--session-keys-file={keys}",
        f"--audit-log={audit}",
        f"--auth-cache={CACHE_SECONDS}s",
        f"--tls-cert-file={issued.certificate}",
        f"--tls-key-file={issued.key}",
        authority=authority.certificate,
        name="web-tokens",
        probes=probes,
    )
    try:
        yield Page(
            controlplane,
            url,
            authority,
            process.log,
            issued.certificate,
            issued.key,
            keys,
            probes,
            metrics,
            audit,
        )
    finally:
        process.stop()


def signed_elsewhere(token: str, **claims: object) -> str:
    """Return a token with the claims of another one, and others, signed as another control plane signs it."""
    given = token.split(".")[1]
    found = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
    parts = ({"alg": "RS256", "kid": "of-the-host"}, {**found, **claims})
    signed = ".".join(_encoded(json.dumps(each).encode()) for each in parts)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return f"{signed}.{_encoded(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def of_platform(address: str, path: str) -> tuple[int, str]:
    """Return status and body of what is asked without a token, as kubelet and Prometheus do."""
    return asked(f"http://{address}/{path}")


def bind(plane: ControlPlane, account: str, *, role: str = "pyscheduler-reader") -> None:
    """Let an account do what a ClusterRole allows, by default read everything."""
    plane.client.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"token-{account}"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SHOP}],
        }
    )


def sign_in(visitor: Visitor, token: str) -> None:
    """Sign in on the page that asks for a token."""
    visitor.page.get_by_label("Token of the Karmada API server").fill(token)
    visitor.page.get_by_role("button", name="Sign in").click()
