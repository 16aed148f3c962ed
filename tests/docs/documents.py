"""Reads the fenced blocks of a Markdown file: files to write, commands to run and what they should print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"(?:#|//) (\S+\.\w+)\n")


@dataclass(frozen=True, slots=True)
class Command:
    """A line after ``$``, and the lines that follow it."""

    line: str
    printed: tuple[str, ...]

    def missing_in(self, output: str) -> list[str]:
        """Return what was to be printed and was not; spaces do not matter, nor what follows on a line."""
        lines = [_squeezed(line) for line in output.splitlines()]
        return [
            wanted for wanted in self.printed if not any(line.startswith(_squeezed(wanted)) for line in lines)
        ]


@dataclass(frozen=True, slots=True)
class File:
    """A block whose first line names the file that it is."""

    name: str
    text: str

    @property
    def json(self) -> Any:
        """The document in it, without the line that names it."""
        return json.loads(self.text.partition("\n")[2])

    def write_into(self, folder: Path) -> None:
        """Write it."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text)


def read(path: Path) -> Iterator[File | Command]:
    """Return files and commands in the order of the document; a block that is neither is a mistake."""
    for language, text in _BLOCK.findall(path.read_text()):
        if language == "console":
            yield from _commands(text)
        elif (found := _FILE.match(text)) is not None:
            yield File(found[1], text)
        else:
            raise AssertionError(f"{path.name}: a block without a name:\n{text}")


def _commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, *printed = part.rstrip("\n").split("\n")
        yield Command(line, tuple(printed))


def _squeezed(line: str) -> str:
    return " ".join(line.split())
