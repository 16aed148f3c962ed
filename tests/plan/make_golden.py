"""Writes the golden files again: ``python -m tests.plan.make_golden``; look at the differences before you commit them."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path

from karmada_scheduler.cli import main, plan
from tests.plan import fleet
from tests.plan.conftest import NOW, edited
from tests.plan.test_command import CHANGES, GOLDEN, SHORT


def write() -> None:
    """Write all of them."""
    plan.now = lambda: NOW
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        clusters = fleet.clusters()
        edited(folder / "change")
        files = fleet.write(
            folder,
            clusters=[each.manifest() for each in clusters],
            bindings=fleet.placed(fleet.bindings(), clusters),
            policies=fleet.policies(),
        )
        os.chdir(folder)
        for name, flags in CHANGES.items():
            for width in ("80", "100", "160"):
                for colour, suffix in (("never", ""), ("always", "-colour")):
                    output = _output(*files, *flags, "--width", width, "--color", colour)
                    (GOLDEN / f"{name}-{width}{suffix}.txt").write_text(output)
            for output, suffix in (("markdown", "md"), ("json", "json"), ("yaml", "yaml")):
                if output == "markdown" or name in SHORT:
                    (GOLDEN / f"{name}.{suffix}").write_text(_output(*files, *flags, "-o", output))


def _output(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main.main(["plan", *arguments])
    return out.getvalue()


if __name__ == "__main__":
    write()
