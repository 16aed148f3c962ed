"""Which blocks each test reaches; kept by folder of tests for as long as they and the product are the same."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from tools.mutants.live import Live
from tools.mutants.mutation import ROOT, Module
from tools.mutants.session import Block, Forks, Reached

_FOLDER = ROOT / ".mutants"


def traced(
    forks: Forks, live: Live, folders: Sequence[str], modules: Mapping[str, Module]
) -> Mapping[str, Reached]:
    """Return what each test of some folders does without mistakes.

    What a folder reaches is found again when its tests change, or a module is new. In a module that has changed since, a
    test counts as reaching each block of a function that it reached.

    Args:
        forks: Runs the tests.
        live: The functions of the modules.
        folders: Folders and files of tests; no test is in two of them.
        modules: All modules in which mistakes are made, those of other packages included.
    """
    found: dict[str, Reached] = {}
    sources = {path: hashlib.sha256(module.source.encode()).hexdigest() for path, module in modules.items()}
    for folder in folders:
        tests = [name for name in forks.items if name.startswith((f"{folder}/", f"{folder}::"))]
        file = _FOLDER / f"trace-{folder.replace('/', '-')}-{_hash(folder)}.json"
        if not file.exists() or not sources.keys() <= json.loads(file.read_text("utf-8"))["sources"].keys():
            answer = forks.trace(tests, lambda: _add_probes(live, modules))
            _FOLDER.mkdir(exist_ok=True)
            file.write_text(json.dumps({"sources": sources, "tests": answer}), encoding="utf-8")
        content = json.loads(file.read_text(encoding="utf-8"))
        changed = {path for path, source in sources.items() if content["sources"].get(path) != source}
        for name, (seconds, failed, blocks) in content["tests"].items():
            if name in forks.items:
                reached = {(path, block) for path, block in blocks}
                found[name] = Reached(seconds, failed, reached | _coarse(reached, changed, modules))
    return found


def _coarse(
    reached: Collection[Block], changed: Collection[str], modules: Mapping[str, Module]
) -> set[Block]:
    functions = {(path, block.rpartition(":")[0]) for path, block in reached if path in changed}
    return {
        (path, block)
        for path in {path for path, _ in functions}
        for block in modules[path].blocks
        if (path, block.rpartition(":")[0]) in functions
    }


def imported(paths: Iterable[str]) -> None:
    """Import modules."""
    for path in paths:
        importlib.import_module(path.partition("/")[2].removesuffix(".py").replace("/", "."))


def _add_probes(live: Live, modules: Mapping[str, Module]) -> None:
    for path, module in modules.items():
        module.add_probes()
        live.replace(path, module.code())


@cache
def _hash(folder: str) -> str:
    """Return a hash of the tests in a folder or a file."""
    digest = hashlib.sha256()
    root = Path(ROOT / folder)
    for path in sorted(root.rglob("*.py")) or [root]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
