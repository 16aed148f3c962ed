"""What resident memory is made of: mappings as the kernel counts them, and the books of both allocators.

``mapped`` reads /proc from outside. ``allocators`` runs in the process of the scheduler (``program``): it asks glibc and
Python's allocator for their totals, which takes no memory that depends on the number of objects.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import Final

_HEADER: Final = re.compile(r"^([0-9a-f]+)-[0-9a-f]+ (\S{4}) \S+ \S+ (\d+)\s*(.*)$")
_ARENA_ALIGNMENT: Final = 64 << 20
"""Of the heaps of glibc's further arenas, which are those of threads (HEAP_MAX_SIZE of 64-bit systems)."""

_PYTHON_TOTALS: Final = {
    "python_used": re.compile(r"# bytes in allocated blocks\s+=\s+([\d,]+)"),
    "python_free": re.compile(r"# bytes in available blocks\s+=\s+([\d,]+)"),
    "python_arenas": re.compile(r"# arenas allocated current\s+=\s+([\d,]+)"),
    "python_peak_arenas": re.compile(r"# arenas highwater mark\s+=\s+([\d,]+)"),
}

USED: Final = ("malloc_used", "malloc_mapped", "python_used")
"""The names of bytes in use."""


class _MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc: the sums over all arenas, in bytes or counts."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
        )
    ]  # fmt: skip


def mapped(pid: int) -> dict[str, int]:
    """Return the resident memory of a process in KiB by kind of mapping.

    ``heap`` is the main arena of malloc, ``arenas`` those of threads; ``anonymous`` are Python's arenas, large
    blocks and stacks of threads.
    """
    found = dict.fromkeys(("heap", "arenas", "anonymous", "files"), 0)
    kind = "files"
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if match := _HEADER.match(line):
            kind = _kind(int(match[1], 16), inode=int(match[3]), name=match[4])
        elif line.startswith("Rss:"):
            found[kind] += int(line.split()[1])
    return found


def _kind(start: int, *, inode: int, name: str) -> str:
    if name == "[heap]":
        return "heap"
    if inode or name.startswith("["):
        return "files"
    return "anonymous" if start % _ARENA_ALIGNMENT else "arenas"


def allocators() -> dict[str, int]:
    """Return the bytes that glibc and Python's allocator have, and have in use, in this process.

    ``malloc_*`` are of glibc, without what Python's allocator maps itself: used and free bytes of its heaps, large
    blocks that are mapped alone, and what it could return to the kernel at the top. ``python_*`` are of pymalloc.
    """
    return _of_glibc() | _of_python()


def _of_glibc() -> dict[str, int]:
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return {}
    mallinfo2.restype = _MallInfo
    found = mallinfo2()
    return {
        "malloc_used": found.uordblks,
        "malloc_free": found.fordblks,
        "malloc_mapped": found.hblkhd,
        "malloc_top": found.keepcost,
    }


def _of_python() -> dict[str, int]:
    """Read the statistics that Python only prints, to the descriptor of stderr."""
    if not hasattr(sys, "_debugmallocstats"):
        return {}
    target, kept = os.memfd_create("mallocstats"), os.dup(2)
    try:
        os.dup2(target, 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(kept, 2)
        text = os.pread(target, 1 << 20, 0).decode()
    finally:
        os.close(target)
        os.close(kept)
    found = {name: pattern.search(text) for name, pattern in _PYTHON_TOTALS.items()}
    return {name: int(match[1].replace(",", "")) for name, match in found.items() if match}
