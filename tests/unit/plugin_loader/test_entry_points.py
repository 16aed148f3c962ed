"""Installed packages offer plugins by entry points."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.plugin_loader.entry_points import installed, may_have_entry_points

Install = Callable[..., None]

MODULE = '''
class Cost:
    """Prefer cheap clusters."""
    name = "Cost"
    def score(self, context): return 1

def make(args):
    """Make something."""

answer = 42

class Wrong:
    name = "Other"
    async def filter(self, context): ...
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    def install(distribution: str, version: str, **entries: str) -> None:
        info = tmp_path / f"{distribution}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[karmada_scheduler.plugins]", *lines]))
        importlib.invalidate_caches()

    (tmp_path / "acme_plugins_for_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    sys.modules.pop("acme_plugins_for_test", None)


def test_entry_points_are_classes_or_functions(install: Install) -> None:
    install("zeta", "3", Zeta="acme_plugins_for_test:make")
    install("acme", "1.2", Made="acme_plugins_for_test:make", Cost="acme_plugins_for_test:Cost")
    assert [(plugin.name, plugin.origin, plugin.doc) for plugin in installed()] == [
        ("Cost", "acme 1.2", "Prefer cheap clusters."),
        ("Made", "acme 1.2", "Make something."),
        ("Zeta", "zeta 3", "Make something."),
    ]


def test_all_problems_of_packages_are_reported(install: Install) -> None:
    install(
        "acme",
        "1.2",
        Gone="acme_plugins_for_test:gone",
        Missing="acme_no_such_module:x",
        Number="acme_plugins_for_test:answer",
        Wrong="acme_plugins_for_test:Wrong",
    )
    with pytest.raises(ConfigError) as refused:
        installed()
    assert str(refused.value).splitlines() == [
        (
            "Gone = acme_plugins_for_test:gone (acme 1.2): AttributeError: "
            "module 'acme_plugins_for_test' has no attribute 'gone'"
        ),
        "Missing = acme_no_such_module:x (acme 1.2): ModuleNotFoundError: No module named 'acme_no_such_module'",
        "Number = acme_plugins_for_test:answer (acme 1.2): is neither a class nor a function that makes a plugin",
        "Wrong = acme_plugins_for_test:Wrong (acme 1.2): its name is 'Other', it is registered as 'Wrong'",
        ("Wrong = acme_plugins_for_test:Wrong (acme 1.2): filter must be a plain function: def filter"),
    ]


@pytest.mark.parametrize("name", ["acme-1.dist-info", "acme.egg-info", "acme-1.egg/EGG-INFO"])
def test_installed_packages_with_plugins_are_noticed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    assert not may_have_entry_points([str(tmp_path)])
    (tmp_path / name / "entry_points.txt").write_text("[console_scripts]\nx = y:z\n")
    assert not may_have_entry_points([str(tmp_path)])
    (tmp_path / name / "entry_points.txt").write_text("[karmada_scheduler.plugins]\nX = y:Z\n")
    assert may_have_entry_points([str(tmp_path / "missing"), str(tmp_path)])


@pytest.mark.parametrize("name", ["all.pyz", "lib/acme-1.egg"])
def test_plugins_may_be_in_archives(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"PK")
    folder = path if path.suffix == ".pyz" else path.parent
    assert may_have_entry_points([str(folder)])


def test_other_finders_may_find_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not may_have_entry_points([])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, metadata.DistributionFinder])
    assert may_have_entry_points([])
