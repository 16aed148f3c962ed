"""For all unit tests."""

from collections.abc import Iterator

import pytest

from karmada_scheduler.binding_cycle import status_writer


@pytest.fixture(autouse=True, scope="session")
def _no_pauses() -> Iterator[None]:
    """Repeat patches of a status without a pause; nothing else is as slow in a unit test."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(status_writer, "_RETRY_DELAYS", (0.0,) * len(status_writer._RETRY_DELAYS))
        yield
