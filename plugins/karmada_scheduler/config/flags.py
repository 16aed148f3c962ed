"""Command-line flags: karmada-scheduler's, with the same names and the same meaning.

Every flag of upstream is accepted, so that a Deployment for karmada-scheduler starts this program unchanged. The help text
of a flag without effect states that.

Source: karmada v1.18.2 cmd/scheduler/app/options/options.go; the syntax is pflag's (``--flag=value``,
``--flag value``, a bare ``--bool``, ``_`` and ``-`` interchangeable).
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Never

from karmada_scheduler.api import quantity
from karmada_scheduler.api.manifest import duration_seconds
from karmada_scheduler.config import features, validation
from karmada_scheduler.config.options import (
    FLAG,
    EstimatorOptions,
    ExplainOptions,
    Flag,
    LeaderElection,
    Options,
    RetryLimits,
)
from karmada_scheduler.config.problems import nearest
from karmada_scheduler.config.profiles import plugin_tokens


class OptionsError(ValueError):
    """Flags that cannot be used; the text has one line per error and names the flag."""


def _bool(text: str) -> bool:
    if text not in features.BOOLEANS:
        raise argparse.ArgumentTypeError(f"{text!r} is not true or false")
    return features.BOOLEANS[text]


def _integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.60} is not an integer") from error
    if not -(2**63) <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r:.60} is out of range")
    return number


def _seconds(text: str) -> float:
    try:
        return duration_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 15s or 2m30s") from error


def _bytes(text: str) -> int:
    try:
        return quantity.parse(text).value
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.60} is not a size such as 32Mi") from error


_TYPES: Final[dict[str, Callable[[str], Any]]] = {
    "text": str,
    "list": str,
    "bool": _bool,
    "integer": _integer,
    "number": float,
    "duration": _seconds,
    "size": _bytes,
    "file": lambda text: Path(text) if text else None,
}


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises OptionsError instead of exiting."""

    def error(self, message: str) -> Never:
        raise OptionsError(message)


_UNUSED: Final = "accepted for compatibility, no effect"
_UNUSED_BOOLS: Final = (
    *("enable-pprof", "add-dir-header", "alsologtostderr", "logtostderr", "one-output", "skip-headers"),
    *("skip-log-headers", "log-text-split-stream", "log-json-split-stream"),
)
_UNUSED_TEXTS: Final = (
    *("profiling-bind-address", "vmodule", "log-flush-frequency", "log-dir", "log-file", "log-backtrace-at"),
    *("log-file-max-size", "stderrthreshold", "log-text-info-buffer-size", "log-json-info-buffer-size"),
)


_ANSWER_TTL: Final = "estimator-answer-ttl"
"""The flag whose default depends on another one."""


def _flags_with_defaults(options: Any) -> Iterator[tuple[Flag, Any]]:
    """Yield the flags of all fields, those of nested options included, with the values of the fields."""
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if FLAG in field.metadata:
            yield field.metadata[FLAG], value
        elif dataclasses.is_dataclass(value):
            yield from _flags_with_defaults(value)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    for flag, default in _flags_with_defaults(Options()):
        text = flag.text
        if flag.kind in ("duration", "size"):
            text += f" (default {_shown(default) if flag.kind == 'duration' else _shown_size(default)})"
        is_unset = flag.kind == "list" or flag.name == _ANSWER_TTL
        _add_flag(parser, dataclasses.replace(flag, text=text), None if is_unset else default)
    older = "older form of --health-probe-bind-address, with"
    _add_flag(parser, Flag(name="bind-address", text=f"{older} --secure-port", kind="text"), None)
    _add_flag(parser, Flag(name="secure-port", text=f"{older} --bind-address", kind="integer"), None)
    for name in _UNUSED_BOOLS:
        _add_flag(parser, Flag(name=name, text=_UNUSED, kind="bool"), False)
    for name in _UNUSED_TEXTS:
        _add_flag(parser, Flag(name=name, text=_UNUSED, kind="text"), "")


def _add_flag(parser: argparse.ArgumentParser, flag: Flag, default: object) -> None:
    names = [f"--{flag.name}"] if len(flag.name) > 1 else [f"-{flag.name}", f"--{flag.name}"]
    parser.add_argument(
        *names,
        action="append" if flag.kind == "list" else "store",
        type=_TYPES[flag.kind],
        choices=flag.choices or None,
        default=default,
        help=flag.text,
        metavar=flag.metavar,
    )


def _shown(seconds: float) -> str:
    """Return a duration in Go's syntax."""
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"


def _shown_size(size: int) -> str:
    """Return a size in bytes as a quantity."""
    return f"{size >> 20}Mi" if size % 2**20 == 0 else str(size)


def _values(type_: type, given: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the flags of a type's own fields, by field."""
    return {
        field.name: getattr(given, field.metadata[FLAG].name.replace("-", "_"))
        for field in dataclasses.fields(type_)
        if FLAG in field.metadata
    }


def _bool_flags(parser: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(
        option
        for action in parser._actions  # noqa: SLF001 (argparse has no public list of its flags)
        if action.type is _bool
        for option in action.option_strings
    )


def _normalise(arguments: Sequence[str], bools: frozenset[str]) -> list[str]:
    """Return the arguments with pflag's spellings replaced by those of argparse."""
    result: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[position:]]
        if not argument.startswith("--"):
            result.append(argument)
            continue
        name, separator, value = argument.partition("=")
        name = name.replace("_", "-")
        if not separator and name in bools:
            separator, value = "=", "true"
        result.append(f"{name}{separator}{value}")
    return result


def known(arguments: Iterable[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the values of flags, not validated, and the names of unknown ones.

    Raises:
        OptionsError: A value has a wrong type.
    """
    parser = make_parser()
    found, rest = parser.parse_known_args(_normalise(list(arguments), _bool_flags(parser)))
    return found, [token.partition("=")[0] for token in rest]


COMMANDS: Final = (
    "completion", "explain", "plan", "plugins", "rebalance", "scheduler", "simulate", "status", "survive", "test",
    "web", "why-not", "version", "help",
)  # fmt: skip
"""The commands that can be given instead of flags."""

_ABOUT_COMMANDS: Final = (
    "Commands instead of flags: 'version' (or --version); 'plugins', which lists them; 'simulate', which decides "
    "over files; 'status', which shows the schedulers; 'explain', which says why a binding is where it is; 'why-not', which says what would put it on "
    "a cluster; 'plan', which says what a change would move; 'survive', which says what the loss of a cluster would "
    "take down; 'rebalance', which proposes moves; 'test', which runs placement tests; 'web', which serves explanations and "
    "plans as a page; 'help' with the name of one of these."
)


def make_parser(program: str = "karmada-pyscheduler") -> argparse.ArgumentParser:
    """Return the parser of the scheduler's own flags."""
    parser = _Parser(
        prog=program, allow_abbrev=False, description="Schedule Karmada's bindings.", epilog=_ABOUT_COMMANDS
    )
    _add_flags(parser)
    return parser


def parse(arguments: Sequence[str]) -> Options:
    """Return the validated options.

    Raises:
        OptionsError: Unknown flags, positional arguments or invalid values; the text has as many problems as possible.
        SystemExit: ``--help`` was given and has been printed.
    """
    parser = make_parser()
    known, rest = parser.parse_known_args(_normalise(arguments, _bool_flags(parser)))
    if rest:
        unknown = [item.partition("=")[0] for item in rest if item.startswith("-")]
        if unknown and arguments[0].startswith("-"):
            verbs = [item for item in rest if item in COMMANDS]
            hint = f"; the command comes first: {verbs[0]}" if verbs else ""
            raise OptionsError("\n".join(f"unknown flag: {name}{hint}" for name in unknown))
        word = next(item for item in rest if not item.startswith("-"))
        guess = nearest(word, COMMANDS)
        raise OptionsError(
            f'no command "{word}"; {guess}commands: {", ".join(COMMANDS)}; or none, with flags'
        )
    return _validated(known)


def _validated(given: argparse.Namespace) -> Options:
    values, problems = _values(Options, given), []
    try:
        values["feature_gates"] = features.parse(given.feature_gates or (), given.decisions_of)
    except ValueError as error:
        problems.append(f"--feature-gates: {error}")
    if not given.scheduler_name:
        problems.append('Options.SchedulerName: Invalid value: "": should not be empty')
    problems.extend(validation.estimator_problems(given))
    election = LeaderElection(**_values(LeaderElection, given))
    problems.extend(validation.election_problems(election))
    for name, address in (
        ("metrics_address", given.metrics_bind_address),
        ("health_address", validation.health_address(given)),
    ):
        try:
            values[name] = validation.address(address)
        except ValueError as error:
            flag = next(each.metadata[FLAG].name for each in dataclasses.fields(Options) if each.name == name)
            problems.append(f"--{flag}: {error}")
    problems.extend(
        validation.metrics_problems(given, metrics=values["metrics_address"], health=values["health_address"])
    )
    for name, value in (("--max-in-flight", given.max_in_flight), ("--resync-period", given.resync_period)):
        if value <= 0:
            problems.append(f"{name} must be greater than 0")
    explain = _values(ExplainOptions, given)
    explain["allowed_hosts"] = tuple(name.lower() for name in given.explain_allowed_host or ())
    try:
        explain["address"] = validation.records_address(given)
    except ValueError as error:
        problems.append(f"--explain-bind-address: {error}")
    problems.extend(validation.explain_problems(given))
    folders = [folder for folder in given.plugin_dir or () if folder]
    problems.extend(validation.unreadable(given, folders))
    if problems:
        raise OptionsError("\n".join(problems))
    return Options(
        **values
        | {
            "plugins": plugin_tokens(given.plugins),
            "plugin_dirs": tuple(Path(folder) for folder in folders),
            "kube_api_qps": given.kube_api_qps if given.kube_api_qps and given.kube_api_qps > 0 else None,
            "kube_api_burst": max(1, given.kube_api_burst),
            "leader_election": election,
            "retry_limits": _retry_limits(given),
            "estimators": _estimators(given),
            "explain": ExplainOptions(**explain),
            "warnings": tuple(validation.warnings(given)),
        }
    )


def _estimators(given: argparse.Namespace) -> EstimatorOptions:
    values = _values(EstimatorOptions, given)
    if values["answer_ttl"] is None:
        is_shared = given.estimator_failure_policy == "partial"
        values["answer_ttl"] = EstimatorOptions().answer_ttl if is_shared else 0.0
    return EstimatorOptions(**values)


def _retry_limits(given: argparse.Namespace) -> RetryLimits:
    """Return the limits; one that is not positive gets its default, as upstream."""
    values = _values(RetryLimits, given)
    return RetryLimits(**{name: value for name, value in values.items() if value > 0})
