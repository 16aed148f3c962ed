"""Dockerfiles, read and carried out without a container engine.

``parse`` reads the instructions that ours use and refuses others. ``Builder`` carries them out as an
engine would: each stage is a copy of its base's root file system, RUN is chroot, COPY takes what
.dockerignore lets through. It needs root, and the machine's network for RUN.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

_LINE: Final = re.compile(r"^(?P<name>[A-Z]+)\s+(?P<rest>.*)$", re.DOTALL)
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


class DockerfileError(RuntimeError):
    """A Dockerfile that cannot be read or carried out."""


@dataclass(frozen=True, slots=True)
class Image:
    """A root file system and how to start it."""

    root: Path
    user: str = "0:0"
    workdir: str = "/"
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    labels: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()


def parse(text: str) -> list[tuple[str, str]]:
    """Return the instructions as (name, rest), with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    instructions = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise DockerfileError(f"not an instruction: {line}")
        instructions.append((match["name"], match["rest"]))
    return instructions


class Builder:
    """Carries out one Dockerfile."""

    def __init__(
        self,
        context: Path,
        folder: Path,
        *,
        find: Callable[[str], Image],
        arguments: Mapping[str, str] | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        """Take where to build.

        Args:
            context: The folder that COPY copies from.
            folder: Where the stages' root file systems go; must not exist.
            find: Returns the image of a name in FROM.
            arguments: What --build-arg would give.
            say: Told each instruction.
        """
        self._context = context
        self._folder = folder
        self._find = find
        self._given = dict(arguments or {})
        self._say = say
        self._stages: dict[str, Image] = {}

    def build(self, dockerfile: Path) -> Image:
        """Carry out all stages and return the image of the last."""
        globals_: dict[str, str] = {}
        variables: dict[str, str] = {}
        image: Image | None = None
        for name, rest in parse(dockerfile.read_text()):
            self._say(f"{name} {rest}")
            if name == "ARG":
                key, separator, default = rest.partition("=")
                fallback = _expand(default, globals_) if separator else globals_.get(key, "")
                value = self._given.get(key, fallback.strip('"'))
                (globals_ if image is None else variables)[key] = value
            elif name == "FROM":
                image = self._begin(_expand(rest, globals_))
                variables = {}
            elif image is None:
                raise DockerfileError(f"{name} before the first FROM")
            else:
                image = self._step(image, name, rest, variables)
        if image is None:
            raise DockerfileError(f"{dockerfile}: no FROM")
        return image

    def _begin(self, rest: str) -> Image:
        reference, _, stage = rest.partition(" AS ")
        number = str(len(self._stages))
        base = self._stages.get(reference) or self._find(reference)
        root = self._folder / number
        self._folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--reflink=auto", base.root, root], check=True)
        image = replace(base, root=root)
        self._stages[stage or number] = image
        return image

    def _step(self, image: Image, name: str, rest: str, variables: Mapping[str, str]) -> Image:
        scope = {**variables, **image.environment}
        match name:
            case "RUN":
                self._run(image, rest, variables)
            case "COPY":
                self._copy(image, _expand(rest, scope))
            case "WORKDIR":
                (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
                return replace(image, workdir=rest)
            case "ENV":
                return replace(image, environment={**image.environment, **_pairs(_expand(rest, scope))})
            case "LABEL":
                return replace(image, labels={**image.labels, **_pairs(_expand(rest, scope))})
            case "USER":
                return replace(
                    image, user=rest if ":" in rest else {"root": "0:0"}.get(rest, f"{rest}:{rest}")
                )
            case "ENTRYPOINT":
                return replace(image, entrypoint=tuple(json.loads(rest)))
            case _:
                raise DockerfileError(f"{name} is not supported here; add it to {Path(__file__).name}")
        return image

    def _run(self, image: Image, rest: str, variables: Mapping[str, str]) -> None:
        """Run a command, with part of the context mounted if it begins with --mount=type=bind."""
        mounts: dict[Path, str] = {}
        while rest.startswith("--mount="):
            option, _, rest = rest.partition(" ")
            fields = dict(field.partition("=")[::2] for field in option.removeprefix("--mount=").split(","))
            if fields.pop("type", "") != "bind" or not fields.keys() <= {"source", "target", "rw"}:
                raise DockerfileError(f"{option} is not supported here; add it to {Path(__file__).name}")
            mounts[self._context / fields.get("source", ".")] = fields["target"]
            rest = rest.lstrip()
        run(image, rest, variables, mounts)

    def _copy(self, image: Image, rest: str) -> None:
        words = rest.split()
        source = self._context
        ignored = _ignore_file(self._context)
        if words[0].startswith("--from="):
            source = self._stages[words.pop(0).removeprefix("--from=")].root
            ignored = _nothing_ignored
        *names, target = words
        into = image.root / str(Path(image.workdir) / target).lstrip("/")
        for name in names:
            origin = source / name.lstrip("/")
            if not origin.exists():
                raise DockerfileError(f"COPY {name}: not in {source}")
            if ignored(name):
                raise DockerfileError(f"COPY {name}: .dockerignore keeps it out of the build")
            if origin.is_dir():
                shutil.copytree(
                    origin,
                    into,
                    symlinks=True,
                    dirs_exist_ok=True,
                    ignore=lambda folder, entries: [
                        entry for entry in entries if ignored(str((Path(folder) / entry).relative_to(source)))
                    ],
                )
            else:
                is_folder = target.endswith(("/", ".")) or len(names) > 1
                (into if is_folder else into.parent).mkdir(parents=True, exist_ok=True)
                shutil.copy2(origin, into / origin.name if is_folder else into)


def run(
    image: Image,
    command: str,
    variables: Mapping[str, str] | None = None,
    folders: Mapping[Path, str] | None = None,
) -> str:
    """Run a shell command in an image as its user, and return what it prints.

    The network's names and authorities are this machine's, as an engine would arrange it.

    Args:
        image: Where.
        command: What.
        variables: Environment variables beside the image's.
        folders: Folders of this machine and where they are to be seen meanwhile.
    """
    root = shlex.quote(str(image.root))
    mounts = [
        f"mount -t proc proc {root}/proc",
        f"mount --rbind /dev {root}/dev",
        *(
            f"touch {root}{name}; mount --bind {name} {root}{name}"
            for name in ("/etc/resolv.conf", "/etc/hosts")
        ),
    ]
    points = {folder: image.root / target.lstrip("/") for folder, target in (folders or {}).items()}
    for folder, point in points.items():
        point.mkdir(parents=True, exist_ok=True)
        mounts.append(shlex.join(["mount", "--bind", str(folder), str(point)]))
    environment = {name: os.environ[name] for name in _PROXIES if name in os.environ}
    if _AUTHORITIES.exists():
        mounts.append(
            f"mkdir -p {root}/run/build; touch {root}/run/build/ca.crt; "
            f"mount --bind {_AUTHORITIES} {root}/run/build/ca.crt"
        )
        environment["PIP_CERT"] = "/run/build/ca.crt"
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin") or "chroot"
    inside = [
        chroot,
        f"--userspec={image.user}",
        str(image.root),
        "/bin/sh",
        "-c",
        f"cd {image.workdir} && {command}",
    ]
    script = "set -e; " + "; ".join(mounts) + "; exec " + shlex.join(inside)
    answer = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
        env={**environment, **image.environment, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    shutil.rmtree(image.root / "run" / "build", ignore_errors=True)
    for point in points.values():
        point.rmdir()
    if answer.returncode != 0:
        end = "\n".join(f"    {line}" for line in (answer.stdout + answer.stderr).splitlines()[-20:])
        raise DockerfileError(f"RUN {command}\nended with status {answer.returncode}:\n{end}")
    return answer.stdout


def _expand(text: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$\{?([A-Za-z_]+)\}?", lambda match: variables.get(match[1], ""), text)


def _pairs(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in shlex.split(text))
    return {name: value for name, _, value in pairs}


def _nothing_ignored(_: str) -> bool:
    return False


def _ignore_file(context: Path) -> Callable[[str], bool]:
    """Read .dockerignore as far as ours goes: names at the top, ``!`` and ``**/``; the last match wins."""
    path = context / ".dockerignore"
    patterns = [line.strip() for line in path.read_text().splitlines()] if path.exists() else []

    def ignored(name: str) -> bool:
        answer = False
        for pattern in patterns:
            if not pattern or pattern.startswith("#"):
                continue
            wanted = pattern.lstrip("!")
            if wanted.startswith("**/"):
                hit = any(fnmatch(part, wanted[3:]) for part in Path(name).parts)
            else:
                hit = fnmatch(Path(name).parts[0], wanted)
            if hit:
                answer = not pattern.startswith("!")
        return answer

    return ignored
