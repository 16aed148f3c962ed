"""The oracle as a process: built once per machine from tools/controlplane/tools/oracle, with one request per scenario."""

from __future__ import annotations

import hashlib
import platform
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

import orjson

from tools.controlplane import golang
from tools.controlplane.binaries import BUILD_FLAGS, TOOLS, BuildError, cache_folder

UpstreamResult = dict[str, Any]
"""Result of upstream for one binding; the Go program describes the fields."""


class OracleSilentError(Exception):
    """The oracle did not respond in time and was ended."""


def ensure() -> Path:
    """Return the program, building it first if this machine does not have it yet.

    Raises:
        BuildError: With the end of Go's output.
    """
    sources = [TOOLS / "go.mod", TOOLS / "go.sum", *sorted((TOOLS / "oracle").glob("*.go"))]
    ingredients = hashlib.sha256()
    for source in sources:
        ingredients.update(source.read_bytes())
    ingredients.update("\0".join((*BUILD_FLAGS, platform.system(), platform.machine())).encode())
    folder = cache_folder() / f"oracle-{ingredients.hexdigest()[:16]}"
    if not folder.is_dir():
        _build(folder)
    return folder / "oracle"


def _build(folder: Path) -> None:
    def say(line: str) -> None:
        print(f"  {line}", file=sys.stderr, flush=True)

    say(f"Building the oracle into {folder}: seconds after `make binaries`, minutes before it.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        go = golang.find(wanted=golang.wanted_version(TOOLS / "go.mod"), cache=folder.parent, say=say)
    except golang.GoError as error:
        raise BuildError(str(error)) from error
    unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        command = [str(go.executable), "build", *BUILD_FLAGS, "-o", str(unfinished / "oracle"), "./oracle"]
        answer = subprocess.run(
            command, cwd=TOOLS, env=go.environment(), capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            raise BuildError(
                f"`{' '.join(command)}` in {TOOLS} ended with status {answer.returncode}:\n"
                f"{answer.stderr[-3000:]}"
            )
        if not folder.is_dir():  # another process may have built it meanwhile
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


class Oracle:
    """A running oracle; use it as a context manager."""

    def __init__(self, program: Path, *, patience_seconds: float = 60.0) -> None:
        self._program = program
        self._patience_seconds = patience_seconds
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1 << 20
        )

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

    def receive(self) -> list[UpstreamResult]:
        """Read the results for the bindings of the scenario that was sent last.

        Raises:
            OracleSilentError: It takes too long. A new process handles the next scenario.
            ValueError: The scenario cannot be read.
        """
        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], self._patience_seconds)
        if not ready:
            self.restart()
            raise OracleSilentError
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the oracle ended with status {self._process.wait()}")
        document = orjson.loads(line)
        if "error" in document:
            raise ValueError(document["error"])
        results: list[UpstreamResult] = document.get("bindings", [])
        return results

    def decide(self, scenario: dict[str, Any]) -> list[UpstreamResult]:
        """Send one scenario and read the results."""
        self.send(scenario)
        return self.receive()
