"""Freed memory returns to the kernel. Each test has a process of its own, because the thresholds are the process's."""

import os
import platform
import subprocess
import sys

import pytest

from karmada_scheduler.process.malloc_tuning import return_freed_memory

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's thresholds")

_KEPT = """
import sys
from karmada_scheduler.process.malloc_tuning import return_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "tuned":
    assert return_freed_memory({})
# A list of bindings: one large block, freed, and then many small ones.
large = bytes(24 << 20)
del large
before = resident()
held = [bytes(20_000) for _ in range(1000)]
del held
print(resident() - before)
"""


def kept(how: str) -> int:
    """Return the bytes that stay resident after 20 MB were taken and freed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", _KEPT, how], capture_output=True, text=True, check=True, env=environment
    )
    return int(done.stdout)


def test_freed_memory_returns_to_the_kernel() -> None:
    assert kept("tuned") < 4 << 20


def test_without_tuning_it_stays() -> None:
    assert kept("untuned") > 16 << 20


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"])
def test_settings_of_the_environment_are_left_alone(name: str) -> None:
    assert not return_freed_memory({name: "1"})
