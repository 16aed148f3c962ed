"""Durations as Go reads them; values are those of ``time.ParseDuration`` of Go 1.26."""

import pytest

from karmada_scheduler.api.manifest import duration_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("-0", 0), ("1m30s", 90), ("1.5h", 5400), (".5s", 0.5), ("1.s", 1), ("-1s", -1), ("+1s", 1), ("1s1h", 3601),
        ("500ms", 0.5), ("2us", 2e-6), ("2\u00b5s", 2e-6), ("2\u03bcs", 2e-6), ("2ns", 2e-9), ("2562047h", 2562047 * 3600),
    ],
)  # fmt: skip
def test_a_duration_has_the_seconds_of_gos(text: str, seconds: float) -> None:
    assert duration_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "5mm", "1d", "1w", "1y", "s", ".s", "--1s", "1 s", " 1s", "1s ", "1S", "1e3s", "1_0s", "\u0661s", "1m5", "3000000h"]
)  # fmt: skip
def test_what_go_refuses_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 5s or 1m30s"):
        duration_seconds(text)
