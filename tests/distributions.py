"""Which distribution a module of unit tests is about: ``pytest --distribution library``, by ``make check-distributions``.

Only the imports of tests and of their helpers are looked at. An import of the product that its distribution does not have
is an error where the tests run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
NAMES: Final = ("library", "operator", "advisor")
LIVE: Final = (
    "karmada_advisor.cli.completion",
    "karmada_advisor.fleet.find_binding",
    "karmada_advisor.fleet.live",
    "karmada_advisor.fleet.live_reading",
    "karmada_advisor.fleet.process",
    "karmada_advisor.fleet.process_http",
    "karmada_advisor.fleet.plane_access",
    "karmada_advisor.web",
    "tools.controlplane",
)
"""Modules that read from a control plane or serve the page, and so need the operator's distribution, too."""

WHOLE: Final = {
    "test_cli.py",
    "test_outputs.py",
    "test_start.py",
    "test_web_access.py",
    "test_wrong_environment.py",
}
"""Tests of the command line that start processes with everything, or write metrics."""

COMMANDS: Final = ("karmada_scheduler.command",)
"""Modules that load the adviser by name."""


def add_option(parser: pytest.Parser) -> None:
    """Add the flag that chooses one distribution."""
    parser.addoption(
        "--distribution", choices=NAMES, help="only modules of tests that need this, and the library"
    )


def is_about(path: Path, name: str) -> bool:
    """Return whether a module of tests, or one in a folder, needs this distribution and the library only."""
    if path.is_dir():
        return any(distribution_of(module) == name for module in path.rglob("test_*.py"))
    return not path.name.startswith("test_") or distribution_of(path) == name


def distribution_of(path: Path) -> str | None:
    """Return the distribution that a module of tests needs, None if it needs more than one of them and the library."""
    modules, folder = _closure(path), path.parent.name
    needs_operator = folder == "client" or any(
        _is_in(module, ("karmada_pyscheduler", *LIVE)) for module in modules
    )
    needs_advisor = folder == "cli" or any(
        _is_in(module, ("karmada_advisor", *COMMANDS)) for module in modules
    )
    if (needs_operator and needs_advisor) or path.name in WHOLE:
        return None
    return "operator" if needs_operator else "advisor" if needs_advisor else "library"


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@cache
def _closure(path: Path) -> set[str]:
    """Return the modules that a file imports, and what those of them that are no part of the product import."""
    seen: set[str] = set()
    files, done = [path, *_conftests(path)], set[Path]()
    while files:
        file = files.pop()
        if file in done:
            continue
        done.add(file)
        for module in _imported(file):
            seen.add(module)
            files.extend(_files(module))
    return seen


def _conftests(path: Path) -> Iterator[Path]:
    for folder in path.parents:
        if folder == ROOT / "tests" / "unit":
            return
        if (folder / "conftest.py").exists():
            yield folder / "conftest.py"


def _files(module: str) -> Iterator[Path]:
    """Yield the files of a module of tests or tools, with the packages that it is in."""
    parts = module.split(".")
    if parts[0] not in ("tests", "tools"):
        return
    for length in range(1, len(parts) + 1):
        base = ROOT.joinpath(*parts[:length])
        yield from (file for file in (base.with_suffix(".py"), base / "__init__.py") if file.exists())


@cache
def _imported(file: Path) -> frozenset[str]:
    found: set[str] = set()
    package = list(file.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {base, *(f"{base}.{name.name}" for name in node.names)}
    return frozenset(found)
