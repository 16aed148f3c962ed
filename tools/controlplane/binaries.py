"""The programs of the control plane, built once per machine from the pins in tools/go.mod.

They live outside the work tree, in a folder named by everything that decides what is in
them, so a second checkout with the same pins builds nothing. Next to them lies the part of
Karmada that is data: its CRDs and webhook configurations, taken from the module it was
built from and kept as JSON, so a cleaned module cache does no harm and starting a control
plane parses no YAML.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from . import golang
from .parallel import in_parallel
from .progress import Progress
from .versions import CURRENT, KarmadaVersion

TOOLS = Path(__file__).parent / "tools"
KARMADA = "github.com/karmada-io/karmada"
KARMADA_NAMES = ("aggregated-apiserver", "webhook", "controller-manager", "scheduler", "scheduler-estimator",
                 "descheduler")  # fmt: skip
PACKAGES = {
    "server": "go.etcd.io/etcd/server/v3",  # etcd
    **{
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    },
    **{name: f"{KARMADA}/cmd/{name}" for name in KARMADA_NAMES},
}
NAMES = tuple(name for name in PACKAGES if name != "descheduler")
"""Those of a control plane; the descheduler is built when a benchmark wants it."""
_DISPENSABLE = ("kube-controller-manager", "kube-scheduler", "kubectl", "scheduler-estimator")
BUILD_FLAGS = (
    "-trimpath",
    # Upstream's own build has this tag; without it karmada-scheduler panics at its first estimator call.
    "-tags=kubernetes_protomessage_one_more_release",
    # For a debugger, and a sixteenth of the compiler's CPU time. Stack traces need none of it.
    "-gcflags=all=-dwarf=false",
    # Members report this version as theirs; the default would be v0.0.0-master+$Format:%H$.
    "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.35.3",
)
COST = "up to 16 minutes of CPU time, 570 MB of programs and 3 GB of Go caches"
NEEDED_BYTES = 5 << 30
WEBHOOK_HOST = "karmada-webhook.karmada-system.svc:443"
CA_BUNDLE = "CA-BUNDLE"
FORMAT = "1"  # raise it when the layout of the folder changes
MANIFESTS = "manifests.json"
# libyaml reads the CRDs ten times faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Manifest = dict[str, Any]


class BuildError(RuntimeError):
    """The programs could not be built; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs that were asked for, and Karmada's manifests.

    Attributes:
        folder: The programs of the current version.
        karmada: The programs of Karmada and its manifests; the same folder, but for an older version.
    """

    folder: Path
    karmada: Path

    def path(self, name: str) -> Path:
        """Return the path of one program of PACKAGES."""
        if name not in PACKAGES:
            raise KeyError(f"{name}: not one of {', '.join(PACKAGES)}")
        return (self.karmada if name in KARMADA_NAMES else self.folder) / name

    def manifests(self, kind: str) -> list[Manifest]:
        """Return Karmada's manifests of one kind; the caller may change them."""
        everything: list[Manifest] = json.loads((self.karmada / MANIFESTS).read_text())
        return [manifest for manifest in everything if manifest["kind"] == kind]


def cache_folder() -> Path:
    """Return where built programs are kept, for all checkouts of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "karmada-pyscheduler" / "controlplane"


def ensure(
    version: KarmadaVersion = CURRENT, *, names: Collection[str] = NAMES, quiet: bool = False
) -> Binaries:
    """Return the programs, building those that this machine does not have yet.

    etcd, Kubernetes and kubectl are those of the current version.

    Args:
        version: Of Karmada.
        names: The programs that are needed.
        quiet: Print nothing unless programs have to be built.

    Raises:
        BuildError: With the end of Go's output and what to do about it.
    """
    of_version = {name: version if name in KARMADA_NAMES else CURRENT for name in names}
    folders = {each: cache_folder() / _key(each) for each in (CURRENT, version)}
    for each, folder in folders.items():
        wanted = [name for name, of in of_version.items() if of is each]
        if _missing(folder, wanted):
            with _lock(cache_folder()):
                if missing := _missing(folder, wanted):  # another checkout may have built them meanwhile
                    _build(each, folder, missing)
        if not quiet:
            print(f"Control plane programs of Karmada {each.name}: {folder}")
    return Binaries(folders[CURRENT], folders[version])


def _missing(folder: Path, names: Iterable[str]) -> list[str]:
    return [name for name in names if not (folder / name).is_file()]


def needed(*, garbage_collection: bool) -> tuple[str, ...]:
    """Return the programs of a control plane: all, or those without which nothing is propagated.

    The others have a seventh of all packages to themselves, and the demo can do without.
    """
    return NAMES if garbage_collection else tuple(name for name in NAMES if name not in _DISPENSABLE)


def build_flags(version: KarmadaVersion) -> tuple[str, ...]:
    """Return the flags of `go build`."""
    trimpath, tags, compiler, linker = BUILD_FLAGS
    return (
        *version.modfile,
        trimpath,
        f"{tags},{version.tag}" if version.tag else tags,
        compiler,
        f"{linker} -X {KARMADA}/pkg/version.gitVersion=v{version.name}",
    )


def _key(version: KarmadaVersion) -> str:
    ingredients = hashlib.sha256()
    for pins in (version.go_mod, version.go_mod.with_name("go.sum")):
        ingredients.update(pins.read_bytes())
    flags = [
        each for each in build_flags(version) if each not in version.modfile
    ]  # the checkout is no ingredient
    ingredients.update("\0".join((*flags, platform.system(), platform.machine(), FORMAT)).encode())
    prefix = "" if version.is_current else f"karmada-{version.name}-"
    return prefix + ingredients.hexdigest()[:16]


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another build holds {lock.name}; waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(version: KarmadaVersion, folder: Path, names: Sequence[str]) -> None:
    say = Progress(len(names))
    say(f"Building {', '.join(names)} (Karmada {version.name}), once for this machine: {COST}.")
    free = shutil.disk_usage(folder.parent).free
    if free < NEEDED_BYTES:
        say(f"Only {free >> 30} GB are free in {folder.parent}; this may not be enough.")
    try:
        go = golang.find(wanted=golang.wanted_version(version.go_mod), cache=folder.parent, say=say)
    except golang.GoError as error:
        raise BuildError(str(error)) from error
    say(f"Go {'.'.join(map(str, go.version))} ({go.origin})")
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _compile(go, unfinished, say, [PACKAGES[name] for name in names], build_flags(version))
    if missing := _missing(unfinished, names):
        raise BuildError(f"go build ended well but made no {', '.join(missing)} in {unfinished}")
    folder.mkdir(exist_ok=True)
    (unfinished / MANIFESTS).write_text(json.dumps(_karmada_manifests(go, version)))
    for name in (MANIFESTS, *names):  # a program is there only when its manifests are
        (unfinished / name).rename(folder / name)
    unfinished.rmdir()
    say(f"Done: {folder}")


def _compile(go: golang.Go, into: Path, say: Progress, packages: Sequence[str], flags: Sequence[str]) -> None:
    """Download the modules, count the packages that Go's cache does not have, and build.

    The download leaves the processors idle, and the standard library needs none of it.
    """
    stale = "{{if .Stale}}{{.ImportPath}}{{end}}"
    with say.watching(into):
        first = [["list", "-deps", *flags, *packages], ["build", *flags, "std"]]
        in_parallel(lambda arguments: _go(go, arguments, say), first)
        say.total = _go(go, ["list", "-deps", "-f", stale, *flags, *packages], say)
        say.built, say.build_start = 0, time.monotonic()
        _go(go, ["build", "-v", *flags, "-o", f"{into}/", *packages], say)


def _go(go: golang.Go, arguments: list[str], say: Progress) -> int:
    """Run a command of Go; return the number of packages that it prints.

    Raises:
        BuildError: It failed.
    """
    command = [str(go.executable), *arguments]
    last_lines: deque[str] = deque(maxlen=30)
    with subprocess.Popen(
        command,
        cwd=TOOLS,
        env=go.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        try:
            count = _follow(running.stdout, last_lines, say)
        except BaseException:
            running.terminate()
            raise
    if running.returncode != 0:
        raise BuildError(
            f"`{' '.join(command)}` in {TOOLS} ended with status {running.returncode}. The end of its output:\n\n"
            + "\n".join(f"    {line}" for line in last_lines)
            + "\n\nModules come from GOPROXY (`go env GOPROXY`), so check that it can be reached from here, and that\n"
            "the disk has space for Go's caches (`go env GOCACHE GOMODCACHE`). What was built so far is kept:\n"
            "running the same command again goes on from there."
        )
    return count


def _follow(output: IO[str], last_lines: deque[str], say: Progress) -> int:
    count = 0
    for line in output:
        last_lines.append(line.rstrip())
        if line.startswith("go: downloading"):
            say.downloaded += 1
        elif line.strip() and not line.startswith("go:"):
            count += 1
            say.built += 1
    return count


def _karmada_manifests(go: golang.Go, version: KarmadaVersion) -> list[Manifest]:
    """Return the CRDs, conversion patches applied, and the webhook configurations, as Karmada ships them.

    Values that differ from run to run are placeholders: the host in the URLs is WEBHOOK_HOST,
    and CA_BUNDLE stands for the certificate.
    """
    answer = subprocess.run(
        [go.executable, "list", *version.modfile, "-m", "-f", "{{.Dir}}", KARMADA],
        cwd=TOOLS,
        env=go.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    karmada = Path(answer.stdout.strip())
    crds = karmada / "charts" / "karmada" / "_crds"
    patches = {
        patch["metadata"]["name"]: patch for path in crds.glob("patches/*.yaml") for patch in _documents(path)
    }
    manifests = [document for path in sorted(crds.glob("bases/**/*.yaml")) for document in _documents(path)]
    for crd in manifests:
        if patch := patches.get(crd["metadata"]["name"]):
            crd["spec"]["conversion"] = patch["spec"]["conversion"]
    return manifests + _documents(karmada / "artifacts" / "deploy" / "webhook-configuration.yaml")


def _documents(path: Path) -> list[Manifest]:
    text = path.read_text()
    for word, value in {
        "name": "karmada-webhook",
        "namespace": "karmada-system",
        "caBundle": CA_BUNDLE,
    }.items():
        text = text.replace(f"{{{{{word}}}}}", value)
    return [document for document in yaml.load_all(text, Loader=_LOADER) if document]


__all__ = ["NAMES", "Binaries", "BuildError", "Manifest", "build_flags", "cache_folder", "ensure", "needed"]
