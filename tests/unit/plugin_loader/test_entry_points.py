"""Installed packages offer plugins by entry points."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.plugin_loader import installed

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
