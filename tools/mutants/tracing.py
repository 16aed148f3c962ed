"""Which blocks each test reaches; kept by folder of tests for as long as they and the product are the same."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tools.mutants.live import Live
from tools.mutants.mutation import ROOT, Module
from tools.mutants.session import Forks, Reached

_FOLDER = ROOT / ".mutants"


def traced(forks: Forks, live: Live, folders: Sequence[str], paths: Sequence[str]) -> Mapping[str, Reached]:
    """Return what each test of some folders does without mistakes.

    Args:
        forks: Runs the tests.
        live: The functions of the modules.
        folders: Folders of tests; no test is in two of them.
        paths: All modules in which mistakes are made, those of other packages included.
    """
    found: dict[str, Reached] = {}
    for folder in folders:
        tests = [name for name in forks.items if name.startswith(f"{folder}/")]
        file = _FOLDER / f"trace-{_hash(folder)}.json"
        if not file.exists():
            answer = forks.trace(tests, lambda: _add_probes(live, paths))
            _FOLDER.mkdir(exist_ok=True)
            file.write_text(json.dumps(answer), encoding="utf-8")
        found |= _parsed(json.loads(file.read_text(encoding="utf-8")))
    return {name: found[name] for name in forks.items if name in found}


def imported(paths: Iterable[str]) -> None:
    """Import modules."""
    for path in paths:
        importlib.import_module(path.partition("/")[2].removesuffix(".py").replace("/", "."))


def _add_probes(live: Live, paths: Sequence[str]) -> None:
    for path in paths:
        module = Module(path)
        module.add_probes()
        live.replace(path, module.code())


def _parsed(answer: Any) -> dict[str, Reached]:
    return {
        name: Reached(seconds, failed, {(path, number) for path, number in blocks})
        for name, (seconds, failed, blocks) in answer.items()
    }


@cache
def _hash(folder: str) -> str:
    """Return a hash of the product and of the tests in a folder."""
    digest = hashlib.sha256(folder.encode())
    for root in ("operator", "plugins", folder):
        for path in sorted(Path(ROOT / root).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
