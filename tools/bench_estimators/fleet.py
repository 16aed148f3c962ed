"""Many estimators in one process: built once per machine from tools/; a pipe sets which of them hang."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.controlplane import golang
from tools.controlplane.binaries import BuildError, cache_folder

TOOLS = Path(__file__).parent / "tools"
_FLAGS = ("-trimpath", "-ldflags=-s -w")


def ensure() -> Path:
    """Return the program, building it first if this machine does not have it yet (a minute, with downloads).

    Raises:
        BuildError: With the end of Go's output.
    """
    ingredients = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        ingredients.update((TOOLS / name).read_bytes())
    ingredients.update("\0".join((*_FLAGS, platform.system(), platform.machine())).encode())
    program = cache_folder() / f"estimator-fleet-{ingredients.hexdigest()[:16]}" / "fleet"
    if not program.is_file():
        _build(program)
    return program


def _build(program: Path) -> None:
    def say(line: str) -> None:
        print(f"  {line}", file=sys.stderr, flush=True)

    program.parent.parent.mkdir(parents=True, exist_ok=True)
    try:
        go = golang.find(wanted=golang.wanted_version(TOOLS / "go.mod"), cache=program.parent.parent, say=say)
    except golang.GoError as error:
        raise BuildError(str(error)) from error
    with tempfile.TemporaryDirectory(dir=program.parent.parent) as unfinished:
        made = Path(unfinished) / "fleet"
        answer = subprocess.run(
            [str(go.executable), "build", *_FLAGS, "-o", str(made), "."],
            cwd=TOOLS,
            env=go.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise BuildError(
                f"`go build` in {TOOLS} ended with status {answer.returncode}:\n{answer.stderr[-3000:]}"
            )
        program.parent.mkdir(exist_ok=True)
        shutil.move(made, program)


class Fleet:
    """Estimators that answer every request with the same number, at once; use it as a context manager.

    Attributes:
        ports: Where they listen on 127.0.0.1, without TLS.
    """

    def __init__(self, count: int, *, answer: int) -> None:
        self._process = subprocess.Popen(
            [ensure(), str(count), str(answer)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ports = [int(self._line()) for _ in range(count)]

    def hang(self, number: int) -> None:
        """Make an estimator hang from now on; it still accepts connections and requests."""
        self._send(f"hang {number}")

    def answer(self, number: int) -> None:
        """Have it answer again."""
        self._send(f"answer {number}")

    def calls(self) -> int:
        """Return how many calls there were in all."""
        self._send("calls")
        return int(self._line())

    def _send(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
