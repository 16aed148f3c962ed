"""The shape of the repository, where a mistake would only be noticed somewhere else."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from karmada_scheduler.config.features import KNOWN
from karmada_scheduler_plugins.registry import IN_TREE, MANDATORY, OPT_IN

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("operator", "advisor", "plugins")
NAMED_BY_KARMADA = {"ClusterAffinity", "SpreadConstraint", "WorkloadAffinity"}
"""A plugin has the name that Karmada gives it, and the field of the API that it reads has the same name."""


@pytest.mark.parametrize(
    ("folder", "packages"),
    [
        ("operator", {"karmada_pyscheduler"}),
        ("advisor", {"karmada_advisor"}),
        ("plugins", {"karmada_scheduler", "karmada_scheduler_plugins"}),
    ],
)
def test_a_source_root_holds_its_packages_their_pyproject_and_no_modules(
    folder: str, packages: set[str]
) -> None:
    found = {path.name for path in (ROOT / folder).iterdir() if path.name != "__pycache__"}
    assert found == packages | {"pyproject.toml"}


def test_the_standard_library_s_operator_is_not_shadowed_at_the_root() -> None:
    code = "import operator, collections; print(operator.__file__)"
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not output.stdout.startswith(str(ROOT))


def test_no_two_classes_of_the_product_have_the_same_name() -> None:
    counts = Counter(
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    )
    assert {name for name, count in counts.items() if count > 1} == NAMED_BY_KARMADA


def test_the_adviser_knows_no_plugin_of_this_repository_by_its_name() -> None:
    """What a plugin compared, and what would change its answer, is said by the plugin."""
    folder = ROOT / "advisor"
    texts = {path: path.read_text() for path in folder.rglob("*") if path.suffix in {".py", ".html", ".js"}}
    words = {word for text in texts.values() for word in re.findall(r"\w+", text)}
    assert words & (IN_TREE.keys() | MANDATORY.keys() | OPT_IN.keys()) <= NAMED_BY_KARMADA
    literals = {
        word
        for path, text in texts.items()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in re.findall(r"\w+", node.value)
    }
    assert literals & NAMED_BY_KARMADA <= KNOWN.keys()
    modules = {
        module for text in texts.values() for module in re.findall(r"karmada_scheduler_plugins\.(\w+)", text)
    }
    assert modules == {"placement_edits", "registry", "selector_edits"}
