"""The benchmark of the command line."""

from pathlib import Path

from tools.bench import start


def test_it_counts_the_modules_of_a_process_and_says_what_takes_too_long(tmp_path: Path) -> None:
    found = start.measured("--version", ("--version",), 1e-6, 1, tmp_path)
    assert 20 < found.modules < 200
    assert found.cpu > 0
    assert not found.is_in_time
    assert "--version" in start.report([found])
