"""A release: its version in every place, and the files to publish, built twice with equal bytes."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from . import manifests
from .chart import CHART, ROOT, helm

VERSIONED: Final = {
    "plugins/karmada_scheduler/__init__.py": r'^__version__ = "([^"]+)"$',
    "operator/pyproject.toml": r'^(?:version = "|.*-(?:library|operator)==)([0-9.]+)',
    "advisor/pyproject.toml": r'^(?:version = "|.*-(?:library|operator)==)([0-9.]+)',
    "charts/karmada-pyscheduler/Chart.yaml": r'^(?:version|appVersion): "?([0-9.]+)',
    "Dockerfile": r"^ARG VERSION=(\S+)$",
    "docs/operations.md": r"karmada-pyscheduler:([0-9.]*[0-9])",
}
"""Files that contain the version, with a pattern for each place. manifests/ is rendered from the chart."""
ARCHITECTURES: Final = ("x86_64", "aarch64")
_CHANGES: Final = "CHANGELOG.md"
_COMMANDS: Final = (
    ("karmada-pyscheduler", "version"),
    ("kubectl-pyscheduler", "--help"),
    ("kubectl_complete-pyscheduler", ""),
)

_SAFELY: Final[dict[str, Any]] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python 3.11 has filters from 3.11.4 on."""


class ReleaseError(RuntimeError):
    """Something that a release needs is missing; the message has the remedy."""


def versions(path: str) -> list[str]:
    """Return the versions that a file of VERSIONED contains."""
    return re.findall(VERSIONED[path], (ROOT / path).read_text(), re.MULTILINE)


def set_version(version: str, today: dt.date, root: Path = ROOT) -> None:
    """Write a version into the files of VERSIONED, and give the unreleased changes its heading."""
    for path, pattern in VERSIONED.items():
        text = (root / path).read_text()
        (root / path).write_text(
            re.sub(pattern, lambda found: found[0].replace(found[1], version), text, flags=re.MULTILINE)
        )
    changes = (root / _CHANGES).read_text()
    if f"\n## [{version}]" not in changes:
        new = f"## [Unreleased]\n\n## [{version}] - {today}"
        (root / _CHANGES).write_text(changes.replace("## [Unreleased]", new, 1))
        if not notes(version, root):
            (root / _CHANGES).write_text(changes)
            raise ReleaseError(f"{_CHANGES} has nothing under Unreleased: describe what users will notice")


def notes(version: str, root: Path = ROOT) -> str:
    """Return the section of the changelog about a version, without its heading."""
    sections = re.split(r"^## ", (root / _CHANGES).read_text(), flags=re.MULTILINE)
    [section] = [each for each in sections if each.startswith(f"[{version}]")]
    return section.partition("\n")[2].strip()


def make(version: str, today: dt.date) -> str:
    """Commit a version if it is new, make its files in dist/, and return a list of them with what is next."""
    _commit(version, today)
    epoch = _git("log", "-1", "--format=%ct")
    folder = ROOT / "dist" / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        sources = [_export(Path(temporary, each)) for each in ("one", "two")]
        made = [distributions(source, source / "dist", epoch) for source in sources]
        same(made)
        [chart, *_] = same(
            [[archive(source, Path(temporary, source.name + "-chart"), epoch)] for source in sources]
        )
        for path in (*made[0], chart):
            shutil.copy(path, folder)
    [wheel] = folder.glob("*.whl")
    _run("make", "sbom", f"WHEEL={wheel.relative_to(ROOT)}")
    for program, *arguments in _COMMANDS:
        _run(str(ROOT / ".venv" / "installed" / "bin" / program), *arguments)
    for architecture in ARCHITECTURES:
        locked_wheels(architecture)
    (folder / "NOTES.md").write_text(notes(version) + "\n")
    files = sorted(folder.iterdir())
    (folder / "SHA256SUMS").write_text("".join(f"{_digest(path)}  {path.name}\n" for path in files))
    return _summary(version, folder)


def _commit(version: str, today: dt.date) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"VERSION is {version!r}, and has to be three numbers: make release VERSION=0.1.0")
    if _git("status", "--porcelain", "--untracked-files=no"):
        raise ReleaseError("there are changes that no commit has: commit them, a release is made of a commit")
    tag = _git("for-each-ref", "--format=%(objectname)%(*objectname)", f"refs/tags/v{version}")
    if tag and not tag.endswith(_git("rev-parse", "HEAD")):
        raise ReleaseError(f"the tag v{version} is at another commit: check it out, or choose a new version")
    set_version(version, today)
    manifests.write()
    if _git("status", "--porcelain", "--untracked-files=no"):
        if tag:
            raise ReleaseError(
                f"the commit of the tag v{version} has another version: delete the tag, and run this again"
            )
        _git("commit", "--quiet", "--message", f"Release {version}", *VERSIONED, _CHANGES, "manifests")


def _export(folder: Path) -> Path:
    """Write the files of the commit into a folder; what else lies in the work tree is not part of a release."""
    folder.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, **_SAFELY)
    return folder


def distributions(source: Path, folder: Path, epoch: str) -> list[Path]:
    """Build the sdist, and the wheel from the sdist, with the time in seconds that all files get."""
    hatchling = (sys.executable, "-m", "hatchling", "build", "-d", str(folder))
    _run(*hatchling, "-t", "sdist", cwd=source, SOURCE_DATE_EPOCH=epoch)
    [sdist] = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(sdist) as files:
        files.extractall(unpacked, **_SAFELY)
        _run(
            *hatchling,
            "-t",
            "wheel",
            cwd=Path(unpacked, sdist.name.removesuffix(".tar.gz")),
            SOURCE_DATE_EPOCH=epoch,
        )
    return sorted(folder.iterdir())


def archive(source: Path, folder: Path, epoch: str) -> Path:
    """Lint and pack the chart, the layer of its OCI artifact. Helm writes the time of the call, which is replaced."""
    chart = source / CHART.relative_to(ROOT)
    helm("lint", "--strict", str(chart))
    helm("package", str(chart), f"--destination={folder}")
    [packed] = folder.glob("*.tgz")
    plain = io.BytesIO()
    with tarfile.open(packed) as files, tarfile.open(fileobj=plain, mode="w") as written:
        for entry in files:
            entry.mtime = int(epoch)
            written.addfile(entry, files.extractfile(entry))
    packed.write_bytes(gzip.compress(plain.getvalue(), mtime=int(epoch)))
    return packed


def same(built: list[list[Path]]) -> list[Path]:
    """Return the first files if the others have the same names and bytes."""
    first, *others = built
    for other in others:
        for one, two in zip(first, other, strict=True):
            if one.name != two.name or one.read_bytes() != two.read_bytes():
                raise ReleaseError(
                    f"{one.name} has other bytes when it is built again: compare {one} and {two}"
                )
    return first


def locked_wheels(architecture: str) -> None:
    """Find a wheel of every locked package for an architecture of the image, which compiles nothing."""
    glibc = [
        f"--platform={tag}_{architecture}" for tag in ("manylinux2014", "manylinux_2_28", "manylinux_2_36")
    ]
    with tempfile.TemporaryDirectory() as target:
        _run(
            *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"),
            *(f"--target={target}", "--python-version=3.11", *glibc),
            *("--only-binary=:all:", "--require-hashes", "-r", "requirements/runtime.txt"),
        )


def _summary(version: str, folder: Path) -> str:
    kinds = {
        ".whl": "wheel, installed from the lock into an empty environment, where its commands run",
        ".gz": "sdist, of which the wheel is built",
        ".tgz": "chart, linted",
        ".json": "list of the installed packages (CycloneDX)",
        ".md": "changes, for the page of the release",
        "": "checksums",
    }
    files = [f"  {path.name:<45} {kinds[path.suffix]}" for path in sorted(folder.iterdir())]
    return "\n".join(
        [
            f"{version} of commit {_git('rev-parse', 'HEAD')}, in {folder.relative_to(ROOT)}/:",
            *files,
            "sdist, wheel and chart were built twice with equal bytes. Every locked package has a wheel for "
            + " and ".join(ARCHITECTURES)
            + ".",
            "Not made: the image, with its list of packages and provenance; it needs docker buildx and a registry.",
            "Nothing was pushed. The next command lets .github/workflows/release.yml publish all of it:",
            (
                f"  git tag --annotate --message='karmada-pyscheduler {version}' v{version} && "
                f"git push --atomic origin HEAD v{version}"
            ),
        ]
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    return _run("git", *arguments).strip()


def _run(*command: str, cwd: Path = ROOT, **environment: str) -> str:
    answer = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        end = "\n".join(f"    {line}" for line in (answer.stdout + answer.stderr).splitlines()[-20:])
        raise ReleaseError(f"`{' '.join(command)}` in {cwd} ended with status {answer.returncode}:\n\n{end}")
    return answer.stdout
