"""A clean Debian with Python, as the stand-in for the base image, and our image built on it.

``python:3.11-slim-bookworm`` comes from a registry of images, which a machine without a container engine
does not reach. mmdebstrap makes a Debian 12 with Debian's own Python 3.11 from packages instead: the same
distribution, the same libc, the same version of Python, as small. It is kept, by the list of its packages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.controlplane import binaries

from .dockerfile import Builder, Image

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = (
    "python3",
    "python3-venv",
    "python3-pip",
    "python-is-python3",
    "ca-certificates",
    "netbase",
    "tzdata",
)
SUITE: Final = "bookworm"
BASE: Final = "python:3.11-slim-bookworm"
OURS: Final = "karmada-pyscheduler:0.1.0"
ENTRYPOINT: Final = "/opt/karmada-pyscheduler/bin/karmada-pyscheduler"


class CannotBuildError(RuntimeError):
    """This machine cannot make a root file system; the text says why."""


def base() -> Image:
    """Return the clean root file system, making it first if this machine does not have it yet.

    Raises:
        CannotBuildError: Not root, or not a Debian that mmdebstrap could be had from.
    """
    if os.geteuid() != 0:
        raise CannotBuildError("only root may chroot")
    if shutil.which("unshare") is None or shutil.which("apt-get") is None:
        raise CannotBuildError("unshare and apt-get are needed: Debian or a distribution made of it")
    key = hashlib.sha256(" ".join((SUITE, *PACKAGES)).encode()).hexdigest()[:12]
    root = _cache() / f"rootfs-{SUITE}-{key}"
    if not root.is_dir():
        unfinished = root.with_name(root.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        started = time.monotonic()
        _call(
            [
                *_mmdebstrap(),
                "--quiet",
                "--variant=minbase",
                f"--include={','.join(PACKAGES)}",
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                "--dpkgopt=path-exclude=/usr/share/locale/*",
                SUITE,
                str(unfinished),
            ]
        )
        unfinished.rename(root)
        print(f"Made {root} in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return Image(root)


def image(folder: Path, *, quiet: bool = True) -> Image:
    """Carry out the Dockerfile into a folder that does not exist yet, and return the image."""
    say = (lambda _: None) if quiet else print
    return Builder(ROOT, folder, find=_find, say=say).build(ROOT / "Dockerfile")


def _find(reference: str) -> Image:
    if reference != BASE:
        raise CannotBuildError(f"there is no stand-in for the image {reference} here, only for {BASE}")
    return base()


def size(root: Path) -> int:
    """Return how many bytes the files of a tree take."""
    answer = _call(["du", "--summarize", "--block-size=1", "--one-file-system", str(root)])
    return int(answer.split()[0])


def _mmdebstrap() -> list[str]:
    """Return the command; where it is not installed it is fetched and unpacked, not installed."""
    if found := shutil.which("mmdebstrap"):
        return [found]
    folder = _cache() / "mmdebstrap"
    script = folder / "usr" / "bin" / "mmdebstrap"
    if not script.is_file():
        state = folder / "apt"
        for name in ("lists/partial", "archives/partial"):
            (state / name).mkdir(parents=True, exist_ok=True)
        options = [f"-oDir::State::lists={state}/lists", f"-oDir::Cache::archives={state}/archives"]
        _call(["apt-get", "-qq", *options, "update"])
        _call(["apt-get", "-qq", *options, "download", "mmdebstrap"], cwd=state)
        [package] = state.glob("mmdebstrap_*.deb")
        _call(["dpkg-deb", "--extract", str(package), str(folder)])
        shutil.rmtree(state)
    # It calls its own helper, mmtarfilter, by name.
    return ["env", f"PATH={script.parent}:{os.environ['PATH']}", "perl", str(script)]


def _cache() -> Path:
    folder = binaries.cache_folder().with_name("deploy")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _call(command: list[str], cwd: Path | None = None) -> str:
    answer = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise CannotBuildError(
            f"`{' '.join(command)}` ended with status {answer.returncode}:\n{answer.stderr[-2000:]}"
        )
    return answer.stdout
