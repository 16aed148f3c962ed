"""The source of a version of Karmada, and what can be read from it without a compiler."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tools.controlplane import golang
from tools.controlplane.binaries import KARMADA, TOOLS, BuildError, cache_folder

_IMPORT: Final = re.compile(rf'"{re.escape(KARMADA)}/([^"]+)"')
_GATE: Final = re.compile(
    r"^\s*(\w+):\s*\{Default: (true|false), PreRelease: featuregate\.(\w+)\}", re.MULTILINE
)
_FLAG: Final = re.compile(r'fs\.\w+Var\(.+?,\s*"([\w-]+)",\s*([^,]+),')
_PROTOCOL: Final = "pkg/estimator/pb"


@dataclass(frozen=True, slots=True)
class KarmadaSource:
    """The source of one version.

    Attributes:
        folder: Its root.
    """

    folder: Path

    def closure(self, command: str = "cmd/scheduler") -> dict[str, str]:
        """Return the files of Karmada that a command is built of, tests left out: path to content."""
        packages, due = set[str](), [command]
        files: dict[str, str] = {}
        while due:
            package = due.pop()
            if package in packages:
                continue
            packages.add(package)
            for path in sorted((self.folder / package).glob("*.go")):
                if not path.name.endswith("_test.go"):
                    files[f"{package}/{path.name}"] = text = path.read_text()
                    due += _IMPORT.findall(text)
        return files

    def crd_fields(self) -> dict[str, str]:
        """Return the fields of all CRDs: kind, version and path to type, default, enum and required."""
        found: dict[str, str] = {}
        for path in sorted((self.folder / "charts/karmada/_crds/bases").glob("**/*.yaml")):
            for crd in yaml.safe_load_all(path.read_text()):
                for version in crd["spec"]["versions"]:
                    name = f"{crd['spec']['names']['kind']}/{version['name']}"
                    found[name] = f"served={version['served']} storage={version['storage']}"
                    found |= dict(_fields(name, version["schema"]["openAPIV3Schema"]))
        return found

    def gates(self) -> dict[str, str]:
        """Return the feature gates with stage and default."""
        text = (self.folder / "pkg/features/features.go").read_text()
        return {
            name: f"{stage}, {'on' if value == 'true' else 'off'}"
            for name, value, stage in _GATE.findall(text)
        }

    def flags(self) -> dict[str, str]:
        """Return the flags of karmada-scheduler with their defaults as they are written."""
        return dict(_FLAG.findall((self.folder / "cmd/scheduler/app/options/options.go").read_text()))

    def protocol(self) -> dict[str, str]:
        """Return the fields of the estimator's messages: message and field to number and type."""
        text = "\n".join(path.read_text() for path in sorted((self.folder / _PROTOCOL).glob("*.proto")))
        found, message = {}, ""
        for line in text.splitlines():
            if begun := re.match(r"message (\w+)", line):
                message = begun[1]
            elif field := re.match(r"\s+(.+?) (\w+) = (\d+)", line):
                found[f"{message}.{field[2]}"] = f"{field[3]}: {field[1]}"
        return found

    def webhooks(self) -> dict[str, str]:
        """Return the rules of the webhooks of bindings and policies."""
        text = (
            (self.folder / "artifacts/deploy/webhook-configuration.yaml")
            .read_text()
            .replace("{{", "")
            .replace("}}", "")
        )
        return {
            f"{each['kind']}/{webhook['name']}": json.dumps(webhook.get("rules"), sort_keys=True)
            for each in yaml.safe_load_all(text)
            if each
            for webhook in each["webhooks"]
            if "binding" in webhook["name"] or "policy" in webhook["name"]
        }


def fetched(version: str) -> KarmadaSource:
    """Return the source of a version, downloaded by Go if it is not in its cache.

    Raises:
        BuildError: There is no Go, or no such version.
    """
    try:
        go = golang.find(
            wanted=golang.wanted_version(TOOLS / "go.mod"), cache=cache_folder(), say=lambda _: None
        )
    except golang.GoError as error:
        raise BuildError(str(error)) from error
    command = [str(go.executable), "mod", "download", "-json", f"{KARMADA}@v{version.removeprefix('v')}"]
    answer = subprocess.run(
        command, cwd=TOOLS, env=go.environment(), capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(answer.stdout or "{}")
    if "Dir" not in found:
        raise BuildError(f"Karmada {version} cannot be downloaded: {found.get('Error') or answer.stderr}")
    return KarmadaSource(Path(found["Dir"]))


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield what was added, removed and changed, in the order of names; of added and removed fields, the outermost."""
    outer = "\0"
    for name in sorted({*before, *after}):
        if name.startswith((f"{outer}.", f"{outer}[")):
            continue
        if (name in before) != (name in after):
            outer = name
        if name not in before:
            yield f"+ {name}  {after[name]}"
        elif name not in after:
            yield f"- {name}  {before[name]}"
        elif before[name] != after[name]:
            yield f"~ {name}  {before[name]}  ->  {after[name]}"


def _fields(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    shown = {
        name: schema[name] for name in ("type", "default", "enum", "required", "format") if name in schema
    }
    yield path, json.dumps(shown, sort_keys=True)
    for name, each in (schema.get("properties") or {}).items():
        yield from _fields(f"{path}.{name}", each)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _fields(f"{path}[]", schema[name])
