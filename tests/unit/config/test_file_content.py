"""Files that a person names: bounded before and after decompression."""

import gzip
import io
from pathlib import Path

import pytest

from karmada_scheduler.config.file_content import FileContentError, read_file, read_text_file


def test_a_file_is_read_and_decompressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a", tmp_path / "a.gz"
    plain.write_bytes(b"text")
    packed.write_bytes(gzip.compress(b"te") + gzip.compress(b"xt"))
    assert read_file(plain) == read_file(packed) == b"text"


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"text")))
    assert read_text_file("-") == "text"


def test_a_file_that_is_too_large_or_never_ends_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b"\0" * 3 * 2**20))
    for path in (bomb, Path("/dev/zero")):
        with pytest.raises(FileContentError, match="is larger than 2 MiB"):
            read_file(path, limit=2 * 2**20)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a\nb\xffc", "line 2, column 2: is no text in UTF-8"),
        (b"\x1f\x8b\x00", "cannot be read: "),
        (gzip.compress(b"x" * 1000)[:20], "cannot be read: Compressed file ended"),
        (gzip.compress(b"x")[:-8] + b"12345678", "cannot be read: CRC check failed"),
    ],
    ids=["no UTF-8", "no gzip", "shortened", "wrong checksum"],  # gzip's bytes have the time in them
)
def test_what_is_no_text_is_an_error(tmp_path: Path, content: bytes, text: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(FileContentError) as refused:
        read_text_file(file)
    assert str(refused.value).startswith(text)


@pytest.mark.parametrize("path", ["none", ".", "a\0b"])
def test_a_file_that_cannot_be_opened_is_an_error(path: str) -> None:
    with pytest.raises(FileContentError, match="cannot be read: "):
        read_file(path)
