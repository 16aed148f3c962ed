"""The files of each ``--plugin-dir``, their changes, and the accepted version of each file.

``scan`` loads changed files. Its caller builds profiles with them, and calls ``accept`` or ``refuse`` for each. A refused
file is tried again when it changes, or when another file of the directories is accepted.

Files whose names begin with an underscore have no plugins; other files may import them (``helper_modules``).

A mounted ConfigMap is replaced as a whole: its files are links through ``..data``, a hidden link that is swapped.
Contents are compared, so it does not matter how a file changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.plugin_loader import plugin_files
from karmada_scheduler.plugin_loader.helper_modules import (
    NO_HELPERS,
    HelperModules,
    digest_of,
    imports_helpers,
    is_helper,
)
from karmada_scheduler.structs import Struct

_REMOVED: Final = b""


class FileChange(Struct, frozen=True):
    """A new version of a file.

    Attributes:
        path: The file.
        digest: The digest of its content; empty if the file was deleted.
        module: The name of its module, "" without one.
        plugins: Its plugins.
        error: Its problems; None without problems.
    """

    path: Path
    digest: bytes
    module: str = ""
    plugins: tuple[Registration, ...] = ()
    error: ConfigError | None = None

    @property
    def is_removal(self) -> bool:
        """Whether the file was deleted."""
        return self.digest == _REMOVED


class PluginDirectory:
    """The files of a directory."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._accepted: dict[Path, FileChange] = {}
        self._digests: dict[Path, bytes] = {}
        self._helpers = NO_HELPERS
        self._previous_helpers: HelperModules | None = None

    def read(self) -> dict[Path, bytes]:
        """Return the contents of all files by path.

        Raises:
            ConfigError: The directory cannot be read; accepted versions stay.
        """
        try:
            return {
                path: path.read_bytes()
                for path in sorted(self.path.iterdir())
                if path.suffix == ".py" and not path.name.startswith(".") and path.is_file()
            }
        except OSError as error:
            raise ConfigError([ConfigProblem(str(self.path), f"cannot be read: {error.strerror}")]) from error

    def changes(self, files: Mapping[Path, bytes]) -> list[FileChange]:
        """Return the files that differ from the last accepted or refused version, removals first.

        ``files`` has the contents of all files by path.
        """
        contents = {path: content for path, content in files.items() if not is_helper(path)}
        self._update_helpers({path: content for path, content in files.items() if is_helper(path)})
        gone = [path for path in self._accepted if path not in contents and self._digests[path] != _REMOVED]
        for path in self._digests.keys() - contents.keys() - self._accepted.keys():
            del self._digests[path]
        changed = [
            (path, content, digest)
            for path, content in contents.items()
            if (digest := self._digest(content)) != self._digests.get(path)
        ]
        return [
            *(FileChange(path, _REMOVED) for path in gone),
            *(self._loaded(path, content, digest) for path, content, digest in changed),
        ]

    def _update_helpers(self, contents: Mapping[Path, bytes]) -> None:
        if digest_of(contents) == self._helpers.digest:
            return
        # Files that were loaded with the previous version may still import from it, until they are loaded again.
        if self._previous_helpers is not None:
            self._previous_helpers.close()
        self._previous_helpers, self._helpers = self._helpers, HelperModules(contents)

    def _digest(self, content: bytes) -> bytes:
        shared = self._helpers.digest if imports_helpers(content) else b""
        return hashlib.sha256(content).digest() + shared

    def _loaded(self, path: Path, content: bytes, digest: bytes) -> FileChange:
        accepted = self._accepted.get(path)
        if accepted is not None and accepted.digest == digest:  # changed back to the accepted version
            return accepted
        try:
            module, plugins = plugin_files.load(path, content, self._helpers)
        except ConfigError as error:
            return FileChange(path, digest, error=error)
        return FileChange(path, digest, module, plugins)

    def plugins(self, changes: Iterable[FileChange] = ()) -> list[Registration]:
        """Return the plugins of all accepted files and of some changes, sorted by file."""
        files = {**self._accepted, **{each.path: each for each in changes}}
        return [plugin for path in sorted(files) for plugin in files[path].plugins]

    def accept(self, change: FileChange) -> None:
        """Accept a change; refused files are tried again."""
        self.retry_refused()
        before = self._accepted.pop(change.path, None)
        if before is not None and before.module != change.module:
            plugin_files.unload(before.module)
        if change.is_removal:
            self._digests.pop(change.path, None)
        else:
            self._accepted[change.path] = change
            self._digests[change.path] = change.digest

    def refuse(self, change: FileChange) -> None:
        """Refuse a change; the accepted version stays."""
        self._digests[change.path] = change.digest
        if change.module and change is not self._accepted.get(change.path):
            plugin_files.unload(change.module)

    def retry_refused(self) -> None:
        """Try refused files again at the next scan."""
        self._digests = {path: each.digest for path, each in self._accepted.items()}


class PluginDirectories:
    """Several directories; the plugins of an earlier one come first."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Take the directories in their order, without duplicates."""
        self._directories: Final = [PluginDirectory(path) for path in dict.fromkeys(paths)]

    def scan(self) -> list[FileChange]:
        """Return the changes of all directories; without any this only reads the files.

        Raises:
            ConfigError: A directory cannot be read; nothing was loaded.
        """
        read = [(each, each.read()) for each in self._directories]
        return [change for each, files in read for change in each.changes(files)]

    def plugins(self, changes: Iterable[FileChange] = ()) -> list[Registration]:
        """Return the plugins of all accepted files and of some changes."""
        changes = list(changes)
        return [
            plugin
            for each in self._directories
            for plugin in each.plugins(change for change in changes if change.path.parent == each.path)
        ]

    def accept(self, change: FileChange) -> None:
        """Accept a change; refused files of all directories are tried again."""
        for each in self._directories:
            each.retry_refused()
        self._of(change).accept(change)

    def refuse(self, change: FileChange) -> None:
        """Refuse a change; the accepted version stays."""
        self._of(change).refuse(change)

    def _of(self, change: FileChange) -> PluginDirectory:
        return next(each for each in self._directories if each.path == change.path.parent)
