"""An OpenID Connect issuer on this machine: what an API server asks of one, and tokens of it."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tools.controlplane.pki import Authority

AUTHENTICATION = "authentication.yaml"
"""The file of the issuers that the control plane of the tests trusts, next to its folder."""
PREFIX = "oidc:"
"""Before the names of its users and groups."""


def write_authentication(path: Path, *issuers: dict[str, Any]) -> None:
    """Write the file of ``--authentication-config``, which the API server reads again when it changes."""
    config = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    path.write_text(yaml.safe_dump({**config, "jwt": list(issuers)}))


class IdentityProvider:
    """An issuer with TLS; ``with`` runs it."""

    def __init__(self, authority: Authority) -> None:
        """Get a certificate, and make a key for tokens."""
        self._authority = authority
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "kid": "1",
            "alg": "RS256",
            "use": "sig",
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }
        documents: dict[str, Any] = {"/jwks": {"keys": [key]}}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = documents.get(self.path)
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, *_: object) -> None:
                pass

        issued = authority.issue("identity-provider", server=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issued.certificate, issued.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        documents["/.well-known/openid-configuration"] = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def trusted_for(self, client: str) -> dict[str, Any]:
        """Return the entry of an API server that accepts the tokens of a client."""
        return {
            "issuer": {
                "url": self.url,
                "certificateAuthority": self._authority.certificate.read_text(),
                "audiences": [client],
            },
            "claimMappings": {
                "username": {"claim": "sub", "prefix": PREFIX},
                "groups": {"claim": "groups", "prefix": PREFIX},
            },
        }

    def token(self, user: str, *, client: str, groups: Sequence[str] = (), seconds: float = 600) -> str:
        """Return an id token of a user, for a time."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": user,
            "aud": client,
            "groups": [*groups],
            "iat": now,
            "exp": int(now + seconds),
        }
        signed = ".".join(
            _encoded(json.dumps(each).encode()) for each in ({"alg": "RS256", "kid": "1"}, claims)
        )
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))
