"""docs/examples/plugins keeps its promises: one short file each, and a configuration that works."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from karmada_scheduler.testing import profiles
from tests.docs.conftest import EXAMPLES, PLUGINS

FILES = sorted(PLUGINS.glob("*.py"))


def test_there_are_thirteen_examples() -> None:
    assert len(FILES) == 13


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_plugin_is_one_short_file_with_a_docstring(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= (40 if path.name == "cluster_caps.py" else 55)
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_configuration_next_to_a_plugin_enables_only_that_plugin(path: Path) -> None:
    [framework] = profiles(path.with_suffix(".yaml"), plugin_dir=PLUGINS).values()
    ours = [each for each in framework.plugins.unique if inspect.getfile(type(each)) == str(path)]
    others = [
        each
        for each in framework.plugins.unique
        if not type(each).__module__.startswith("karmada_scheduler_plugins")
    ]
    assert len(ours) == 1
    assert others == ours


def test_the_plugins_of_the_nights_work() -> None:
    [framework] = profiles(plugin_dir=EXAMPLES / "nights").values()
    assert {"MoveAtNight", "ReturnAtNight"} <= {each.name for each in framework.plugins.unique}
