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


class PluginDirectories:
    """The files of several directories; the plugins of an earlier one come first."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Take the directories in their order, without duplicates."""
        self._helpers = dict.fromkeys(paths, NO_HELPERS)
        self._previous_helpers: dict[Path, HelperModules] = {}
        self._accepted: dict[Path, FileChange] = {}
        self._digests: dict[Path, bytes] = {}

    def scan(self) -> list[FileChange]:
        """Return the files that differ from the last accepted or refused version; removals first, for each directory.

        Without changes this only reads the files.

        Raises:
            ConfigError: A directory cannot be read; nothing was loaded.
        """
        read = {folder: _contents_of(folder) for folder in self._helpers}
        return [change for folder, files in read.items() for change in self._changes(folder, files)]

    def _changes(self, folder: Path, files: Mapping[Path, bytes]) -> list[FileChange]:
        contents = {path: content for path, content in files.items() if not is_helper(path)}
        self._update_helpers(folder, {path: content for path, content in files.items() if is_helper(path)})
        deleted = [path for path in self._digests if path.parent == folder and path not in contents]
        for path in deleted:
            if path not in self._accepted:
                del self._digests[path]
        gone = [path for path in self._accepted if path in deleted and self._digests[path] != _REMOVED]
        changed = [
            (path, content, digest)
            for path, content in contents.items()
            if (digest := self._digest(path, content)) != self._digests.get(path)
        ]
        return [
            *(FileChange(path, _REMOVED) for path in gone),
            *(self._loaded(path, content, digest) for path, content, digest in changed),
        ]

    def _update_helpers(self, folder: Path, contents: Mapping[Path, bytes]) -> None:
        current = self._helpers[folder]
        if digest_of(contents) == current.digest:
            return
        # Files that were loaded with the previous version may still import from it, until they are loaded again.
        previous = self._previous_helpers.get(folder)
        if previous is not None:
            previous.close()
        self._previous_helpers[folder], self._helpers[folder] = current, HelperModules(contents)

    def _digest(self, path: Path, content: bytes) -> bytes:
        shared = self._helpers[path.parent].digest if imports_helpers(content) else b""
        return hashlib.sha256(content).digest() + shared

    def _loaded(self, path: Path, content: bytes, digest: bytes) -> FileChange:
        accepted = self._accepted.get(path)
        if accepted is not None and accepted.digest == digest:  # changed back to the accepted version
            return accepted
        try:
            module, plugins = plugin_files.load(path, content, self._helpers[path.parent])
        except ConfigError as error:
            return FileChange(path, digest, error=error)
        return FileChange(path, digest, module, plugins)

    def plugins(self, changes: Iterable[FileChange] = ()) -> list[Registration]:
        """Return the plugins of all accepted files and of some changes, sorted by directory and file."""
        files = {**self._accepted, **{change.path: change for change in changes}}
        return [
            plugin
            for folder in self._helpers
            for path in sorted(files)
            if path.parent == folder
            for plugin in files[path].plugins
        ]

    def accept(self, change: FileChange) -> None:
        """Accept a change; refused files are tried again."""
        self._digests = {path: file.digest for path, file in self._accepted.items()}
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


def _contents_of(folder: Path) -> dict[Path, bytes]:
    """Return the contents of the files of a directory by path; ConfigError if it cannot be read."""
    try:
        return {
            path: path.read_bytes()
            for path in sorted(folder.iterdir())
            if path.suffix == ".py" and not path.name.startswith(".") and path.is_file()
        }
    except OSError as error:
        raise ConfigError([ConfigProblem(str(folder), f"cannot be read: {error.strerror}")]) from error
