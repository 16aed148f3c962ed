"""Options for how much is checked: tests draw few cases in every run, and many with ``--cases``, as the Makefile's checks do."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add how much is checked, and what it is drawn from."""
    group = parser.getgroup("cases")
    group.addoption(
        "--cases", "--bindings", type=int, help="how many; by default as many as the module wants"
    )
    group.addoption("--seed", type=int, help="equal seeds give equal cases; by default that of the module")
    group.addoption("--first", type=int, default=0, help="number of the first case, to make one again")
    group.addoption("--thorough", action="store_true", help="also what takes too long for every run")
    group.addoption(
        "--default-gates", action="store_true", help="claims with Karmada's default feature gates"
    )
    group.addoption(
        "--karmada-scheduler", action="store_true", help="let Karmada's own scheduler place the bindings"
    )


def number_of_cases(config: pytest.Config, default: int) -> int:
    """Return ``--cases``, or the default of a module if it is not given."""
    given: int | None = config.getoption("--cases")
    return default if given is None else given


def seed_of(config: pytest.Config, default: int = 1) -> int:
    """Return ``--seed``, or the default of a module if it is not given."""
    given: int | None = config.getoption("--seed")
    return default if given is None else given


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """Return what random cases are drawn from."""
    return seed_of(request.config)
