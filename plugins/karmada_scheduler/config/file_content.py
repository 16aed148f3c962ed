"""The content of a file that a person names: bounded, also when it is compressed, and whatever kind of file it is."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 512 * 2**20
"""Of a file after decompression, as of a response of the API server."""

_GZIP: Final = b"\x1f\x8b"


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
