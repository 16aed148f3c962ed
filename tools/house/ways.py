"""The way of an answer: the functions of the product that run, their files, and calls from one package into another."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from karmada_scheduler.command import main

from .sources import PRODUCT

ROOT: Final = Path(__file__).parents[2]
FLEET: Final = ROOT / "docs" / "examples" / "fleet"


def way_of(arguments: Sequence[str]) -> tuple[int, int]:
    """Answer a command from the files of docs/examples/fleet, and return what ran.

    Returns:
        The number of files with a function that ran, where bodies of modules and classes do not count, and the number of
        calls from a function of one package of the product into another.
    """
    files: set[str] = set()
    crossings = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal crossings
        package = _package(frame.f_code)
        if event != "call" or package is None or not frame.f_code.co_flags & CO_OPTIMIZED:
            return
        files.add(frame.f_code.co_filename)
        caller = _package(frame.f_back.f_code) if frame.f_back else None
        crossings += caller is not None and caller != package

    given = [f"--{name}={FLEET / name}.yaml" for name in ("clusters", "bindings")]
    sys.setprofile(count)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            main([*arguments, *given])
    finally:
        sys.setprofile(None)
    return len(files), crossings


def _package(code: CodeType) -> str | None:
    """Return the package of a function of the product, as its first two folders; None for any other function."""
    folder, _, path = code.co_filename.removeprefix(f"{ROOT}/").partition("/")
    return "/".join(path.split("/")[:2]) if folder in PRODUCT else None
