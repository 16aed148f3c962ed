"""Another Python than those that are supported, and dependencies of another platform: one sentence, no traceback."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from karmada_scheduler.__main__ import _of_a_dependency

PACKAGE = Path(__file__).parents[3] / "plugins" / "karmada_scheduler"
_OLD = """
import runpy, sys
sys.version_info = (3, 10, 13, "final", 0)
runpy.run_module("karmada_scheduler", run_name="__main__")
"""

_WITHOUT = """
import runpy, sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))
runpy.run_module("karmada_scheduler", run_name="__main__")
"""
_FLEET = PACKAGE.parents[1] / "docs" / "examples" / "fleet"
_FILES = (f"--clusters={_FLEET / 'clusters.yaml'}", f"--bindings={_FLEET / 'bindings.yaml'}")


@pytest.mark.parametrize("module", ["__init__.py", "__main__.py"])
def test_an_old_python_can_read_as_far_as_the_sentence(module: str) -> None:
    ast.parse((PACKAGE / module).read_text(), feature_version=(3, 6))


def test_an_old_python_is_named_with_the_one_that_is_needed() -> None:
    ran = subprocess.run([sys.executable, "-c", _OLD], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "Error: karmada-pyscheduler needs Python 3.11 or newer, and this is 3.10: install it for a newer one, or use the image\n"
    )


@pytest.mark.parametrize(
    ("module", "text"),
    [("orjson.py", "import orjson_of_another_processor"), ("uvloop.so", "ELF of another processor")],
)
def test_a_dependency_of_another_platform_is_named_with_the_remedy(
    module: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / module).write_text(text)
    (tmp_path / "kubeconfig").write_text("{}")
    command = [sys.executable, "-m", "karmada_scheduler", f"--kubeconfig={tmp_path / 'kubeconfig'}"]
    found = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": found}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    [line] = ran.stderr.splitlines()
    assert line.startswith("Error: a dependency is missing, or compiled for another Python or processor (")
    assert module.partition(".")[0] in line
    assert line.endswith(f"with `{sys.executable} -m pip install --force-reinstall`")


@pytest.mark.parametrize(
    ("absent", "arguments", "text"),
    [
        (("karmada_advisor",), ("explain",), "this needs the distribution in advisor"),
        (("karmada_pyscheduler",), ("web",), "this needs the distribution in operator"),
        (("karmada_pyscheduler", "uvloop"), ("web",), "this needs the distribution in operator"),
        (("karmada_pyscheduler", "numpy"), ("simulate", *_FILES), "a dependency is missing"),
    ],
    ids=["no adviser", "no process", "no process and no needs of it", "another dependency"],
)
def test_a_distribution_is_named_only_if_it_is_what_is_missing(
    absent: tuple[str, ...], arguments: tuple[str, ...], text: str
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT, ",".join(absent), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    [line] = ran.stderr.splitlines()
    assert line.startswith(f"Error: {text}")


def test_the_error_of_the_dependency_is_reported_and_not_the_page_that_numpy_makes_of_it() -> None:
    missing = ModuleNotFoundError("No module named 'numpy._core'", name="numpy._core")
    page = ImportError("IMPORTANT: PLEASE READ THIS")
    page.__cause__ = missing
    assert _of_a_dependency(page) is missing


def test_a_mistake_of_the_product_keeps_its_traceback() -> None:
    assert _of_a_dependency(ImportError("no such name", name="karmada_scheduler.api")) is None
