"""The content of a file that a person names: bounded, whatever kind of file it is; and of a YAML file of configuration as plain data."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import Final

from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.config.yaml_document import YamlError, read_document

MAX_BYTES: Final = 512 * 2**20
"""Of a file after decompression, as of a response of the API server."""

_GZIP: Final = b"\x1f\x8b"

_MAX_CONFIGURATION_BYTES: Final = 16 * 2**20


class FileContentError(Exception):
    """The content of a file cannot be used; the text says why, without the file's name."""


def read_file(path: str | Path, *, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file, decompressed if gzip has written it.

    Args:
        path: The file; ``-`` for standard input.
        limit: The most bytes that it may have, compressed or not.

    Raises:
        FileContentError: It cannot be read, or it is larger.
    """
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(limit + 1)
        if content.startswith(_GZIP):
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as compressed:
                content = compressed.read(limit + 1)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileContentError(f"cannot be read: {reason}") from error
    if len(content) > limit:
        raise FileContentError(f"is larger than {limit // 2**20:,} MiB")
    return content


def read_text_file(path: str | Path, *, limit: int = MAX_BYTES) -> str:
    """Return the content of a file as text; raises as ``read_file`` and ``as_text`` do."""
    return as_text(read_file(path, limit=limit))


def as_text(content: bytes) -> str:
    """Return text.

    Raises:
        FileContentError: It is no UTF-8; the text names line and column (in bytes).
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise FileContentError(f"line {line}, column {column}: is no text in UTF-8") from error


def read(path: Path) -> object:
    """Read a file with one document.

    Raises:
        ConfigError: It cannot be read or parsed, or has a duplicate key; the text has the line.
    """
    try:
        text = read_text_file(path, limit=_MAX_CONFIGURATION_BYTES)
    except FileContentError as error:
        raise ConfigError([ConfigProblem("", str(error))]) from error
    return parse(text)


def parse(text: str | bytes, *, unique_keys: bool = True) -> object:
    """Read one document; raises as ``read`` does.

    Args:
        text: The document. An error names the line and the column, and shows no text: it may contain secrets.
        unique_keys: Whether a duplicate key is a problem.
    """
    try:
        found = read_document(text if isinstance(text, str) else as_text(text))
    except FileContentError as error:
        raise ConfigError([ConfigProblem("", str(error))]) from error
    except YamlError as error:
        raise ConfigError([ConfigProblem("", f"is no YAML: {error}")]) from error
    if found.repeated and unique_keys:
        raise ConfigError(
            [
                ConfigProblem("", f'line {key.line}: "{key.key}" stands already in line {key.before}')
                for key in found.repeated
            ]
        )
    return found.value
