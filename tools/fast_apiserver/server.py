"""Builds and runs the fast fake API server of ``apiserver/``, a Go program without dependencies."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import requests

from tools.controlplane import programs
from tools.controlplane.api import local_session

SOURCE: Final = Path(__file__).parent / "apiserver"


def build() -> Path:
    """Return the program, built once per version of its sources.

    Raises:
        BuildError: There is no Go, or it cannot compile the program.
    """
    return programs.ensure("fast-apiserver", SOURCE, sorted([*SOURCE.glob("*.go"), SOURCE / "go.mod"]))


class FastApiServer:
    """A running fast fake API server.

    Attributes:
        pid: Its process.
        url: Where it serves.
    """

    def __init__(self, pid: int, url: str) -> None:
        self.pid, self.url = pid, url
        self._http = local_session()

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Send a request, and return the JSON of the response.

        Raises:
            requests.HTTPError: It was refused.
        """
        response = self._http.request(method, self.url + path, timeout=600, **options)
        if not response.ok:
            raise requests.HTTPError(f"{method} {path}: {response.status_code} {response.text[:500]}")
        return response.json()

    def load(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Create objects of all kinds."""
        self.request("POST", "/admin/load", data=_lines(objects))

    def patch(self, patches: Iterable[tuple[str, Mapping[str, Any]]], *, rate: float = 0.0) -> None:
        """Apply merge patches by path, so many per second; 0 for as fast as possible."""
        lines = _lines({"path": path, "patch": patch} for path, patch in patches)
        self.request("POST", f"/admin/patch?rate={rate}", data=lines)

    def clear(self) -> None:
        """Delete everything, without events."""
        self.request("POST", "/admin/clear")

    def reset(self) -> None:
        """Count requests, writes and renewals of the Lease from now on."""
        self.request("POST", "/admin/reset")

    def times(self, *, bindings: bool = False) -> dict[str, Any]:
        """Return what it has measured: ``now``, ``longest``, ``requests``, and ``bindings`` if asked for.

        Times are in seconds since its start; ``longest`` has the longest time between two renewals of each Lease, or since
        the last one.
        """
        found: dict[str, Any] = self.request("GET", f"/admin/times{'?bindings=1' if bindings else ''}")
        return found

    def changed(self, prefix: str, *, least: int) -> int:
        """Return how many bindings whose namespace and name begin so have had so many changes of ``spec.clusters``."""
        found: int = self.request("GET", f"/admin/times?changed={prefix}&least={least}")["changed"]
        return found

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig, and return where it is."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bench", "cluster": {"server": self.url}}],
            "users": [{"name": "bench", "user": {"token": "none"}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "current-context": "bench",
        }
        path = folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path


def _lines(objects: Iterable[Mapping[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(each).encode() for each in objects)


@contextmanager
def running() -> Iterator[FastApiServer]:
    """Run the program until the end of the block."""
    # Without this its heap would be collected every few thousand objects.
    environment = {**os.environ, "GOGC": "400"}
    with subprocess.Popen([build()], stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            assert process.stdout is not None
            yield FastApiServer(process.pid, f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()
