"""Files of the plugin directory that other files there import: those whose names begin with an underscore.

``from ._prices import price_of`` in a plugin file imports ``_prices.py``. All files of one state of the directory share
one copy of it. When one of them changes, the files that import any are loaded anew, with a new copy.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PACKAGE: Final = "karmada_scheduler_plugin_dir"
"""What the names of modules of a plugin directory begin with, and so those of their loggers."""

_numbers: Final = itertools.count(1)


class Content(importlib.abc.SourceLoader):
    """Gives a module the bytes that were read once; no ``__pycache__``, whose times are too coarse."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path = str(path)
        self._content = content

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002 (the loader's protocol)
        return self._path

    def get_data(self, path: str | bytes) -> bytes:
        if path != self._path:
            raise OSError(f"only {self._path} is here")
        return self._content


class HelperModules(importlib.abc.MetaPathFinder):
    """One state of the helper files: a package of its own, whose modules are executed when they are first imported.

    Attributes:
        package: The name of the package.
        digest: Of the names and contents of all files; empty if there are none.
    """

    def __init__(self, contents: Mapping[Path, bytes]) -> None:
        """Take the contents of the files by path; an empty package is one, too."""
        self.package: Final = f"{PACKAGE}.state{next(_numbers)}"
        self.digest: Final = digest_of(contents)
        self._files: Final = {f"{self.package}.{path.stem}": path for path in contents}
        self._contents: Final = dict(contents)
        for name in (PACKAGE, self.package):
            if name not in sys.modules:
                module = types.ModuleType(name)
                module.__path__ = []
                sys.modules[name] = module
        if contents:
            sys.meta_path.append(self)

    @property
    def names(self) -> frozenset[str]:
        """The names of the modules as files import them: ``_prices``."""
        return frozenset(path.stem for path in self._contents)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (the finder's protocol)
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a helper module of this state."""
        file = self._files.get(fullname)
        if file is None:
            return None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=Content(file, self._contents[file])
        )

    def close(self) -> None:
        """Let nobody import from this state any more; who has imported goes on."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in (self.package, *self._files):
            sys.modules.pop(name, None)


def is_helper(path: Path) -> bool:
    """Tell whether a file of a plugin directory holds no plugins but what other files import."""
    return path.name.startswith("_")


def digest_of(contents: Mapping[Path, bytes]) -> bytes:
    """Return a digest of names and contents, empty for no files."""
    digest = hashlib.sha256()
    for path in sorted(contents):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(contents[path]).digest())
    return digest.digest() if contents else b""


@functools.lru_cache(maxsize=256)  # a directory is looked at every second
def imports_helpers(content: bytes) -> bool:
    """Tell whether a file has an import that begins with a dot."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(tree))


NO_HELPERS: Final = HelperModules({})
"""The state of a directory without such files."""
