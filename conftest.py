"""For every run of pytest, of tests and of checks."""

pytest_plugins = ["tests.cases"]
