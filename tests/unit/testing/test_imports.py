"""Tests of plugins start quickly: ``karmada_scheduler.testing`` loads no client of an API server."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LOADED = (
    "import sys, karmada_scheduler.testing; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
)


@pytest.mark.parametrize("library", ["aiohttp", "kopf", "kubernetes"])
def test_the_testing_package_is_imported_without_libraries_for_requests(library: str) -> None:
    answer = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert library not in answer.stdout.split()
