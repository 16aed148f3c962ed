"""For all tests."""

from collections.abc import Iterator

import pytest

from karmada_scheduler.process import process_exit


@pytest.fixture(autouse=True)
def _the_test_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the scheduler's command return instead of ending the process, and give its signals back."""
    monkeypatch.setattr(process_exit, "end", lambda status, **_: None)
    yield
    process_exit.TERMINATION.restore()
