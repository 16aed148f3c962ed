"""Prints which files differ between two versions of Karmada: ``make karmada-diff FROM=1.18.2 TO=1.19.0``.

Compared are the files that karmada-scheduler is built of, feature gates, the estimator's protocol, CRDs and webhooks. ``*`` marks
what a comment of ours names as a source.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tools.controlplane import golang
from tools.controlplane.binaries import KARMADA, TOOLS, BuildError, cache_folder

ROOT: Final = Path(__file__).parents[1]
_MORE: Final = (
    "pkg/features/features.go",
    "pkg/estimator/pb/*.proto",
    "charts/karmada/_crds/bases/**/*.yaml",
    "artifacts/deploy/webhook-configuration.yaml",
)
_IMPORT: Final = re.compile(rf'"{re.escape(KARMADA)}/([^"]+)"')
_NAMED: Final = re.compile(r"\b((?:pkg|cmd)/[\w/.-]+?)(?=[ ,;:)]|\.?$|\.\s)")


def fetched(version: str) -> Path:
    """Return the folder with the source of a version, which Go downloads if it is not in its cache; BuildError without it."""
    try:
        go = golang.find(
            wanted=golang.wanted_version(TOOLS / "go.mod"), cache=cache_folder(), say=lambda _: None
        )
    except golang.GoError as error:
        raise BuildError(str(error)) from error
    command = [str(go.executable), "mod", "download", "-json", f"{KARMADA}@v{version.removeprefix('v')}"]
    done = subprocess.run(
        command, cwd=TOOLS, env=go.environment(), capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    if "Dir" not in found:
        raise BuildError(f"Karmada {version} cannot be downloaded: {found.get('Error') or done.stderr}")
    return Path(found["Dir"])


def compared(folder: Path, command: str = "cmd/scheduler") -> dict[str, str]:
    """Return path and text of the Go files that a command is built of, tests left out, and of what else is compared."""
    packages, due = set[str](), [command]
    files = {str(path.relative_to(folder)): path.read_text() for more in _MORE for path in folder.glob(more)}
    while due:
        package = due.pop()
        if package in packages:
            continue
        packages.add(package)
        for path in (folder / package).glob("*.go"):
            if not path.name.endswith("_test.go"):
                files[f"{package}/{path.name}"] = text = path.read_text()
                due += _IMPORT.findall(text)
    return files


def named_in_comments() -> set[str]:
    """Return the files and folders of Karmada that comments of the product name as a source."""
    sources = (
        " ".join(source.split())
        for package in ("operator", "plugins", "advisor")
        for path in (ROOT / package).glob("**/*.py")
        for source in re.findall(r"Source: karmada v[\s\S]*?(?:\n\n|\"\"\")", path.read_text())
    )
    return {name for source in sources for name in _NAMED.findall(source)}


def lines(
    old: dict[str, str], new: dict[str, str], named: Iterable[str], *, with_diffs: bool
) -> Iterator[str]:
    """Yield a line for each file that was added (+), removed (-) or changed (~), and maybe its diff."""
    prefixes = tuple(named)
    for name in sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)):
        sign = "+" if name not in old else "-" if name not in new else "~"
        yield f"{sign} {name}{' *' if name.startswith(prefixes) else ''}"
        if with_diffs:
            before, after = (files.get(name, "").splitlines() for files in (old, new))
            yield from difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(prog="make karmada-diff", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", metavar="FROM", help="a version such as 1.17.1")
    parser.add_argument("after", metavar="TO", help="a version such as 1.18.2")
    parser.add_argument("--diffs", action="store_true", help="print the differences of the files, too")
    options = parser.parse_args()
    try:
        old, new = compared(fetched(options.before)), compared(fetched(options.after))
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines(old, new, named_in_comments(), with_diffs=options.diffs)) or "nothing differs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
