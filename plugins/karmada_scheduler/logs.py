"""Log lines: a message and fields, as text or as JSON.

A message is constant, or one of karmada-scheduler's own texts, for which people search. Other variable parts are
``extra`` fields with a name of ``FIELDS``. A stack that is not the traceback of an exception is the field ``stack``.

Verbosity follows klog: INFO is always printed, and ``V(n)`` maps to levels below INFO, so that ``--v=4`` shows what
upstream shows at 4. kopf's own log lines appear from ``--v=6`` on.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

FIELDS: Final = (
    "binding",
    "cluster",
    "plugin",
    "point",
    "kind",
    "object",
    "type",
    "reason",
    "note",
    "clusters",
    "error",
    "seconds",
    "count",
    "path",
)

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TO_QUOTE: Final = re.compile(r'[\x00-\x20"\x7f-\x9f\u2028\u2029]')


def verbosity(level: int) -> int:
    """Return the logging level of klog's ``V(level)``; 0 is INFO, higher numbers are lower levels."""
    return max(1, logging.INFO - level)


_KOPF_VERBOSITY: Final = 6
V2: Final = verbosity(2)
V3: Final = verbosity(3)
V4: Final = verbosity(4)


def _name(level: int) -> str:
    if level >= logging.ERROR:
        return "ERROR"
    if level >= logging.WARNING:
        return "WARN"
    return "INFO" if level == logging.INFO else f"V{logging.INFO - level}"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _time(record: logging.LogRecord) -> str:
    seconds, microseconds = divmod(round(record.created * 1e6), 1_000_000)
    return f"{_second(seconds)}.{microseconds // 1000:03d}Z"


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: record.__dict__[name] for name in FIELDS if name in record.__dict__}


class TextFormatter(logging.Formatter):
    """``2026-01-02T03:04:05.678Z INFO message key=value``.

    A record is one line: control characters are escaped, and a traceback below it is indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, with its traceback below, if it has one."""
        texts = [(key, str(value)) for key, value in _fields(record).items()]
        fields = "".join(
            [f" {key}={json.dumps(text) if _TO_QUOTE.search(text) else text}" for key, text in texts]
        )
        line = f"{_time(record)} {_name(record.levelno):<5} {_escaped(record.getMessage())}{fields}"
        below = [f"    {_escaped(row)}" for row in _trace(self, record).splitlines()]
        return "\n".join([line, *below])


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the text below a line: a traceback, or the field ``stack``."""
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    return str(record.__dict__.get("stack", ""))


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the keys of component-base: ts (ms), v, msg, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        entry: dict[str, object] = {"ts": round(record.created * 1000, 3), "msg": record.getMessage()}
        if record.levelno >= logging.WARNING:
            entry["level"] = _name(record.levelno).lower()
        else:
            entry["v"] = logging.INFO - record.levelno
        entry.update({key: _json_value(value) for key, value in _fields(record).items()})
        if trace := _trace(self, record):
            entry["stacktrace"] = trace
        return json.dumps(entry)


def _json_value(value: object) -> object:
    """Return a number that JSON supports as it is, and any other value as text."""
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_number else str(value)


PACKAGES: Final = (
    "karmada_scheduler",
    "karmada_pyscheduler",
    "karmada_scheduler_plugins",
    "karmada_scheduler_plugin_dir",
)
"""The packages whose lines are shown by verbosity."""

_ATTEMPT: Final = re.compile(r"attempt #(\d+).* will retry")
_REMIND_EVERY: Final = 16
"""After the first attempt of a request of kopf, only each attempt with such a number is shown, about every three minutes."""


def _drop_repeated_attempts(record: logging.LogRecord) -> bool:
    """Return False for most of kopf's lines about further attempts of the same request."""
    if not record.name.startswith("kopf"):
        return True
    attempt = _ATTEMPT.search(record.getMessage())
    return attempt is None or attempt[1] == "1" or int(attempt[1]) % _REMIND_EVERY == 0


def configure(*, verbosity_level: int, json_format: bool) -> None:
    """Write all log records of this process to standard error in one format."""
    # No format has these values, so they are not determined for every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 (documented in the library: the caller is not determined)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if json_format else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    level = verbosity(verbosity_level)
    for ours in PACKAGES:
        logging.getLogger(ours).setLevel(level)
    kopf = logging.getLogger("kopf")
    kopf.handlers[:] = []
    kopf.propagate = True
    if verbosity_level < _KOPF_VERBOSITY:
        handler.addFilter(_drop_repeated_attempts)
    kopf.setLevel(logging.DEBUG if verbosity_level >= _KOPF_VERBOSITY else logging.ERROR)
    logging.captureWarnings(capture=True)


def follow(module: str) -> None:
    """Give a plugin's package the log level of this one, unless it has set a level itself."""
    package = logging.getLogger(module.partition(".")[0])
    if package.level == logging.NOTSET:
        package.setLevel(logging.getLogger("karmada_scheduler").level)
