"""Plugins of a file, and the errors of a file that cannot be used."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.framework import load_timeout
from karmada_scheduler.plugin_loader import plugin_files
from karmada_scheduler.plugin_loader.plugin_files import load
from tests.unit.plugin_loader.conftest import source

PATH = Path("/plugins/cost.py")


def plugins(text: str, path: Path = PATH) -> list[Any]:
    return list(load(path, text.encode())[1])


def problems(text: str) -> list[ConfigProblem]:
    before = set(sys.modules)
    with pytest.raises(ConfigError) as refused:
        load(PATH, text.encode())
    assert set(sys.modules) - before == set()
    return list(refused.value.problems)


def test_classes_with_a_name_and_an_extension_point_are_plugins_in_the_order_of_the_file() -> None:
    text = source("Zeta", doc="Last of all.\n\n    Really.") + source("Alpha") + "class Helper: pass\n"
    [zeta, alpha] = plugins(text)
    assert (zeta.name, zeta.origin, zeta.doc, zeta.mandatory) == (
        "Zeta",
        "/plugins/cost.py",
        "Last of all.",
        False,
    )
    assert alpha.name == "Alpha"
    assert zeta.factory().score(None) == 1


def test_imported_and_private_classes_are_no_plugins() -> None:
    text = (
        "from karmada_scheduler_plugins.default_plugins import ClusterLocality\n"
        + source("Cost")
        + "class _Base:\n    name = 'Base'\n    def score(self, context): return 0\n"
        + "class Abstract(__import__('abc').ABC):\n    name = 'Abstract'\n"
        + "    @__import__('abc').abstractmethod\n    def score(self, context): ...\n"
    )
    assert [plugin.name for plugin in plugins(text)] == ["Cost"]


def test_a_file_may_declare_its_plugins() -> None:
    text = source("Cost") + "PLUGINS = {'Cost': Cost, 'Made': lambda args: None}\n"
    assert [plugin.name for plugin in plugins(text)] == ["Cost", "Made"]


def test_a_file_may_use_dataclasses_with_postponed_annotations() -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass, KW_ONLY\n"
        "@dataclass\nclass Args:\n    file: str\n    _: KW_ONLY\n    weight: int = 1\n" + source("Cost")
    )
    assert [plugin.name for plugin in plugins(text)] == ["Cost"]


def test_every_version_is_a_module_of_its_own() -> None:
    first, [old] = load(PATH, source("Cost", score=1).encode())
    second, [new] = load(PATH, source("Cost", score=2).encode())
    assert first != second
    assert (old.factory().score(None), new.factory().score(None)) == (1, 2)  # type: ignore[attr-defined]
    assert {first, second} <= set(sys.modules)
    plugin_files.unload(first)
    assert first not in sys.modules
    assert old.factory().score(None) == 1  # type: ignore[attr-defined]


def test_loading_a_file_writes_no_bytecode_and_leaves_sys_path(tmp_path: Path) -> None:
    path, before = tmp_path / "cost.py", list(sys.path)
    path.write_text(source("Cost"))
    plugins(path.read_text(), path)
    assert sys.path == before
    assert [each.name for each in tmp_path.iterdir()] == ["cost.py"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "has no plugin: no class with a name and an extension point; "
                     "begin the name of a helper file with an underscore", id="empty"),
        pytest.param("class A:\n  def score(self, c): ...\n",
                     "has no plugin: no class with a name and an extension point; A has score and no name", id="nameless"),
        pytest.param("class A:\n  name='A'\n  def fliter(self, c): ...\n",
                     "A: fliter is the method of no extension point; did you mean filter? (a helper's name may begin with an underscore)", id="misspelt"),
        pytest.param("def f(:\n", "SyntaxError: invalid syntax (cost.py, line 1)", id="syntax"),
        pytest.param("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'", id="import"),
        pytest.param("import sys; sys.exit(3)\n", "SystemExit: 3", id="exit"),
        pytest.param("PLUGINS = [1]\n", "PLUGINS must map names to classes or functions", id="declared-list"),
        pytest.param("PLUGINS = {'A': 1}\n", "PLUGINS['A'] must be a class or a function", id="declared-nonsense"),
        pytest.param("class A:\n  name='A'\n  async def score(self, c): ...\n",
                     "A: score must be a plain function: def score", id="async"),
        pytest.param("class A:\n  name='-A'\n  def score(self, c): ...\n",
                     "A: '-A' is no name for a plugin: letters, digits, dots, dashes, not a dash first", id="name"),
    ],
)  # fmt: skip
def test_a_file_with_problems_is_refused(text: str, expected: str) -> None:
    [problem] = problems(text)
    assert (problem.path, problem.text) == ("/plugins/cost.py", expected)


GOOD = "class Good:\n  name='Good'\n  def score(self, c): return 1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("class Bad:\n  name='Bad'\n  def fliter(self, c): ...\n",
                     "Bad: fliter is the method of no extension point; did you mean filter? "
                     "(a helper's name may begin with an underscore)", id="misspelt"),
        pytest.param("class Bad:\n  name='Bad'\n  def reserve(self, c): ...\n",
                     "Bad: has reserve but no unreserve, and is called for neither", id="reserve alone"),
        pytest.param("class Bad:\n  name='Bad'\n  def filter(self, c): ...\n  def add_binding(self, c): ...\n"
                     "  def remove_binding(self, c): ...\n",
                     "Bad: add_binding is called only for plugins with pre_filter\n"
                     "Bad: remove_binding is called only for plugins with pre_filter", id="no pre_filter"),
        pytest.param("import dataclasses\n@dataclasses.dataclass\nclass Bad:\n  name: str = 'Bad'\n"
                     "  def fliter(self, c): ...\n",
                     "Bad: fliter is the method of no extension point; did you mean filter? "
                     "(a helper's name may begin with an underscore)", id="dataclass"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["before", "after"])
def test_a_plugin_with_problems_makes_its_file_fail(text: str, expected: str, order: str) -> None:
    found = problems(GOOD + text if order == "after" else text + GOOD)
    assert "\n".join(each.text for each in found) == expected


@pytest.mark.parametrize("method", ["keep_out", "run"])
def test_a_class_with_a_name_and_no_extension_point_is_a_warning(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"{GOOD}class Book:\n  name = 'not a plugin'\n  def {method}(self, c): ...\n"
    assert [each.name for each in plugins(text)] == ["Good"]
    assert caplog.messages == [f"{PATH}: Book has a name and no extension point, so it is no plugin"]


@pytest.mark.parametrize(
    "helper",
    [
        "import dataclasses\n@dataclasses.dataclass\nclass Args:\n  name: str = ''\n",
        "class Base:\n  name = 'Base'\nclass Other(Base):\n  name = 'Other'\n  def filter(self, c): ...\n",
        "import abc\nclass Base(abc.ABC):\n  name = 'Base'\n  @abc.abstractmethod\n  def price(self): ...\n",
        "class _Base:\n  name = 'Base'\n  def fliter(self, c): ...\n",
        "class Unreachable(Exception):\n  name = 'x'\n",
        "import enum\nclass Zone(enum.Enum):\n  A = 'a'\n",
        "from typing import NamedTuple\nclass Row(NamedTuple):\n  name: str = ''\n",
        "from typing import Protocol\nclass Priced(Protocol):\n  name: str\n  def price(self) -> int: ...\n",
        "class Table:\n  def price(self): ...\n",
    ],
)
def test_helper_classes_are_accepted(helper: str, caplog: pytest.LogCaptureFixture) -> None:
    assert "Good" in [each.name for each in plugins(GOOD + helper)]
    assert not caplog.messages


def test_a_class_with_an_extension_point_and_no_name_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert [each.name for each in plugins(GOOD + "class Forgot:\n  def filter(self, c): ...\n")] == ["Good"]
    assert caplog.messages == [f"{PATH}: Forgot has filter and no name, so it is no plugin"]


def test_the_traceback_begins_in_the_file() -> None:
    [problem] = problems("def deep():\n    raise RuntimeError('no')\ndeep()\n")
    assert problem.cause is not None
    assert [(each.filename, each.lineno) for each in traceback.extract_tb(problem.cause.__traceback__)] == [
        ("/plugins/cost.py", 3),
        ("/plugins/cost.py", 2),
    ]


@pytest.mark.parametrize("text", ["while True: pass", "import time\ntime.sleep(3)"])
def test_a_file_that_hangs_is_reported_with_its_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_timeout, "LOAD_SECONDS", 0.1)
    [problem] = problems(text)
    line = len(text.splitlines())
    assert str(problem) == f"{PATH}: did not end within 0.1s; it is at line {line} of {PATH}, in <module>"
