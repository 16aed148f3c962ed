"""The parts of resident memory add up, and the books of the allocators show what is held."""

import os
import sys

import pytest

from tools.soak.memory import USED, allocators, mapped
from tools.soak.samples import proc

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def used() -> int:
    """Return the bytes in use of all allocators."""
    found = allocators()
    return sum(found[name] for name in USED)


def test_the_kinds_of_mappings_add_up_to_resident_memory() -> None:
    total = sum(mapped(os.getpid()).values())
    assert total == pytest.approx(proc(os.getpid())["rss_kib"], rel=0.02)


@pytest.mark.parametrize("size", [200, 2000, 1 << 20], ids=["pymalloc", "malloc", "mapped alone"])
def test_bytes_in_use_have_what_is_held_and_not_what_was_freed(size: int) -> None:
    wanted = 16 << 20
    before = used()
    held = [bytes(size) for _ in range(wanted // size)]
    assert used() - before > 0.95 * wanted
    held.clear()
    assert used() - before < 0.1 * wanted


def test_stderr_is_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    allocators()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"
