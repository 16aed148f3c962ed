"""Helper files of a plugin directory, whose names begin with an underscore, for the imports of its other files.

``from ._prices import price_of`` in a plugin file imports ``_prices.py``. The files of a directory share one copy of it.
When a helper file changes, all files that import helpers are loaded again, with a new copy.
"""

from __future__ import annotations

import ast
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

from karmada_scheduler.api.content_cache import MEBI, cached_by_content

PACKAGE: Final = "karmada_scheduler_plugin_dir"
"""The package of the modules of plugin directories, and the prefix of their loggers."""

_numbers: Final = itertools.count(1)


class BytesLoader(importlib.abc.SourceLoader):
    """Loads a module from given bytes; without ``__pycache__``, whose times are too coarse."""

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
    """One version of all helper files, in a package of its own. Modules are executed at their first import.

    Attributes:
        package: The name of the package.
        digest: The digest of the names and contents of all files; empty without files.
    """

    def __init__(self, contents: Mapping[Path, bytes]) -> None:
        """Take the contents of the files by path."""
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
        """The names of the modules in imports, for example ``_prices``."""
        return frozenset(path.stem for path in self._contents)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (the finder's protocol)
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the specification of a helper module of this version."""
        file = self._files.get(fullname)
        if file is None:
            return None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=BytesLoader(file, self._contents[file])
        )

    def close(self) -> None:
        """Remove this version from imports; modules that have imported it keep it."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in (self.package, *self._files):
            sys.modules.pop(name, None)


def is_helper(path: Path) -> bool:
    """Return whether a file of a plugin directory is a helper file."""
    return path.name.startswith("_")


def digest_of(contents: Mapping[Path, bytes]) -> bytes:
    """Return a digest of names and contents, empty for no files."""
    digest = hashlib.sha256()
    for path in sorted(contents):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(contents[path]).digest())
    return digest.digest() if contents else b""


@cached_by_content(entries=256, short=4096, long_bytes=4 * MEBI)  # directories are scanned every second
def imports_helpers(content: bytes) -> bool:
    """Return whether a file has a relative import."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(tree))


NO_HELPERS: Final = HelperModules({})
"""The version of a directory without helper files."""
