"""Helm, actionlint, and the generator of Prometheus Operator's CRDs: built once per machine from the pins in tools/.

Go modules of their own, so that changing it does not rebuild the control plane. As there, what was
built lies outside the work tree, in a folder named by everything that decides what is in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.controlplane import binaries, golang

TOOLS: Final = Path(__file__).parent / "tools"
PACKAGES: Final = {
    "helm-3": "helm.sh/helm/v3/cmd/helm",
    "helm-4": "helm.sh/helm/v4/cmd/helm",
    "controller-gen": "sigs.k8s.io/controller-tools/cmd/controller-gen",
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint",
}
MONITORING: Final = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
HELM_VERSIONS: Final = {3: "v3.22.0", 4: "v4.3.2"}
KUBERNETES: Final = ("1", "35")
"""What `helm template` of Helm 3 takes for the cluster's version; Helm's own build sets it, too. Helm 4 has that of its client-go."""
LDFLAGS: Final = "-ldflags=-s -w " + " ".join(
    f"-X helm.sh/helm/{variable}={value}"
    for variable, value in (
        ("v3/internal/version.version", HELM_VERSIONS[3]),
        ("v4/internal/version.version", HELM_VERSIONS[4]),
        ("v3/pkg/chartutil.k8sVersionMajor", KUBERNETES[0]),
        ("v3/pkg/chartutil.k8sVersionMinor", KUBERNETES[1]),
        ("v3/pkg/lint/rules.k8sVersionMajor", KUBERNETES[0]),
        ("v3/pkg/lint/rules.k8sVersionMinor", KUBERNETES[1]),
    )
)


class BuildError(RuntimeError):
    """A program could not be built; the message has the remedy."""


def helm(major: int = 3) -> Path:
    """Return Helm 3 or 4, building it first if this machine does not have it yet (a minute or two)."""
    return _ensure(f"helm-{major}")


def actionlint() -> Path:
    """Return actionlint, building it first if this machine does not have it yet (ten seconds)."""
    return _ensure("actionlint", TOOLS / "actionlint")


def monitoring_crds() -> Path:
    """Return a folder with the CRDs of Prometheus Operator, generated from its Go types."""
    folder = _folder() / "crds"
    if not folder.is_dir():
        generator = _ensure("controller-gen")
        with _lock():
            if not folder.is_dir():
                unfinished = folder.with_name("crds.unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                arguments = ["crd", f"paths={MONITORING}", f"output:crd:dir={unfinished}"]
                go = _go()
                environment = go.environment()
                # The generator calls `go` to find the sources of the types.
                environment["PATH"] = f"{go.executable.parent}:{environment['PATH']}"
                _run([str(generator), *arguments], TOOLS, environment)
                unfinished.rename(folder)
    return folder


def _ensure(name: str, module: Path = TOOLS) -> Path:
    program = _folder(module) / name
    if not program.is_file():
        with _lock():
            if not program.is_file():  # another checkout may have built it meanwhile
                print(
                    f"Building {name}, once for this machine (a minute or two) ...",
                    file=sys.stderr,
                    flush=True,
                )
                unfinished = program.with_name(f"{name}.unfinished")
                go = _go()
                command = [
                    str(go.executable),
                    "build",
                    "-trimpath",
                    LDFLAGS,
                    "-o",
                    str(unfinished),
                    PACKAGES[name],
                ]
                _run(command, module, go.environment())
                unfinished.rename(program)
    return program


def _go() -> golang.Go:
    try:
        return golang.find(
            wanted=golang.wanted_version(TOOLS / "go.mod"),
            cache=binaries.cache_folder(),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except golang.GoError as error:
        raise BuildError(str(error)) from error


def _run(command: list[str], module: Path, environment: dict[str, str]) -> None:
    answer = subprocess.run(command, cwd=module, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        end = "\n".join(f"    {line}" for line in (answer.stdout + answer.stderr).splitlines()[-20:])
        raise BuildError(
            f"`{' '.join(command)}` in {module} ended with status {answer.returncode}:\n\n{end}\n\n"
            "Modules come from GOPROXY (`go env GOPROXY`); check that it can be reached from here, and run it again."
        )


def _folder(module: Path = TOOLS) -> Path:
    ingredients = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        ingredients.update((module / name).read_bytes())
    ingredients.update(f"{LDFLAGS} {platform.system()} {platform.machine()}".encode())
    folder = binaries.cache_folder().with_name("deploy") / ingredients.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class _lock:  # noqa: N801 (a context manager, used as a function)
    """One build at a time, across checkouts."""

    def __enter__(self) -> None:
        self._file = (_folder() / "lock").open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()
