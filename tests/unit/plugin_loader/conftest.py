"""Plugin files, and setups with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from karmada_scheduler.plugin_loader.helper_modules import PACKAGE

Write = Callable[[str, str], Path]

PLUGIN = '''
class {name}:
    """{doc}"""

    name = "{name}"

    def score(self, context):
        return {score}
'''


def source(name: str, *, score: int = 1, doc: str = "Test.") -> str:
    return PLUGIN.format(name=name, score=score, doc=doc)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "plugins"
    path.mkdir()
    return path


@pytest.fixture
def write(folder: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = folder / name
        path.write_text(text)
        return path

    return write


@pytest.fixture(autouse=True)
def _no_modules_left() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
