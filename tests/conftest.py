"""For all tests."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from karmada_scheduler.process import process_exit

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 0)
"""Random examples per law with `make fuzz-input`; a run of the tests has the same ones each time."""

# A decision takes a fraction of a millisecond; a slow example means a slow machine and is no error.
settings.register_profile("laws", deadline=None, max_examples=EXAMPLES or 100, derandomize=not EXAMPLES)
settings.load_profile("laws")


@pytest.fixture(autouse=True)
def _the_test_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the scheduler's command return instead of ending the process, and give its signals back."""
    monkeypatch.setattr(process_exit, "end", lambda status, **_: None)
    yield
    process_exit.TERMINATION.restore()
