"""What Python 3.13 changed in TLS, for tests on the versions before."""

from __future__ import annotations

import ssl
from typing import Any

import pytest


def as_of_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ``ssl.create_default_context`` be as strict as it is from 3.13 on."""
    original = ssl.create_default_context

    def create(*args: Any, **kwargs: Any) -> ssl.SSLContext:
        context = original(*args, **kwargs)
        context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    monkeypatch.setattr(ssl, "create_default_context", create)
