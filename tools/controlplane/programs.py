"""Go programs of the tools, built once per machine and version of their sources."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.controlplane import golang
from tools.controlplane.binaries import BuildError, build_flags, cache_folder
from tools.controlplane.versions import CURRENT, KarmadaVersion


def ensure(
    name: str,
    module: Path,
    sources: Sequence[Path],
    *,
    package: str = ".",
    version: KarmadaVersion = CURRENT,
) -> Path:
    """Return a program, building it first if this machine does not have it yet.

    Args:
        name: Of the program.
        module: The folder with ``go.mod``.
        sources: All files that a change of which needs a new build.
        package: What to build, relative to the module.
        version: Of Karmada, if the program is built with it.

    Raises:
        BuildError: There is no Go, or with the end of its output.
    """
    ingredients = hashlib.sha256()
    for source in sources:
        ingredients.update(source.read_bytes())
    flags = [each for each in build_flags(version) if each not in version.modfile]
    ingredients.update("\0".join((*flags, platform.system(), platform.machine())).encode())
    folder = cache_folder() / f"{name}-{ingredients.hexdigest()[:16]}"
    if not folder.is_dir():
        _build(name, module, package, version, folder)
    return folder / name


def _build(name: str, module: Path, package: str, version: KarmadaVersion, folder: Path) -> None:
    def say(line: str) -> None:
        print(f"  {line}", file=sys.stderr, flush=True)

    say(f"Building {name} into {folder}: seconds after `make binaries`, minutes before it.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        go = golang.find(wanted=golang.wanted_version(module / "go.mod"), cache=folder.parent, say=say)
    except golang.GoError as error:
        raise BuildError(str(error)) from error
    unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        command = [str(go.executable), "build", *build_flags(version), "-o", str(unfinished / name), package]
        answer = subprocess.run(
            command, cwd=module, env=go.environment(), capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            raise BuildError(
                f"`{' '.join(command)}` in {module} ended with status {answer.returncode}:\n"
                f"{answer.stderr[-3000:]}"
            )
        if not folder.is_dir():  # another process may have built it meanwhile
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
