"""Files whose names begin with an underscore: what other plugin files may import."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler_plugins.registry import in_tree
from tests.unit.plugin_loader.conftest import Write, source

HELPER = "seen = []\n\ndef price():\n    seen.append(1)\n    return {price}\n"


def user(name: str, statement: str = "from ._prices import price, seen") -> str:
    return f"{statement}\n\nclass {name}:\n    name = '{name}'\n    def score(self, c):\n        return price()\n"


def setup_of(folder: Path) -> PluginSetup:
    return PluginSetup(in_tree(FeatureGates()), handle_for=PluginHandle, directories=[folder], packages=list)


def plugin(setup: PluginSetup, name: str) -> Any:
    return setup.built.made["default-scheduler", name].plugin


def test_a_helper_file_has_no_plugins_and_can_be_imported(folder: Path, write: Write) -> None:
    write("_prices.py", HELPER.format(price=3))
    write("a.py", user("A"))
    setup = setup_of(folder)
    setup.start()
    assert plugin(setup, "A").score(None) == 3


def test_all_files_share_one_copy_and_helpers_import_each_other(folder: Path, write: Write) -> None:
    write("_base.py", "base = 40\n")
    write("_prices.py", "from ._base import base\n" + HELPER.format(price="base + 2"))
    write("a.py", user("A"))
    write("b.py", user("B"))
    setup = setup_of(folder)
    setup.start()
    assert (plugin(setup, "A").score(None), plugin(setup, "B").score(None)) == (42, 42)
    assert plugin(setup, "B").score.__globals__["seen"] == [1, 1]


def test_a_changed_helper_reloads_the_files_that_import_it_and_no_other(folder: Path, write: Write) -> None:
    write("_prices.py", HELPER.format(price=3))
    write("a.py", user("A"))
    write("c.py", source("C"))
    setup = setup_of(folder)
    setup.start()
    old, other = plugin(setup, "A"), plugin(setup, "C")
    write("_prices.py", HELPER.format(price=5))
    assert setup.reload() is not None
    assert plugin(setup, "A").score(None) == 5
    assert plugin(setup, "C") is other
    assert old.score(None) == 3, "the version that is in use stays unchanged"
    assert setup.reload() is None


def test_a_broken_helper_file_is_refused_and_the_previous_version_stays(
    folder: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    write("_prices.py", HELPER.format(price=3))
    write("a.py", user("A"))
    setup = setup_of(folder)
    setup.start()
    write("_prices.py", "def price(:\n")
    assert setup.reload() is None
    assert "Refused a new version of a file" in caplog.text
    assert plugin(setup, "A").score(None) == 3
    write("_prices.py", HELPER.format(price=7))
    assert setup.reload() is not None
    assert plugin(setup, "A").score(None) == 7


def test_an_import_without_a_dot_is_an_error_with_the_right_statement(folder: Path, write: Write) -> None:
    write("_prices.py", HELPER.format(price=3))
    write("a.py", user("A", "from _prices import price, seen"))
    with pytest.raises(ConfigError) as refused:
        setup_of(folder).start()
    [problem] = refused.value.problems
    assert problem.text == "ModuleNotFoundError: No module named '_prices'; write: from . import _prices"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("from ._price import price", 'ModuleNotFoundError: no _price.py in {}; did you mean "_prices"?'),
        ("from . import _price", 'ImportError: no _price.py in {}; did you mean "_prices"?'),
        ("from .common import price", "ModuleNotFoundError: no common.py in {}; begin a helper file's name with an underscore"),
        ("from ._prices import cost", "ImportError: cannot import name 'cost' from '_prices' ({}/_prices.py)"),
    ],
)  # fmt: skip
def test_an_import_that_fails_is_reported_without_internal_names(
    folder: Path, write: Write, written: str, expected: str
) -> None:
    write("_prices.py", HELPER.format(price=3))
    write("a.py", user("A", written))
    with pytest.raises(ConfigError) as refused:
        setup_of(folder).start()
    [problem] = refused.value.problems
    assert problem.text == expected.format(folder)
