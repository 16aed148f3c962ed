"""Installs the packages of docs/examples into a folder that a process can be given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def install(*names: str, into: Path) -> dict[str, str]:
    """Install examples as pip does, and return an environment that has them."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    sources = [str(EXAMPLES / name) for name in names]
    subprocess.run([*pip, *offline, "--target", str(into), *sources], check=True)
    return {"PYTHONPATH": os.pathsep.join([str(into), *filter(None, [os.environ.get("PYTHONPATH")])])}
