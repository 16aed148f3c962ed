"""Measures that are read from sources: words of prose, loops over ``each``, arrows between packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tools import size

PRODUCT: Final = ("operator", "plugins", "advisor")


@cache
def files() -> dict[str, str]:
    """Return modules and pages, by path."""
    return size.files_of(None)


def words() -> int:
    """Return the number of words of all Markdown files but the changelog, and the generated reference of plugins."""
    left_out = ("CHANGELOG.md", "docs/reference/plugins.md")
    return sum(
        len(text.split()) for path, text in files().items() if path.endswith(".md") and path not in left_out
    )


def _modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for path, text in files().items():
        if path.startswith(folders) and path.endswith(".py") and not path.endswith("_pb2.py"):
            yield Path(path), ast.parse(text)


def share_of_each() -> float:
    """Return the share of loops of the product, in percent, whose variable is ``each``."""
    targets = [target for _, tree in _modules(*PRODUCT) for target in _targets(tree)]
    return 100 * targets.count("each") / len(targets)


def _targets(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield ast.unparse(node.target)


def arrows() -> set[tuple[str, str]]:
    """Return the pairs of packages of the adviser of which the first imports the second."""
    return {
        (path.parts[2], node.module.split(".")[1])
        for path, tree in _modules("advisor/")
        for node in ast.walk(tree)
        if len(path.parts) > 3 and isinstance(node, ast.ImportFrom)
        if node.module
        and node.module.startswith("karmada_advisor.")
        and node.module.split(".")[1] != path.parts[2]
    }
