"""buildah, the container engine that needs no service, and a base image for it.

Both come from Debian's packages. No registry of images is used: in place of ``python:3.11-slim-bookworm`` mmdebstrap
makes a Debian 12 with Debian's own Python 3.11, the same distribution, libc and version of Python. It is kept outside
the work tree, in a file named by what decides what is in it. ``BUILDAH_ISOLATION=chroot`` needs no runtime and no cgroups.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.controlplane import binaries

from .chart import ROOT

BASE: Final = "docker.io/library/python:3.11-slim-bookworm"
_PROGRAMS: Final = ("buildah", "mmdebstrap")
_MAKE_BASE: Final = (
    "mmdebstrap",
    "--quiet",
    "--variant=minbase",
    "--include=python3,python3-venv,python3-pip,python-is-python3,ca-certificates,netbase,tzdata",
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")),
    "bookworm",
)
_AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


class BuildahError(RuntimeError):
    """A command failed; the text is the end of its output."""


def why_not() -> str:
    """Return why no image can be built on this machine, or nothing if one can."""
    if os.geteuid() != 0:
        return "only root can build an image in a chroot, and this is another user"
    if platform.system() != "Linux" or platform.freedesktop_os_release().get("ID") != "debian":
        return "buildah and its base image are made of Debian's packages, and this is no Debian"
    return ""


def ensure() -> Path:
    """Return the base image as a tar file. Programs are installed and the file is made if they are not there yet."""
    wanted = [name for name in _PROGRAMS if shutil.which(name) is None]
    if wanted:
        call("apt-get", "--quiet", "update")
        call(
            "apt-get",
            "--quiet",
            "--yes",
            "-oDPkg::Lock::Timeout=120",
            "install",
            "--no-install-recommends",
            *wanted,
        )
    key = hashlib.sha256(" ".join(_MAKE_BASE).encode()).hexdigest()[:12]
    archive = binaries.cache_folder().with_name("deploy") / f"base-{key}.tar"
    if not archive.is_file():
        archive.parent.mkdir(parents=True, exist_ok=True)
        unfinished = archive.with_name(f"unfinished-{os.getpid()}-{archive.name}")
        call(*_MAKE_BASE, str(unfinished))
        unfinished.rename(archive)
    return archive


@dataclass(frozen=True, slots=True)
class Buildah:
    """buildah with a storage of its own.

    Attributes:
        command: The program and where its storage is.
        build_options: What a build needs to reach the package index as this machine does.
    """

    command: tuple[str, ...]
    build_options: tuple[str, ...]

    @classmethod
    @contextmanager
    def with_base(cls, folder: Path) -> Iterator[Buildah]:
        """Yield one that has ``BASE``. Its storage, in the folder, is removed afterwards."""
        options = ["--pull-never", "--network=host"]
        if _AUTHORITIES.exists():
            settings = folder / "pip.conf"
            settings.write_text(f"[global]\ncert = {_AUTHORITIES}\n")
            options += [f"--volume={settings}:/etc/pip.conf:ro", f"--volume={_AUTHORITIES}:{_AUTHORITIES}:ro"]
        storage = (f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}")
        buildah = cls(("buildah", *storage), tuple(options))
        try:
            container = buildah.call("from", "scratch").strip()
            buildah.call("add", "--quiet", container, str(ensure()), "/")
            buildah.call("config", "--env=PATH=/usr/local/bin:/usr/bin:/bin", container)
            buildah.call("commit", "--quiet", "--rm", container, BASE)
            yield buildah
        finally:
            buildah.call("rm", "--all")
            buildah.call("rmi", "--all", "--force")
            shutil.rmtree(folder)

    def call(self, *arguments: str) -> str:
        """Run buildah and return what it prints."""
        return call(*self.command, *arguments)

    @contextmanager
    def container(self, image: str) -> Iterator[str]:
        """Yield the name of a container of an image."""
        name = self.call("from", "--pull-never", image).strip()
        try:
            yield name
        finally:
            self.call("rm", name)

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """Yield the root file system of a container of an image."""
        with self.container(image) as name:
            yield Path(self.call("mount", name).strip())

    def run(self, image: str, *command: str) -> str:
        """Run a command in a container of an image, as the image's user."""
        with self.container(image) as name:
            return self.call("run", name, "--", *command)

    def config(self, image: str) -> dict[str, Any]:
        """Return the image's configuration as the Open Container Initiative defines it."""
        config: dict[str, Any] = json.loads(self.call("inspect", "--type=image", image))["OCIv1"]["config"]
        return config


def call(*command: str) -> str:
    """Run a command at the top of the repository and return its standard output."""
    answer = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "BUILDAH_ISOLATION": "chroot", "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        printed = f"{answer.stdout[-3000:]}\n{answer.stderr[-3000:]}"
        raise BuildahError(f"`{' '.join(command)}` ended with status {answer.returncode}:\n{printed}")
    return answer.stdout
