"""The shape of the repository, where a mistake would only be noticed somewhere else."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


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
