"""For all unit tests."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_pauses() -> Iterator[None]:
    """Repeat patches of a status without a pause; nothing else is as slow in a unit test.

    Environments of `make check-distributions` may have no process.
    """
    if find_spec("karmada_pyscheduler") is None:
        yield
        return
    from karmada_pyscheduler.binding_cycle import status_writer

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(status_writer, "_RETRY_DELAYS", (0.0,) * len(status_writer._RETRY_DELAYS))
        yield
