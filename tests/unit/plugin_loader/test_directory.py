"""The files of --plugin-dir: what changed, and which version counts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.plugin_loader.directory import FileChange, PluginDirectories
from tests.unit.plugin_loader.conftest import Write, source


def accepted(directory: PluginDirectories) -> list[FileChange]:
    changes = directory.scan()
    for change in changes:
        assert change.error is None
        directory.accept(change)
    return changes


def names(directory: PluginDirectories) -> list[str]:
    return [plugin.name for plugin in directory.plugins()]


def test_files_are_loaded_once_in_the_order_of_their_names(folder: Path, write: Write) -> None:
    write("b.py", source("B"))
    write("a.py", source("A"))
    directory = PluginDirectories([folder])
    accepted(directory)
    assert names(directory) == ["A", "B"]
    assert directory.scan() == []


def test_hidden_files_folders_and_other_files_are_ignored(folder: Path, write: Write) -> None:
    write(".a.py", "broken(")
    write("README", "")
    (folder / "sub.py").mkdir()
    assert PluginDirectories([folder]).scan() == []


def test_a_change_of_content_is_seen_although_the_times_are_the_same(folder: Path, write: Write) -> None:
    path = write("a.py", source("A", score=1))
    directory = PluginDirectories([folder])
    accepted(directory)
    times = path.stat()
    write("a.py", source("A", score=2))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    accepted(directory)
    [plugin] = directory.plugins()
    assert plugin.factory().score(None) == 2  # type: ignore[attr-defined]


def test_another_modification_time_is_no_change(folder: Path, write: Write) -> None:
    path = write("a.py", source("A"))
    directory = PluginDirectories([folder])
    accepted(directory)
    os.utime(path, (0, 0))
    assert directory.scan() == []


def test_the_swap_of_a_mounted_config_map_is_a_change(folder: Path) -> None:
    for version in (1, 2):
        (folder / f"..v{version}").mkdir()
        (folder / f"..v{version}" / "a.py").write_text(source("A", score=version))
    (folder / "..data").symlink_to("..v1")
    (folder / "a.py").symlink_to("..data/a.py")
    directory = PluginDirectories([folder])
    accepted(directory)
    (folder / "..tmp").symlink_to("..v2")
    (folder / "..tmp").rename(folder / "..data")
    [change] = accepted(directory)
    assert change.path == folder / "a.py"
    assert directory.plugins()[0].factory().score(None) == 2  # type: ignore[attr-defined]


def test_the_plugins_of_a_deleted_file_are_removed(folder: Path, write: Write) -> None:
    path = write("a.py", source("A"))
    directory = PluginDirectories([folder])
    [change] = accepted(directory)
    path.unlink()
    [removal] = accepted(directory)
    assert removal.is_removal
    assert names(directory) == []
    assert change.module not in sys.modules
    assert directory.scan() == []


def test_a_refused_version_is_not_tried_again_and_the_previous_one_stays(folder: Path, write: Write) -> None:
    write("a.py", source("A", score=1))
    directory = PluginDirectories([folder])
    accepted(directory)
    write("a.py", "broken(")
    [change] = directory.scan()
    assert change.error is not None
    directory.refuse(change)
    assert directory.scan() == []
    assert names(directory) == ["A"]


def test_a_refused_version_is_tried_again_after_another_change(folder: Path, write: Write) -> None:
    write("a.py", "broken(")
    directory = PluginDirectories([folder])
    directory.refuse(directory.scan()[0])
    write("b.py", source("B"))
    [change] = directory.scan()
    directory.accept(change)
    assert [change.path.name for change in directory.scan()] == ["a.py"]


def test_after_a_refused_removal_the_plugins_stay(folder: Path, write: Write) -> None:
    path = write("a.py", source("A"))
    directory = PluginDirectories([folder])
    [change] = accepted(directory)
    path.unlink()
    directory.refuse(directory.scan()[0])
    assert directory.scan() == []
    assert names(directory) == ["A"]
    write("a.py", source("A"))
    assert directory.scan() == [change]


def test_a_directory_that_cannot_be_read_is_reported_and_changes_nothing(folder: Path, write: Write) -> None:
    write("a.py", source("A"))
    directory = PluginDirectories([folder])
    accepted(directory)
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        directory.scan()
    assert names(directory) == ["A"]
    folder.with_name("elsewhere").rename(folder)
    assert directory.scan() == []
