import pytest

from tests.fuzz import measuring


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the slowest input of each area."""
    for area, (seconds, given) in sorted(measuring.slowest.items()):
        text = f"{area}: {measuring.counts[area]} inputs, the slowest took {seconds * 1000:.1f} ms: {given[:120]}"
        terminalreporter.write_line(text.encode("ascii", "backslashreplace").decode())
