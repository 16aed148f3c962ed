"""The shape of the repository, where a mistake would only be noticed somewhere else."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("operator", "advisor", "plugins")
NAMED_BY_KARMADA = {"ClusterAffinity", "SpreadConstraint", "WorkloadAffinity"}
"""A plugin has the name that Karmada gives it, and the field of the API that it reads has the same name."""


@pytest.mark.parametrize(
    ("folder", "package"),
    [
        ("operator", "karmada_scheduler"),
        ("advisor", "karmada_advisor"),
        ("plugins", "karmada_scheduler_plugins"),
    ],
)
def test_a_source_root_holds_one_package_and_no_modules(folder: str, package: str) -> None:
    found = {path.name for path in (ROOT / folder).iterdir() if path.name != "__pycache__"}
    assert found == {package}


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
