"""Log lines, as text and as JSON."""

import json
import logging

import pytest

from karmada_scheduler import logs
from karmada_scheduler.api_error import ApiError


def record(
    message: str = "Something happened", level: int = logging.INFO, **fields: object
) -> logging.LogRecord:
    made = logging.LogRecord("karmada_scheduler.x", level, "x.py", 1, message, (), None)
    made.__dict__.update(fields)
    made.created = 1767323045.6789
    return made


def test_a_text_line_has_time_level_message_and_fields() -> None:
    line = logs.TextFormatter().format(record(binding="demo/web", note="two words"))
    assert line == '2026-01-02T03:04:05.678Z INFO  Something happened binding=demo/web note="two words"'


def test_each_line_has_the_time_of_its_own_record() -> None:
    made, times = record(), []
    for made.created in (1767323045.6789, 1767323046.0, 1767323045.9999996, 1767323105.25):
        times.append(logs.TextFormatter().format(made).split()[0][11:])
    assert times == ["03:04:05.678Z", "03:04:06.000Z", "03:04:06.000Z", "03:05:05.250Z"]


def test_a_field_may_have_a_value_of_any_type() -> None:
    line = logs.TextFormatter().format(record(error=ApiError("cannot reach it"), count=3))
    assert line.endswith('error="cannot reach it" count=3')


@pytest.mark.parametrize(
    ("level", "name"), [(logging.ERROR, "ERROR"), (logging.WARNING, "WARN"), (logs.V4, "V4"), (logs.V3, "V3")]
)
def test_levels_have_names_in_text_lines(level: int, name: str) -> None:
    assert logs.TextFormatter().format(record(level=level)).split()[1] == name


def test_a_json_line_has_upstream_s_keys() -> None:
    line = json.loads(logs.JsonFormatter().format(record(level=logs.V4, binding="demo/web")))
    assert line == {"ts": 1767323045678.9, "v": 4, "msg": "Something happened", "binding": "demo/web"}


def test_a_number_is_a_number_in_json() -> None:
    made = record(count=0, seconds=1.5, note=float("inf"), binding=("a", 1))
    line = json.loads(logs.JsonFormatter().format(made), parse_constant=pytest.fail)
    assert (line["count"], line["seconds"]) == (0, 1.5)
    assert (line["note"], line["binding"]) == ("inf", "('a', 1)")


def test_a_json_warning_has_its_level() -> None:
    assert json.loads(logs.JsonFormatter().format(record(level=logging.WARNING)))["level"] == "warn"


def test_a_traceback_is_below_its_line() -> None:
    made = record()
    made.exc_info = (ValueError, ValueError("a bug"), None)
    assert logs.TextFormatter().format(made).splitlines()[-1] == "    ValueError: a bug"
    assert "ValueError: a bug" in json.loads(logs.JsonFormatter().format(made))["stacktrace"]


def test_a_stack_is_below_its_line() -> None:
    made = record(stack="line 1\nline 2\n")
    assert logs.TextFormatter().format(made).splitlines()[1:] == ["    line 1", "    line 2"]
    assert json.loads(logs.JsonFormatter().format(made))["stacktrace"] == "line 1\nline 2\n"


FORGED = "x\n2026-01-02T03:04:05.678Z INFO  Successfully acquired lease\x1b[2J\r\u2028\x85y"


def test_no_logged_text_can_look_like_another_line() -> None:
    made = record(f"failed: {FORGED}", error=FORGED.replace(" ", "_"), note=FORGED)
    made.exc_info = (ValueError, ValueError(FORGED), None)
    lines = logs.TextFormatter().format(made).splitlines()
    assert all(line.startswith("    ") for line in lines[1:])
    assert not any(logs._CONTROL.search(line) for line in lines)
    assert lines[0].startswith(r"2026-01-02T03:04:05.678Z INFO  failed: x\n2026")


def test_a_field_with_a_quote_in_it_is_quoted() -> None:
    assert logs.TextFormatter().format(record(note='a"b')).endswith(r'note="a\"b"')


@pytest.mark.parametrize(("verbosity", "shown"), [(0, False), (3, False), (4, True), (9, True)])
def test_the_shown_lines_depend_on_the_verbosity(verbosity: int, shown: bool) -> None:
    assert (logs.verbosity(verbosity) <= logs.V4) is shown


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("kopf._cogs.clients.watching", "Request attempt #1 failed; will retry: GET /x -> gone", True),
        ("kopf._cogs.clients.watching", "Request attempt #2 failed; will retry: GET /x -> gone", False),
        ("kopf._cogs.clients.watching", "Request attempt #15/20 failed; will retry: GET /x -> gone", False),
        ("kopf._cogs.clients.watching", "Request attempt #16 failed; will retry: GET /x -> gone", True),
        ("kopf._cogs.clients.watching", "Request attempt #3200 failed; will retry: GET /x -> gone", True),
        ("kopf._cogs.clients.watching", "Request attempt #2 failed; escalating: GET /x -> gone", True),
        ("karmada_scheduler.x", "attempt #2 failed; will retry", True),
    ],
)
def test_only_the_first_and_every_sixteenth_attempt_of_a_kopf_request_are_logged(
    name: str, text: str, shown: bool
) -> None:
    made = record(text)
    made.name = name
    assert logs._drop_repeated_attempts(made) is shown


def test_packages_of_plugins_get_our_log_level_unless_they_set_one() -> None:
    ours, theirs, own = (logging.getLogger(name) for name in ("karmada_scheduler", "acme", "other_acme"))
    before = ours.level
    ours.setLevel(logs.verbosity(4))
    own.setLevel(logging.ERROR)
    try:
        logs.follow("acme.plugins.cost")
        logs.follow("other_acme")
        assert theirs.level == logs.verbosity(4)
        assert own.level == logging.ERROR
    finally:
        ours.setLevel(before)
        for each in (theirs, own):
            each.setLevel(logging.NOTSET)
