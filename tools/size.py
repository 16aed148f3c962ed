"""Lines of code, and words of documentation: ``python -m tools.size [REVISION]``, or ``make size ARGS=REVISION``.

A line counts if it holds a token that is no comment and no docstring. Generated modules do not count.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_PARTS: Final = {
    "product": ("operator/", "advisor/", "plugins/"),
    "tools": ("tools/",),
    "tests": ("tests/",),
}
WORDS: Final = "words of docs"
_BLANK: Final = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(source: str) -> int:
    """Return the number of lines of a module that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=last):
                lines.difference_update(range(first, (last or first) + 1))
    return len(lines)


def sizes(files: Mapping[str, str]) -> dict[str, int]:
    """Return the lines of code by part, and the words of the pages that people read.

    Pages are README.md, CONTRIBUTING.md and those directly in docs: decisions and measurements are looked up.
    """
    totals = dict.fromkeys((*_PARTS, WORDS), 0)
    for path, text in files.items():
        if path in ("README.md", "CONTRIBUTING.md") or (path.startswith("docs/") and path.count("/") == 1):
            totals[WORDS] += len(text.split())
        elif path.endswith(".py") and not path.endswith("_pb2.py"):
            for part, folders in _PARTS.items():
                totals[part] += code_lines(text) if path.startswith(folders) else 0
    return totals


def files_of(revision: str | None) -> dict[str, str]:
    """Return modules and pages, by path, of a revision or of the files on disk that git tracks."""
    if revision is None:
        return {
            path: _on_disk(path)
            for path in _git("ls-files").decode().splitlines()
            if path.endswith((".py", ".md"))
        }
    with tarfile.open(fileobj=io.BytesIO(_git("archive", revision))) as archive:
        return {
            member.name: content.read().decode()
            for member in archive
            if member.name.endswith((".py", ".md")) and (content := archive.extractfile(member)) is not None
        }


def _on_disk(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:  # deleted, and not yet committed
        return ""


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout


def main(arguments: list[str]) -> None:
    now = sizes(files_of(None))
    before = sizes(files_of(arguments[0])) if arguments else now
    for name, count in now.items():
        difference = f"  {count - before[name]:+,}" if arguments else ""
        print(f"{name:<14}{count:>8,}{difference}")


if __name__ == "__main__":
    main(sys.argv[1:])
