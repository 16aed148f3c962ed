"""The files of each ``--plugin-dir``: what is there, what changed, and which version of each file counts.

Nothing is replaced by itself: ``look`` loads what changed, and who builds profiles from it says with
``accept`` or ``refuse`` what becomes of it. A file that was refused is tried again when it changes, or when
something else in the directory does.

Files whose names begin with an underscore hold no plugins; the others may import them (``helper_modules``).

A mounted ConfigMap is replaced as a whole: its files are links through ``..data``, a hidden link that is
swapped. Contents are compared, so it does not matter how a file changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

_GONE: Final = b""


@dataclass(frozen=True, slots=True)
class Change:
    """A new version of a file.

    Attributes:
        path: The file.
        digest: Of its content; empty if the file is gone.
        module: The module that was made of it, "" for none.
        plugins: What is in it.
        error: Why it cannot be used, with what it raised.
    """

    path: Path
    digest: bytes
    module: str = ""
    plugins: tuple[Registration, ...] = ()
    error: ConfigError | None = None

    @property
    def is_removal(self) -> bool:
        """Whether the file is gone."""
        return self.digest == _GONE


class PluginDirectory:
    """The versions of files that count, by path."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._live: dict[Path, Change] = {}
        self._settled: dict[Path, bytes] = {}
        self._helpers = NO_HELPERS
        self._helpers_before: HelperModules | None = None

    def look(self) -> list[Change]:
        """Load what is different from what was accepted or refused last; removals first.

        Cheap when nothing changed: it lists the directory and reads its files.

        Raises:
            ConfigError: The directory cannot be read; all that was accepted stays.
        """
        return self.changes(self.read())

    def read(self) -> dict[Path, bytes]:
        """Return the contents of all files by path; raises as ``look`` does."""
        try:
            return dict(self._contents())
        except OSError as error:
            raise ConfigError([ConfigProblem(str(self.path), f"cannot be read: {error.strerror}")]) from error

    def changes(self, files: Mapping[Path, bytes]) -> list[Change]:
        """Load what is different in the files that were read; see ``look``."""
        contents = {path: content for path, content in files.items() if not is_helper(path)}
        self._follow_helpers({path: content for path, content in files.items() if is_helper(path)})
        gone = [path for path in self._live if path not in contents and self._settled[path] != _GONE]
        for path in self._settled.keys() - contents.keys() - self._live.keys():
            del self._settled[path]
        changed = [
            (path, content, digest)
            for path, content in contents.items()
            if (digest := self._digest(content)) != self._settled.get(path)
        ]
        return [
            *(Change(path, _GONE) for path in gone),
            *(self._loaded(path, content, digest) for path, content, digest in changed),
        ]

    def _follow_helpers(self, contents: Mapping[Path, bytes]) -> None:
        if digest_of(contents) == self._helpers.digest:
            return
        # Files that are loaded with the state before may still import from it, until they are loaded anew.
        if self._helpers_before is not None:
            self._helpers_before.close()
        self._helpers_before, self._helpers = self._helpers, HelperModules(contents)

    def _digest(self, content: bytes) -> bytes:
        shared = self._helpers.digest if imports_helpers(content) else b""
        return hashlib.sha256(content).digest() + shared

    def _contents(self) -> Iterable[tuple[Path, bytes]]:
        for path in sorted(self.path.iterdir()):
            if path.suffix == ".py" and not path.name.startswith(".") and path.is_file():
                yield path, path.read_bytes()

    def _loaded(self, path: Path, content: bytes, digest: bytes) -> Change:
        live = self._live.get(path)
        if live is not None and live.digest == digest:  # back to what counts
            return live
        try:
            module, plugins = plugin_files.load(path, content, self._helpers)
        except ConfigError as error:
            return Change(path, digest, error=error)
        return Change(path, digest, module, plugins)

    def plugins(self, changes: Iterable[Change] = ()) -> list[Registration]:
        """Return all plugins as they would be with some changes, sorted by file."""
        files = {**self._live, **{each.path: each for each in changes}}
        return [plugin for path in sorted(files) for plugin in files[path].plugins]

    def accept(self, change: Change) -> None:
        """Let a change count from now on; what was refused gets another chance."""
        self.reconsider()
        before = self._live.pop(change.path, None)
        if before is not None and before.module != change.module:
            plugin_files.forget(before.module)
        if change.is_removal:
            self._settled.pop(change.path, None)
        else:
            self._live[change.path] = change
            self._settled[change.path] = change.digest

    def refuse(self, change: Change) -> None:
        """Leave a change aside; the version before goes on counting."""
        self._settled[change.path] = change.digest
        if change.module and change is not self._live.get(change.path):
            plugin_files.forget(change.module)

    def reconsider(self) -> None:
        """Give what was refused another chance at the next look."""
        self._settled = {path: each.digest for path, each in self._live.items()}

    @property
    def live(self) -> Mapping[Path, Change]:
        """The versions that count."""
        return self._live


class PluginDirectories:
    """Several directories as if they were one; the plugins of an earlier one come first."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Take the directories in their order; one that is named twice counts once."""
        self._directories: Final = [PluginDirectory(path) for path in dict.fromkeys(paths)]

    def look(self) -> list[Change]:
        """Load what is different in any of them; raises as one does, and then has loaded nothing."""
        read = [(each, each.read()) for each in self._directories]
        return [change for each, files in read for change in each.changes(files)]

    def plugins(self, changes: Iterable[Change] = ()) -> list[Registration]:
        """Return all plugins as they would be with some changes."""
        changes = list(changes)
        return [
            plugin
            for each in self._directories
            for plugin in each.plugins(change for change in changes if change.path.parent == each.path)
        ]

    def accept(self, change: Change) -> None:
        """Let a change count from now on; what was refused in any of them gets another chance."""
        for each in self._directories:
            each.reconsider()
        self._of(change).accept(change)

    def refuse(self, change: Change) -> None:
        """Leave a change aside; the version before goes on counting."""
        self._of(change).refuse(change)

    def _of(self, change: Change) -> PluginDirectory:
        return next(each for each in self._directories if each.path == change.path.parent)
