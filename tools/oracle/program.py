"""The oracle as a process: built once per machine from tools/controlplane/tools/oracle, with one request per scenario."""

from __future__ import annotations

import select
import subprocess
from pathlib import Path
from typing import Any, Self

import orjson

from tools.controlplane import programs
from tools.controlplane.binaries import TOOLS
from tools.controlplane.versions import CURRENT, KarmadaVersion

UpstreamResult = dict[str, Any]
"""Result of upstream for one binding; the Go program describes the fields."""


class OracleEndedError(RuntimeError):
    """The oracle ended, or did not respond in time and was ended."""


def ensure(version: KarmadaVersion = CURRENT) -> Path:
    """Return the program with a version of Karmada, building it first if this machine does not have it yet.

    Raises:
        BuildError: With the end of Go's output.
    """
    pins = [version.go_mod, version.go_mod.with_name("go.sum")]
    sources = [*pins, *sorted((TOOLS / "oracle").glob("*.go"))]
    return programs.ensure("oracle", TOOLS, sources, package="./oracle", version=version)


class Oracle:
    """A running oracle; use it as a context manager."""

    def __init__(self, program: Path, *arguments: str, patience_seconds: float = 60.0) -> None:
        self._command = [str(program), *arguments]
        self._patience_seconds = patience_seconds
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def restart(self) -> None:
        """Replace the process by a new one without pending results."""
        self.close()
        self._process = self._start()

    def send(self, scenario: dict[str, Any]) -> None:
        """Send one scenario; its result must be read before the next is sent."""
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(scenario) + b"\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Read the response to what was sent last.

        Raises:
            OracleEndedError: It ended, or takes too long. A new process handles the next scenario.
            ValueError: What was sent cannot be read.
        """
        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], self._patience_seconds)
        line = stdout.readline() if ready else b""
        if not line:
            how = f"ended with status {self._process.wait()}" if ready else "did not respond in time"
            self.restart()
            raise OracleEndedError(f"the oracle {how}")
        document: dict[str, Any] = orjson.loads(line)
        if "error" in document:
            raise ValueError(document["error"])
        return document

    def decide(self, scenario: dict[str, Any]) -> list[UpstreamResult]:
        """Send one scenario and read the results."""
        self.send(scenario)
        results: list[UpstreamResult] = self.receive().get("bindings", [])
        return results
